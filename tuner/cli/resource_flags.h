#pragma once
// Flags that say what a trial needs, and what an agent has.

#include <CLI/CLI.hpp>

#include "tuner/cli/options.h"

namespace tune::cli {

/// Of `run` and `plan`.
void add_resource_flags(CLI::App& app, StudyFlags& flags);

/// All flags of `agent`.
void add_agent_flags(CLI::App& app, AgentCommand& agent);

}  // namespace tune::cli
