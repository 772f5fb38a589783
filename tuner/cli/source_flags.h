#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

#include "tuner/cli/options.h"
#include "tuner/options/chosen.h"

namespace tune::cli {

/// --server, --data and --json of the verbs that read or change a study.
template <class Command>
void add_source(CLI::App& verb, Command& command) {
    verb.add_option(
        "--server", command.server,
        std::string("address of the server (default: ") + kDefaultServer + " if one answers)");
    verb.add_option("--data", command.data,
                    std::string("data folder (default: ") + kDefaultData + ")");
    verb.add_flag("--json", command.json, "print JSON");
}

/// The type of an option whose values are names of kinds, for help and completion. Its reader
/// checks them: it knows more of what may follow.
inline std::string offering(tuner::Kinds kinds) {
    std::string names;
    for (const std::string& name : tuner::names_of(kinds))
        names += (names.empty() ? "" : ",") + name;
    return "TEXT:{" + names + "}";
}

/// A check whose bounds stand in its error, not in every help text.
inline CLI::Validator within(int low, int high) {
    CLI::Validator check = CLI::Range(low, high);
    check.description("");
    return check;
}

}  // namespace tune::cli
