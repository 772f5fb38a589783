#pragma once
// The agents of one study on one engine: looks how many there are, starts those that are missing,
// ends those that are too many. Everything is decided from what the engine lists, so that it may be
// made anew at any time, also by another process.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/launch/engine.h"

namespace tune::launch {

/// Agents that are wanted for so many trials that could run now: enough slots for them, never more
/// than the bound, whole gangs, none without trials.
[[nodiscard]] int agents_wanted(std::int64_t trials, const AgentSettings& settings);

/// What the engine has, for people and programs.
struct FleetView {
    int pending = 0;  ///< agents
    int running = 0;
    std::vector<AgentJob> jobs = {};  ///< pending and running ones
    std::string text = {};            ///< "2 agents running, 12 pending: partition gpu is full"
    std::string error = {};           ///< why the engine cannot be asked just now; empty: it can
    /// Agents end as soon as they start, and no more are started: the sentence with their output.
    std::string given_up = {};
};

/// Used by one thread.
class Fleet {
public:
    Fleet(std::unique_ptr<Engine> engine, AgentSettings settings);

    /// Looks and acts once. `trials`: those that could run now. `done`: trials that ended so far;
    /// agents that fail are only given up while no trial ends. Waits for the engine.
    [[nodiscard]] FleetView step(std::int64_t trials, std::int64_t done);

    /// Ends all; true once none is left. To be called until it is.
    [[nodiscard]] bool end(StopKind kind);

    [[nodiscard]] Engine& engine() { return *engine_; }

private:
    void count_failures(const std::vector<AgentJob>& jobs, std::int64_t done);
    [[nodiscard]] Result<void> balance(const std::vector<AgentJob>& alive, int wanted);
    /// Those that wait or run. Forgets who was asked to end and has ended.
    [[nodiscard]] std::vector<AgentJob> alive_of(const std::vector<AgentJob>& jobs);
    /// Those of them that were not asked in this way before.
    [[nodiscard]] Result<void> ask_to_end(const std::vector<AgentJob>& jobs, StopKind kind);

    std::unique_ptr<Engine> engine_;
    AgentSettings settings_;
    std::set<std::string> known_failed_;
    std::map<std::string, StopKind> asked_to_end_;  // by state, id and incarnation
    bool is_first_look_ = true;
    std::int64_t done_ = 0;
    int failed_in_a_row_ = 0;
    std::string given_up_;
};

/// The sentence of a view: what runs, what waits and why, the most frequent reasons first.
[[nodiscard]] std::string jobs_text(const std::vector<AgentJob>& jobs);

}  // namespace tune::launch
