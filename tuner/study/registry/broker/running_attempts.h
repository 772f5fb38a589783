#pragma once
// Attempts that run: whose they are, how long their leases last, and how they end.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/polls/renewals.h"
#include "tuner/study/registry/timers.h"

namespace tune::tuner {

/// "RUN/ATTEMPT".
[[nodiscard]] std::string token_of(const AttemptId& attempt);

/// Not thread-safe, but for note_renewals: part of what the lock of Studies guards.
class RunningAttempts {
public:
    explicit RunningAttempts(const StudyServices& in)
        : clock_(in.clock), events_(in.events), book_(in.book), writer_(in.writer) {}

    /// The agent's part of the attempt; nullptr: the attempt is not the current one, or the agent
    /// has no part of it (any more).
    [[nodiscard]] Member* current_member(const TrialRef& ref, const std::string& agent_id,
                                         int attempt) const;
    [[nodiscard]] bool is_current(const TrialRef& ref, const std::string& agent_id,
                                  int attempt) const {
        return current_member(ref, agent_id, attempt) != nullptr;
    }

    /// From now on the trial's lease ends when it is not renewed.
    void begin(const Trial& trial);
    void renew(const TrialRef& ref, Member& member) const;
    /// A heartbeat that has arrived: before its caller waits for the lock.
    void note_renewals(const std::string& agent_id, const std::vector<AttemptId>& attempts) {
        renewals_.add(agent_id, attempts);
    }
    /// Renewals that have arrived and are not counted yet.
    void count_renewals();
    /// Those that nobody renewed are lost.
    void expire(LockedBatch& locked);
    /// When expire has something to do; monotonic.
    [[nodiscard]] std::int64_t next_ms() const { return lease_ends_.next_ms(); }

    /// See StudyEvents.
    void direct(LockedBatch& locked, Study& study, Trial& trial, Action action, std::string reason);
    std::optional<FinishRequest> end_part(LockedBatch& locked, const TrialRef& ref, Member& member,
                                          FinishRequest finish);
    void settle(const TrialRef& ref, const FinishRequest& finish);
    void lose(LockedBatch& locked, const TrialRef& ref, Member& member, const std::string& reason);

private:
    void expire_one(LockedBatch& locked, const TrialRef& ref, std::int64_t now);

    const Clock& clock_;
    StudyEvents& events_;
    StudyBook& book_;
    StudyWriter& writer_;
    Renewals renewals_;
    /// Running trials by run id, when their lease ends at the earliest: it may have been renewed.
    Timers lease_ends_;
};

}  // namespace tune::tuner
