#pragma once
// What may start beside agents that are kept for a trial that waits (a Hold), and for whom they are
// kept.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/scheduling/holds.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

/// How long agents that have room are kept for a trial, and how long its study rests when they were
/// kept in vain.
inline constexpr std::int64_t kHold_ms = 30'000;

/// Not thread-safe: part of what the lock of Studies guards.
class Backfill {
public:
    Backfill(const StudyServices& in, Agents& agents, const Turns& turns)
        : options_(in.options),
          clock_(in.clock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book),
          agents_(agents),
          turns_(turns) {}

    /// What a trial would take of the agent, beside what is kept there for trials that come first;
    /// nothing: it does not fit there.
    [[nodiscard]] std::optional<Part> part_beside_holds(const Agent& agent, const Study& study,
                                                        const TrialNeeds& needs, int nproc) const;
    /// The same for the study's next trial; nothing also where it needs several agents.
    [[nodiscard]] std::optional<Part> fit(const Agent& agent, const Study& study) const;
    /// Whether the agent can be expected to ask for trials soon.
    [[nodiscard]] bool is_reachable(const Agent& agent) const;

    /// Keeps agents for the study's next trial, if none are kept for a study that waits.
    void hold_for(Study& study);
    /// The agent asks for trials: it may do better than one that is kept.
    void consider(const Agent& agent);
    /// A trial of the study starts on these agents: what was kept for it is free again.
    void release(const Study& study, const std::vector<std::string>& ids);
    /// Lets go of what is kept for studies that start nothing now.
    void drop_idle();
    void expire(LockedBatch& locked);
    /// When expire has something to do; monotonic.
    [[nodiscard]] std::int64_t next_ms() const;

    [[nodiscard]] Holds& holds() { return holds_; }
    [[nodiscard]] const Holds& holds() const { return holds_; }
    /// Whether agents were kept for the study in vain a moment ago.
    [[nodiscard]] bool rests(const Study& study) const { return rests_.contains(&study); }
    [[nodiscard]] Study* study_before(const Study& study) const;
    void forget(const Study& study) { rests_.erase(&study); }

private:
    [[nodiscard]] bool is_kept_before(const std::string& agent_id, const Study& study) const;
    [[nodiscard]] std::set<std::string> nearest_agents(const Study& study, const TrialNeeds& needs,
                                                       const Shape& shape);
    [[nodiscard]] bool is_ready(const Hold& hold);

    const StudiesOptions& options_;
    const Clock& clock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
    Agents& agents_;
    const Turns& turns_;
    Holds holds_;
    std::map<const Study*, std::int64_t> rests_;  // until when; monotonic
};

}  // namespace tune::tuner
