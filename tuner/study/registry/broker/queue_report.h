#pragma once
// What runs where and what waits, for whoever looks.

#include <cstddef>
#include <string>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/broker/queue_view.h"
#include "tuner/study/registry/broker/running_attempts.h"
#include "tuner/study/registry/polls/waiting_polls.h"
#include "tuner/study/registry/scheduling/backfill.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

class QueueReport {
public:
    QueueReport(const StudyServices& in, Agents& agents, RunningAttempts& attempts,
                const WaitingPolls& waiting, const Turns& turns, Backfill& backfill)
        : options_(in.options),
          clock_(in.clock),
          lock_(in.lock),
          phase_(in.phase),
          book_(in.book),
          writer_(in.writer),
          agents_(agents),
          attempts_(attempts),
          waiting_(waiting),
          turns_(turns),
          backfill_(backfill) {}

    /// Takes the lock of Studies. O(agents + studies).
    [[nodiscard]] QueueView view(std::size_t agents_max);

private:
    [[nodiscard]] AgentView view_of(const Agent& agent);
    [[nodiscard]] std::string why_waiting(Study& study);
    [[nodiscard]] std::string why_kept(const Hold& hold) const;
    [[nodiscard]] std::string why_after(const Study& study, const Study& other) const;
    void add_users(QueueView& view) const;

    const StudiesOptions& options_;
    const Clock& clock_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyBook& book_;
    const StudyWriter& writer_;
    Agents& agents_;
    RunningAttempts& attempts_;
    const WaitingPolls& waiting_;
    const Turns& turns_;
    Backfill& backfill_;
};

}  // namespace tune::tuner
