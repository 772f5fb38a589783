#include "worker/launch/settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/options/duration.h"
#include "tuner/options/fields.h"
#include "tuner/options/option_table.h"
#include "worker/launch/option_rows.h"

namespace tune::launch {
namespace {

constexpr int kAgentsMax = 100'000;
constexpr int kNodesMax = 10'000;
constexpr std::size_t kPathBytesMax = 4096;
constexpr std::size_t kSetupBytesMax = 64u << 10;

tuner::OptionTable agent_rows() {
    using S = AgentSettings;
    tuner::TableOf<S> table;
    table.integer("agents", &S::agents, 1, kAgentsMax, "most agents at a time, waiting ones too");
    table.integer("slots", &S::slots, 0, kAgentsMax,
                  "trials that one agent runs at a time; 0: one per GPU, else one per core");
    table.integer("cpus", &S::cpus, 0, kAgentsMax,
                  "cores of one agent; 0: what the engine gives unasked");
    table.integer("gpus", &S::gpus, 0, kAgentsMax, "GPUs of one agent");
    table.integer(
        "nodes", &S::nodes, 1, kNodesMax,
        "agents that start together or not at all, one per machine: for trials on several "
        "machines");
    table.text("state", &S::state, kPathBytesMax,
               "folder of the agents' state, logs and checkpoints there; where trials move between "
               "machines, one that all of them share (default: ~/.tune/agents)");
    table.text("program", &S::program, kPathBytesMax,
               "path of `tune` there (default: this program's)");
    table.text("server", &S::server, kPathBytesMax,
               "address of the server as the agents reach it (default: as this program does)");
    table.text(
        "token_file", &S::token_file, kPathBytesMax,
        "file, readable by its owner only, with a token of scope agent (default: one is made "
        "for these agents and revoked when they are gone)");
    add_lines(table, "setup", &S::setup, kSetupBytesMax,
              "lines of shell that run before the agent: module load cuda");
    add_duration(table, "idle_exit", &S::idle_exit_ms,
                 "an agent that has had no trial for so long ends; 0: never");
    add_duration(table, "time_limit", &S::time_limit_ms,
                 "longest life of an agent; it gives its trials back before; 0: the engine's");
    add_duration(table, "poll", &S::poll_ms, "time between two looks at the engine");
    return table;
}

}  // namespace

const tuner::OptionTable& agent_options() {
    static const tuner::OptionTable kOptions = agent_rows();
    return kOptions;
}

int slots_of(const AgentSettings& settings) {
    if (settings.slots > 0) return settings.slots;
    return std::max(1, settings.gpus > 0 ? settings.gpus : settings.cpus);
}

}  // namespace tune::launch
