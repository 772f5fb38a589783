#pragma once
// Verbs about study files alone: no server, no data folder.

#include <string>

namespace tune::cli {

struct SpaceCommand {
    std::string file = {};
    std::string from = {};  ///< empty: detected
};

struct SchemaCommand {
    bool markdown = false;
};

/// Prints a study.yaml made of another tuner's space.
[[nodiscard]] int run_space(const SpaceCommand& options);

/// Prints the JSON Schema of studies, or the page of the documentation that says the same.
[[nodiscard]] int run_schema(const SchemaCommand& options);

}  // namespace tune::cli
