#pragma once
// Long-polls of agents that wait: for trials, for news of what they run, or for both in one call.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tuner/protocol.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/registry/broker/agents.h"
#include "tuner/study/registry/polls/lease_line.h"
#include "tuner/study/registry/studies.h"
#include "tuner/study/registry/timers.h"

namespace tune::tuner {

/// How long a long-poll that asks for so much may wait.
[[nodiscard]] std::int64_t poll_wait_ms(std::int64_t asked_ms);

/// The one poll of an agent. It consists of a lease poll and a heartbeat poll; whichever has
/// something to say first ends both.
struct PollCall {
    std::string agent_id;
    std::string session;
    std::int64_t turn = 0;
    std::int64_t ack = 0;
    bool is_leaving = false;
    LeaseRequest leases;           ///< what its lease poll asks for
    std::int64_t deadline_ms = 0;  ///< monotonic
    Done<PollReply> done;
    bool is_answered = false;
};
struct LeasePoll {
    std::string agent_id;
    LeaseRequest request;
    std::int64_t deadline_ms = 0;  ///< monotonic
    Done<LeaseReply> done;
    /// Answers that there is nothing, in the place of `done`.
    std::function<void(LockedBatch&)> give_up;
    std::shared_ptr<PollCall> call = {};  ///< whose part it is; null: it stands alone
};
struct HeartbeatPoll {
    std::string agent_id;
    std::vector<AttemptId> lost;
    std::int64_t deadline_ms = 0;         ///< monotonic
    Done<HeartbeatReply> done;            ///< of one that stands alone
    std::shared_ptr<PollCall> call = {};  ///< whose part it is
};

/// Not thread-safe: part of what the lock of Studies guards. At most one of each kind an agent.
/// O(log polls) a call.
class WaitingPolls {
public:
    /// `room`: room_text of what the agent has left.
    void park(LeasePoll poll, std::string room);
    void park(HeartbeatPoll poll);
    void park(std::shared_ptr<PollCall> call);

    [[nodiscard]] bool has_lease_poll(const std::string& agent_id) const {
        return lease_polls_.contains(agent_id);
    }
    [[nodiscard]] std::size_t lease_polls() const { return lease_polls_.size(); }
    /// nullptr: there is none.
    [[nodiscard]] LeasePoll* find_lease_poll(const std::string& agent_id);
    [[nodiscard]] const HeartbeatPoll* find_heartbeat(const std::string& agent_id) const;
    [[nodiscard]] std::shared_ptr<PollCall> find_call(const std::string& agent_id) const;

    /// Of the agent's lease poll, which there is.
    [[nodiscard]] LeasePoll take_lease_poll(const std::string& agent_id);
    /// Nothing: there is none.
    [[nodiscard]] std::optional<HeartbeatPoll> take_heartbeat(const std::string& agent_id);
    /// From now on nothing of the call waits.
    void withdraw(PollCall& call);

    /// Agents whose lease polls wait, by what they have left.
    [[nodiscard]] const LeaseLine& line() const { return line_; }
    /// Notes what agents have left by now.
    void sort_line(Agents& agents);

    /// When the next one has waited for long enough; monotonic.
    [[nodiscard]] std::int64_t next_ms() const;
    /// Agents whose poll has; it still waits.
    [[nodiscard]] std::optional<std::string> due_lease_poll(std::int64_t now_ms) {
        return lease_poll_ends_.take_due(now_ms);
    }
    [[nodiscard]] std::optional<std::string> due_heartbeat(std::int64_t now_ms) {
        return heartbeat_ends_.take_due(now_ms);
    }

private:
    std::unordered_map<std::string, LeasePoll> lease_polls_;  // by agent: there is nothing for them
    LeaseLine line_;                                          // the same agents
    std::unordered_map<std::string, HeartbeatPoll> heartbeats_;         // by agent
    std::unordered_map<std::string, std::shared_ptr<PollCall>> calls_;  // by agent
    Timers lease_poll_ends_;
    Timers heartbeat_ends_;
};

}  // namespace tune::tuner
