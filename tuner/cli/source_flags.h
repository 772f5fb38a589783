#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tuner/cli/options.h"

namespace tune::cli {

/// --server, --data and --json of the verbs that read or change a study.
template <class Command>
void add_source(CLI::App& verb, Command& command) {
    verb.add_option("--server", command.server,
                    std::string("the server (default: ") + kDefaultServer + " if one answers)");
    verb.add_option("--data", command.data,
                    std::string("the folder (default: ") + kDefaultData + ")");
    verb.add_flag("--json", command.json, "as JSON");
}

/// A check whose bounds stand in its error, not in every help text.
inline CLI::Validator within(int low, int high) {
    CLI::Validator check = CLI::Range(low, high);
    check.description("");
    return check;
}

}  // namespace tune::cli
