#pragma once
// Verbs about study files alone: no server, no data folder.

#include <string>

namespace tune::cli {

struct SpaceCommand {
    std::string file = {};
    std::string from = {};  ///< empty: detected
};

/// Prints a study.yaml made of another tuner's space.
[[nodiscard]] int run_space(const SpaceCommand& options);

/// Prints the JSON Schema of studies.
[[nodiscard]] int run_schema();

}  // namespace tune::cli
