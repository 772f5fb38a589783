#pragma once
// What agents say: that they are there and ask for work, what their trials report, and how these
// end.

#include <string>
#include <utility>
#include <vector>

#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/broker/leases.h"
#include "tuner/study/registry/broker/running_attempts.h"
#include "tuner/study/registry/polls/agent_polls.h"
#include "tuner/study/registry/polls/waiting_polls.h"
#include "tuner/study/registry/scheduling/turns.h"

namespace tune::tuner {

/// Thread-safe: each call takes the lock of Studies, and completions are called as those of Studies
/// are. What the calls do: tuner/protocol.h.
class AgentCalls {
public:
    AgentCalls(const StudyServices& in, const AttemptCredentials& credentials, Agents& agents,
               RunningAttempts& attempts, WaitingPolls& waiting, const Turns& turns, Leases& leases,
               AgentPolls& polls)
        : options_(in.options),
          clock_(in.clock),
          lock_(in.lock),
          events_(in.events),
          book_(in.book),
          commits_(in.commits),
          writer_(in.writer),
          credentials_(credentials),
          agents_(agents),
          attempts_(attempts),
          waiting_(waiting),
          turns_(turns),
          leases_(leases),
          polls_(polls) {}

    void register_agent(RegisterRequest request, Done<RegisterReply> done);
    void lease(const std::string& agent_id, LeaseRequest request, Done<LeaseReply> done) {
        leases_.lease(agent_id, std::move(request), std::move(done));
    }
    void heartbeat(const std::string& agent_id, HeartbeatRequest request,
                   Done<HeartbeatReply> done) {
        polls_.heartbeat(agent_id, std::move(request), std::move(done));
    }
    void poll(const std::string& agent_id, PollRequest request, Done<PollReply> done) {
        polls_.poll(agent_id, std::move(request), std::move(done));
    }
    void report_metrics(const std::string& agent_id, ReportRequest request, Done<ReportReply> done);
    void finish(const std::string& agent_id, const AttemptId& attempt, FinishRequest request,
                Done<FinishReply> done);

private:
    void let_go(LockedBatch& locked, const RegisterRequest& request);
    void settle(const std::string& agent_id, const AttemptId& attempt, FinishRequest request,
                Done<FinishReply> done);
    void answer_finish(LockedBatch& locked, const TrialRef& ref, const FinishRequest* finish,
                       Done<FinishReply> done);

    const StudiesOptions& options_;
    const Clock& clock_;
    StudyLock& lock_;
    StudyEvents& events_;
    StudyBook& book_;
    ObservedCommits& commits_;
    StudyWriter& writer_;
    const AttemptCredentials& credentials_;
    Agents& agents_;
    RunningAttempts& attempts_;
    WaitingPolls& waiting_;
    const Turns& turns_;
    Leases& leases_;
    AgentPolls& polls_;
};

}  // namespace tune::tuner
