#pragma once
// Trials of a higher priority take the places of lower ones.

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/scheduling/backfill.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

/// Not thread-safe: part of what the lock of Studies guards.
class Preemption {
public:
    Preemption(const StudyServices& in, Agents& agents, const Turns& turns, Backfill& backfill)
        : clock_(in.clock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book),
          writer_(in.writer),
          agents_(agents),
          turns_(turns),
          backfill_(backfill) {}

    /// Asks trials to end where studies of a higher priority wait for their places. O(studies)
    /// where all have one priority.
    void preempt(LockedBatch& locked);

private:
    /// Agents for one trial, and the trials that have to end there first.
    struct Claim {
        Shape shape;
        std::set<std::string> agents = {};
        std::vector<TrialRef> victims = {};
    };
    void preempt_for(LockedBatch& locked, Study& study);
    void make_places(LockedBatch& locked, Study& study, const TrialNeeds& needs,
                     std::size_t wanted);
    [[nodiscard]] std::optional<Room> room_to_be(const Agent& agent, const Study& study,
                                                 const Claim& claim);
    [[nodiscard]] std::optional<std::vector<TrialRef>> victims_on(const Agent& agent,
                                                                  const Study& study,
                                                                  const TrialNeeds& needs,
                                                                  int nproc, const Claim& claim);
    [[nodiscard]] std::vector<std::string> preemptible_agents(const Study& study);
    void claim_free_room(Claim& claim, const Study& study, const TrialNeeds& needs);
    [[nodiscard]] std::optional<Claim> find_claim(const Study& study, const TrialNeeds& needs,
                                                  const Shape& shape, std::size_t before);

    const Clock& clock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
    const StudyWriter& writer_;
    Agents& agents_;
    const Turns& turns_;
    Backfill& backfill_;
};

}  // namespace tune::tuner
