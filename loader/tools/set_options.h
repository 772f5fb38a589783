#pragma once
// Options of tune-data that say which data set is read, and what of it.

#include <string>
#include <vector>

#include "base/result.h"
#include "loader/dataset.h"

namespace CLI {
class App;
}

namespace tune::loader {

struct SetArguments {
    DatasetOptions options = {};
    std::string directory = {};
    std::vector<std::string> filters = {};
    std::string nulls = "mask";
    std::string fill = {};
};

/// `has_directory`: with the positional argument.
void add_set_options(CLI::App& verb, SetArguments& arguments, bool has_directory = true);

/// Errors: kInvalidParameterValue naming the option.
[[nodiscard]] Result<DatasetOptions> set_options(const SetArguments& arguments);

}  // namespace tune::loader
