#pragma once
// The settings that agents have on every engine, as one table of options.

#include <cstdint>
#include <string>

#include "base/json.h"

namespace tune::tuner {
class OptionTable;
}

namespace tune::launch {

struct AgentSettings {
    int agents = 4;                      ///< at most so many at a time
    int slots = 0;                       ///< trials at a time of one; 0: one a GPU, else one a core
    int cpus = 0;                        ///< cores of one; 0: what the engine gives by default
    int gpus = 0;                        ///< GPUs of one
    int nodes = 1;                       ///< agents that start together or not at all
    std::string state = {};              ///< folder; empty: ~/.tune/agents
    std::string program = {};            ///< `tune` there; empty: this program
    std::string server = {};             ///< as the agents reach it; empty: as this program does
    std::string token_file = {};         ///< empty: a token is made for them
    std::string setup = {};              ///< shell lines before the agent
    std::int64_t idle_exit_ms = 60'000;  ///< an agent without trials ends after it; 0: never
    std::int64_t time_limit_ms = 0;      ///< longest life of an agent; 0: the engine's
    std::int64_t poll_ms = 5'000;        ///< between two looks at the engine

    [[nodiscard]] bool operator==(const AgentSettings&) const = default;
};

[[nodiscard]] const tuner::OptionTable& agent_options();

/// Trials that one agent runs at a time, as far as its settings tell; at least 1.
[[nodiscard]] int slots_of(const AgentSettings& settings);

}  // namespace tune::launch
