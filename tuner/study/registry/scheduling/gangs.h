#pragma once
// Trials of several processes on several agents: all of their places or none.

#include <set>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/broker/running_attempts.h"
#include "tuner/study/registry/polls/waiting_polls.h"
#include "tuner/study/registry/scheduling/backfill.h"
#include "tuner/study/registry/scheduling/preemption.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

/// Not thread-safe: part of what the lock of Studies guards.
class Gangs {
public:
    Gangs(const StudyServices& in, Agents& agents, RunningAttempts& attempts, WaitingPolls& waiting,
          const Turns& turns, Backfill& backfill, Preemption& preemption)
        : options_(in.options),
          clock_(in.clock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book),
          writer_(in.writer),
          suggestions_(in.suggestions),
          agents_(agents),
          attempts_(attempts),
          waiting_(waiting),
          turns_(turns),
          backfill_(backfill),
          preemption_(preemption) {}

    void place(LockedBatch& locked);
    void forget(const Study& study) { wanted_.erase(&study); }

private:
    [[nodiscard]] bool place_one(LockedBatch& locked, Study& study);
    [[nodiscard]] std::vector<std::string> choose_agents(const Study& study,
                                                         const TrialNeeds& needs,
                                                         const Shape& shape);
    [[nodiscard]] Usage usage_on(const std::vector<std::string>& ids, const Study& study,
                                 const TrialNeeds& needs, const Shape& shape);
    void start(LockedBatch& locked, Study& study, const TrialNeeds& needs, const Shape& shape,
               const std::vector<std::string>& ids);
    void give(LockedBatch& locked, const TrialRef& ref, std::vector<LeasePoll> polls);

    const StudiesOptions& options_;
    const Clock& clock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
    StudyWriter& writer_;
    Suggestions& suggestions_;
    Agents& agents_;
    RunningAttempts& attempts_;
    WaitingPolls& waiting_;
    const Turns& turns_;
    Backfill& backfill_;
    Preemption& preemption_;
    std::set<const Study*> wanted_;  // a point is being suggested for a trial on several agents
    bool is_placing_ = false;
};

}  // namespace tune::tuner
