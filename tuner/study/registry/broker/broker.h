#pragma once
// Decides who runs what: agents and their polls, leases, whose turn it is. Its parts, wired.
//
//   AgentCalls, AgentPolls   what agents say and hear
//        |
//     Leases --> Gangs       which agent gets which trial
//        |         |
//   Turns, Backfill, Preemption     in which order, beside what is kept, in whose place
//        |
//   Agents, RunningAttempts, WaitingPolls     what is there, runs and waits

#include "tuner/study/registry/broker/agent_calls.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/broker/leases.h"
#include "tuner/study/registry/broker/queue_report.h"
#include "tuner/study/registry/broker/running_attempts.h"
#include "tuner/study/registry/polls/agent_polls.h"
#include "tuner/study/registry/polls/waiting_polls.h"
#include "tuner/study/registry/scheduling/backfill.h"
#include "tuner/study/registry/scheduling/gangs.h"
#include "tuner/study/registry/scheduling/preemption.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

/// Not thread-safe, but for the calls of agents and queue.view: part of what the lock of Studies
/// guards.
struct Broker {
    Broker(const StudyServices& in, const AttemptCredentials& credentials)
        : turns(in, agents),
          backfill(in, agents, turns),
          preemption(in, agents, turns, backfill),
          attempts(in),
          gangs(in, agents, attempts, waiting, turns, backfill, preemption),
          leases(in, agents, attempts, waiting, turns, backfill, gangs),
          polls(in, agents, attempts, waiting, leases),
          calls(in, credentials, agents, attempts, waiting, turns, leases, polls),
          queue(in, agents, attempts, waiting, turns, backfill) {}

    /// Leases, agents and what is kept for trials, as time goes on.
    void tick(LockedBatch& locked, std::int64_t now_ms);
    /// When it has something to do; monotonic.
    [[nodiscard]] std::int64_t next_ms() const;
    /// Whether something names the study that is no task: one that is given out or kept places for.
    [[nodiscard]] bool names(const Study& study) const;
    /// The study is about to be freed.
    void forget(const Study& study);

    Agents agents;
    WaitingPolls waiting;
    Turns turns;
    Backfill backfill;
    Preemption preemption;
    RunningAttempts attempts;
    Gangs gangs;
    Leases leases;
    AgentPolls polls;
    AgentCalls calls;
    QueueReport queue;
};

}  // namespace tune::tuner
