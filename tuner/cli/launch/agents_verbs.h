#pragma once
// `tune agents`, and the flags of `tune run` that name an engine: their options, for the parser.

#include <functional>
#include <optional>
#include <string>

#include "tuner/cli/options.h"

namespace CLI {
class App;
}

namespace tune::cli {

/// agents up, down, ls.
struct AgentsArguments {
    EngineFlags engine = {};
    std::optional<std::string> server = {};
    std::optional<std::string> data = {};
    std::string study = {};  ///< empty: of any study
    bool drain = false;
    bool kill = false;
    bool json = false;
};

/// --on, --engines, --agents.
void add_engine_flags(CLI::App& verb, EngineFlags& flags);

/// Adds agents up, down and ls. Once one is parsed, `verb` runs it; both references are kept.
void add_agents_verbs(CLI::App& app, AgentsArguments& arguments, std::function<int()>& verb);

[[nodiscard]] int run_agents_up(const AgentsArguments& options);
[[nodiscard]] int run_agents_down(const AgentsArguments& options);
[[nodiscard]] int run_agents_ls(const AgentsArguments& options);

}  // namespace tune::cli
