#pragma once
// What agents hear: the one poll of an agent, and the heartbeat of clients that call its two
// routes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/broker/leases.h"
#include "tuner/study/registry/broker/running_attempts.h"
#include "tuner/study/registry/polls/waiting_polls.h"

namespace tune::tuner {

/// `poll` and `heartbeat` take the lock of Studies; the rest is called under it.
class AgentPolls {
public:
    AgentPolls(const StudyServices& in, Agents& agents, RunningAttempts& attempts,
               WaitingPolls& waiting, Leases& leases)
        : clock_(in.clock),
          lock_(in.lock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book),
          writer_(in.writer),
          agents_(agents),
          attempts_(attempts),
          waiting_(waiting),
          leases_(leases) {}

    void poll(const std::string& agent_id, PollRequest request, Done<PollReply> done);
    void heartbeat(const std::string& agent_id, HeartbeatRequest request,
                   Done<HeartbeatReply> done);

    /// Something has changed for trials that the agent holds.
    void wake(LockedBatch& locked, const std::string& agent_id);
    /// An attempt of the agent has ended, so that its poll may get one more.
    void gain_place(LockedBatch& locked, const std::string& agent_id);
    /// Answers the agent's poll: it belongs to a connection that is gone, or to its predecessor.
    void drop(LockedBatch& locked, const std::string& agent_id);
    /// The attempts that the agent was given in answers after `ack`, which it never got.
    [[nodiscard]] std::vector<TrialRef> undelivered(const std::string& agent_id,
                                                    const std::string& session, std::int64_t ack);
    /// Answers polls that have waited for long enough.
    void expire(LockedBatch& locked, std::int64_t now_ms);

private:
    void take_ack(Agent& agent, const PollRequest& request);
    void decline(LockedBatch& locked, const Agent& agent, const std::vector<AttemptId>& attempts);
    void interrupt(LockedBatch& locked, Agent& agent, const PollRequest& request,
                   const Done<PollReply>& done);
    [[nodiscard]] int take_ended(std::vector<AttemptId>& running) const;
    [[nodiscard]] bool begin_lease_part(LockedBatch& locked, const std::shared_ptr<PollCall>& call);
    [[nodiscard]] LeasePoll lease_part(const std::shared_ptr<PollCall>& call);
    void end_lease_part(LockedBatch& locked, const std::shared_ptr<PollCall>& call,
                        Result<LeaseReply> reply);
    void label(const PollCall& call, std::vector<Lease>& leases);
    void answer(LockedBatch& locked, const std::shared_ptr<PollCall>& call, HeartbeatReply news,
                std::vector<Lease> leases, std::string lease_error = {});

    [[nodiscard]] HeartbeatReply heartbeat_reply(const HeartbeatPoll& poll);
    /// Which of the attempts that an agent names are not its own. `is_news`: some of them it was
    /// not told before.
    [[nodiscard]] std::vector<AttemptId> note_lost(Agent& agent,
                                                   const std::vector<AttemptId>& running,
                                                   bool& is_news);
    [[nodiscard]] bool has_news(const std::string& agent_id);
    void park(HeartbeatPoll poll);
    void drop_heartbeat(LockedBatch& locked, const std::string& agent_id);

    const Clock& clock_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
    StudyWriter& writer_;
    Agents& agents_;
    RunningAttempts& attempts_;
    WaitingPolls& waiting_;
    Leases& leases_;
};

}  // namespace tune::tuner
