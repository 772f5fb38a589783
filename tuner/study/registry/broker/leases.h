#pragma once
// Which agent gets which trial. Gives out trials on one agent each; those on several: Gangs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/broker/running_attempts.h"
#include "tuner/study/registry/polls/waiting_polls.h"
#include "tuner/study/registry/scheduling/backfill.h"
#include "tuner/study/registry/scheduling/gangs.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

/// `lease` takes the lock of Studies; the rest is called under it.
class Leases {
public:
    Leases(const StudyServices& in, Agents& agents, RunningAttempts& attempts,
           WaitingPolls& waiting, const Turns& turns, Backfill& backfill, Gangs& gangs)
        : options_(in.options),
          clock_(in.clock),
          lock_(in.lock),
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
          gangs_(gangs) {}

    void lease(const std::string& agent_id, LeaseRequest request, Done<LeaseReply> done);

    /// Gives the poll what there is, or puts it into the line.
    void begin(LockedBatch& locked, LeasePoll poll);
    /// Gives out attempts that have started.
    void give(LockedBatch& locked, LeasePoll& poll, const std::vector<TrialRef>& started);
    void park(LockedBatch& locked, LeasePoll poll);
    /// One place more for the agent's poll. False: none of its polls waits for a trial.
    [[nodiscard]] bool add_place(const std::string& agent_id);
    /// An older poll of the agent belongs to a connection that is gone.
    void drop(LockedBatch& locked, const std::string& agent_id);
    /// Polls that wait may get something now.
    void wake(LockedBatch& locked);
    /// Whether a trial of the study is being given out.
    [[nodiscard]] bool names(const Study& study) const;

private:
    /// A lease poll that is being answered.
    struct Granting {
        LeasePoll poll;
        std::vector<std::pair<TrialRef, int>> started;  ///< with the attempt
        std::int64_t since_ms = 0;                      ///< monotonic
        int places_taken = 0;
    };
    struct Choice {
        Study* first = nullptr;    ///< of all that may start a trial and do not rest
        Study* fitting = nullptr;  ///< of those that may start one there
    };
    [[nodiscard]] Study* next_study(const Agent& agent);
    [[nodiscard]] Choice choose_study(const Agent& agent);
    [[nodiscard]] bool has_work();
    void grant(LockedBatch& locked, LeasePoll poll);
    void continue_grant(LockedBatch& locked, const std::shared_ptr<Granting>& granting);
    void end_grant(LockedBatch& locked, Granting& granting);
    [[nodiscard]] bool repeat(LockedBatch& locked, LeasePoll& poll);

    const StudiesOptions& options_;
    const Clock& clock_;
    StudyLock& lock_;
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
    Gangs& gangs_;
    std::map<std::string, std::shared_ptr<Granting>> granting_;  // by agent
};

}  // namespace tune::tuner
