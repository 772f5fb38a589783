#include "tuner/study/registry/polls/waiting_polls.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"

namespace tune::tuner {

std::int64_t poll_wait_ms(std::int64_t asked_ms) {
    return std::clamp<std::int64_t>(asked_ms, 0, kLongPollMax_ms);
}

void WaitingPolls::park(LeasePoll poll, std::string room) {
    // A part of a call ends with the call's other part.
    if (!poll.call) lease_poll_ends_.set(poll.agent_id, poll.deadline_ms);
    line_.add(poll.agent_id, std::move(room));
    const std::string agent_id = poll.agent_id;
    lease_polls_.insert_or_assign(agent_id, std::move(poll));
}

void WaitingPolls::park(HeartbeatPoll poll) {
    heartbeat_ends_.set(poll.agent_id, poll.deadline_ms);
    const std::string agent_id = poll.agent_id;
    heartbeats_.insert_or_assign(agent_id, std::move(poll));
}

void WaitingPolls::park(std::shared_ptr<PollCall> call) {
    const std::string agent_id = call->agent_id;
    calls_.insert_or_assign(agent_id, std::move(call));
}

LeasePoll* WaitingPolls::find_lease_poll(const std::string& agent_id) {
    const auto found = lease_polls_.find(agent_id);
    return found == lease_polls_.end() ? nullptr : &found->second;
}

const HeartbeatPoll* WaitingPolls::find_heartbeat(const std::string& agent_id) const {
    const auto found = heartbeats_.find(agent_id);
    return found == heartbeats_.end() ? nullptr : &found->second;
}

std::shared_ptr<PollCall> WaitingPolls::find_call(const std::string& agent_id) const {
    const auto found = calls_.find(agent_id);
    return found == calls_.end() ? nullptr : found->second;
}

LeasePoll WaitingPolls::take_lease_poll(const std::string& agent_id) {
    LeasePoll taken = std::move(lease_polls_.extract(agent_id).mapped());
    line_.erase(agent_id);
    lease_poll_ends_.erase(agent_id);
    return taken;
}

std::optional<HeartbeatPoll> WaitingPolls::take_heartbeat(const std::string& agent_id) {
    auto taken = heartbeats_.extract(agent_id);
    if (!taken) return std::nullopt;
    heartbeat_ends_.erase(agent_id);
    return std::move(taken.mapped());
}

void WaitingPolls::withdraw(PollCall& call) {
    call.is_answered = true;
    const auto known = calls_.find(call.agent_id);
    if (known != calls_.end() && known->second.get() == &call) calls_.erase(known);
    const auto beat = heartbeats_.find(call.agent_id);
    if (beat != heartbeats_.end() && beat->second.call.get() == &call) {
        heartbeat_ends_.erase(call.agent_id);
        heartbeats_.erase(beat);
    }
    const auto parked = lease_polls_.find(call.agent_id);
    if (parked != lease_polls_.end() && parked->second.call.get() == &call)
        static_cast<void>(take_lease_poll(call.agent_id));
}

void WaitingPolls::sort_line(Agents& agents) {
    for (const std::string& agent_id : agents.take_changed())
        if (const Agent* const agent = agents.find(agent_id))
            line_.move(agent_id, room_text(agent->room));
}

std::int64_t WaitingPolls::next_ms() const {
    return std::min(lease_poll_ends_.next_ms(), heartbeat_ends_.next_ms());
}

}  // namespace tune::tuner
