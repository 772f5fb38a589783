#pragma once
// The agents that are registered: what they have, which trials they hold, and when each was last
// heard. Decides what fits where; grants nothing itself.
//
// Not thread-safe: part of what the lock of Studies guards. No step looks at all agents.

#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/protocol.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Agents known at once; one costs about 2 kB.
inline constexpr std::size_t kAgentsMax = 20'000;
/// Trials that an agent holds at once, whatever it registered; keeps a lease's answer and its
/// transaction small.
inline constexpr int kAgentSlotsMax = 1024;
/// GPUs that an agent may register; no machine has as many.
inline constexpr std::size_t kAgentGpusMax = 1024;
/// An agent that holds nothing and is silent for so long is forgotten. It registers again when it
/// calls again.
inline constexpr std::int64_t kAgentForgotten_ms = 10 * 60 * 1000;

/// What a trial takes while it runs.
struct TrialNeeds {
    int cpus = 0;  ///< cores of its own; 0: it shares what there is
    int gpus = 0;
};
[[nodiscard]] TrialNeeds needs_of(const Study& study);

struct TrialRef {
    Study* study = nullptr;
    Trial* trial = nullptr;
};

struct Agent {
    RegisterRequest facts;
    std::set<std::string> reported_lost;  ///< tokens it was sent to kill and still names
    std::int64_t heard_ms = 0;            ///< monotonic
    std::list<std::string>::iterator place;
};

class Agents {
public:
    [[nodiscard]] Agent* find(const std::string& id);
    [[nodiscard]] bool contains(const std::string& id) const { return agents_.contains(id); }
    [[nodiscard]] bool is_full() const { return agents_.size() >= kAgentsMax; }
    [[nodiscard]] std::size_t size() const { return agents_.size(); }

    /// Registers the agent, or takes its new facts, cut to the limits above. True if what some
    /// agent has is there for the first time.
    bool add(RegisterRequest facts, std::int64_t now_ms);
    /// It has called.
    void heard(Agent& agent, std::int64_t now_ms);
    /// Forgets those that are silent for too long. True if what they had is gone with them.
    bool forget_silent(std::int64_t now_ms);
    /// When forget_silent has something to do; Timers::kNever_ms: never.
    [[nodiscard]] std::int64_t next_forgotten_ms() const;

    /// Brings what agents hold in line with the trial. To be called after each of its changes.
    void follow(Study& study, Trial& trial);
    /// The running trials that an agent holds, known or not; nullptr: none.
    [[nodiscard]] std::map<std::string, TrialRef>* held_by(const std::string& id);

    /// Trials that the agent may start beside those it holds.
    [[nodiscard]] int free_slots(const Agent& agent);
    /// Whether a trial with these needs can start there now, beside what the agent holds.
    [[nodiscard]] bool fits(const Agent& agent, const TrialNeeds& needs);
    /// Whether some agent could run such a trial if it had nothing else to do. O(kinds of agents).
    [[nodiscard]] bool can_serve(const TrialNeeds& needs) const;
    /// What stands in the way, as a sentence without a full stop; empty: nothing.
    [[nodiscard]] std::string obstacle(const TrialNeeds& needs) const;

private:
    using Kind = std::pair<int, int>;  // GPUs, cores
    [[nodiscard]] static Kind kind_of(const RegisterRequest& facts);
    bool add_kind(const RegisterRequest& facts);
    bool remove_kind(const RegisterRequest& facts);

    std::unordered_map<std::string, Agent> agents_;  // by id
    std::list<std::string> by_silence_;              // ids, the longest silent first
    std::map<Kind, std::size_t> kinds_;              // how many agents of each there are
    /// By agent, also of agents that have not registered since the server started.
    std::unordered_map<std::string, std::map<std::string, TrialRef>> held_;
    std::unordered_map<const Trial*, std::string> holder_;
};

}  // namespace tune::tuner
