// The one poll of an agent. It is made of a lease poll and a heartbeat poll, which wait as those of
// clients that call the two routes do; the first of them that has something to say ends both.
//
// What an answer said is known to have arrived when the next poll acknowledges its number. A lease
// carries the number of its answer in its member's request_id, which is on disk, so that a lease of
// an answer that was lost is found also after a restart of the server. It comes again with another
// token, since nobody has the first. A lease that is ready when its poll has been answered already
// (a directive was faster) goes with the poll that waits by then, or with the next.
//
// No step looks at more than what one agent holds.

#include "tuner/study/registry/polls/agent_polls.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace tune::tuner {
namespace {

constexpr std::size_t kSessionCharsMax = 64;
/// What clients of the lease route choose as request ids never begins so by chance.
constexpr std::string_view kLabel = "poll:";

/// The request_id of members that were given in this answer of this session.
std::string label_of(const std::string& session, std::int64_t sequence) {
    return std::string(kLabel) + session + "/" + std::to_string(sequence);
}

/// The number of the answer in a label of this session; 0: it is none.
std::int64_t sequence_in(std::string_view label, std::string_view session) {
    if (!label.starts_with(kLabel)) return 0;
    label.remove_prefix(kLabel.size());
    if (!label.starts_with(session) || label.substr(session.size(), 1) != "/") return 0;
    label.remove_prefix(session.size() + 1);
    std::int64_t sequence = 0;
    const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), sequence);
    return error == std::errc() && end == label.data() + label.size() ? sequence : 0;
}

Result<void> check_poll(const PollRequest& request) {
    const bool is_named = !request.session.empty() && request.session.size() <= kSessionCharsMax &&
                          request.session.find('/') == std::string::npos;
    if (!is_named)
        return Error{Code::kInvalidParameterValue,
                     "field 'session' must be 1..64 bytes without '/'"};
    if (request.ack < 0 || request.turn < 0)
        return Error{Code::kInvalidParameterValue, "fields 'ack' and 'turn' must not be negative"};
    return {};
}

}  // namespace

void AgentPolls::poll(const std::string& agent_id, PollRequest request, Done<PollReply> done) {
    if (const Result<void> checked = check_poll(request); !checked) return done(checked.error());
    attempts_.note_renewals(agent_id, request.running);
    LockedBatch locked(lock_);
    attempts_.count_renewals();
    Agent* const agent = agents_.find(agent_id);
    if (agent == nullptr) return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    agents_.heard(*agent, clock_.monotonic_ms());
    if (request.interrupts) return interrupt(locked, *agent, request, done);
    drop(locked, agent_id);
    take_ack(*agent, request);
    drop_heartbeat(locked, agent_id);
    const int ended = take_ended(request.running);
    const int wanted = std::clamp(request.free_slots, 0, kAgentSlotsMax) + ended;
    const auto call = std::make_shared<PollCall>(
        PollCall{.agent_id = agent_id,
                 .session = request.session,
                 .turn = request.turn,
                 .ack = request.ack,
                 .is_leaving = request.leaving,
                 .leases = {.request_id = label_of(request.session, request.ack + 1),
                            .free_slots = request.leaving ? 0 : wanted,
                            .wait_ms = request.wait_ms,
                            .port = request.port,
                            .wants_tokens = request.wants_tokens},
                 .deadline_ms = clock_.monotonic_ms() + poll_wait_ms(request.wait_ms),
                 .done = std::move(done)});
    waiting_.park(call);
    decline(locked, *agent, request.declined);
    bool is_news = false;
    HeartbeatPoll beat{.agent_id = agent_id,
                       .lost = note_lost(*agent, request.running, is_news),
                       .deadline_ms = call->deadline_ms,
                       .done = {},
                       .call = call};
    if (is_news || has_news(agent_id)) return answer(locked, call, heartbeat_reply(beat), {});
    park(std::move(beat));
    const bool has_begun = begin_lease_part(locked, call);
    const bool may_bring = has_begun && !waiting_.has_lease_poll(agent_id);
    if (request.turn <= agent->interrupted || (request.wait_ms <= 0 && !may_bring))
        answer(locked, call, {}, {});
}

/// Takes out the attempts that ended after the agent had written that it runs them, which is no
/// news to it. Each leaves a place that it did not count.
int AgentPolls::take_ended(std::vector<AttemptId>& running) const {
    return static_cast<int>(std::erase_if(running, [&](const AttemptId& id) {
        const TrialRef ref = book_.find_run(id.run_id);
        return ref.trial != nullptr && ref.trial->finish_attempt == id.attempt &&
               !ref.trial->finish_request.empty();
    }));
}

void AgentPolls::drop(LockedBatch& locked, const std::string& agent_id) {
    if (const std::shared_ptr<PollCall> older = waiting_.find_call(agent_id))
        answer(locked, older, {}, {});
}

/// The session's answers up to `ack` have arrived. If there was a later one, it is lost, and what
/// the agent was told in it is news again.
void AgentPolls::take_ack(Agent& agent, const PollRequest& request) {
    const bool is_other = agent.session != request.session;
    if (is_other) agent.interrupted = 0;
    const bool is_lost = is_other || request.ack < agent.answered;
    agent.session = request.session;
    agent.answered = request.ack;
    if (!is_lost) return;
    agent.reported_lost.clear();
    if (const auto* const held = agents_.held_by(agent.facts.agent_id))
        for (const auto& [run_id, ref] : *held)
            ref.trial->progress->holder.find_running(agent.facts.agent_id)->is_directed = false;
}

/// Goes on to other agents at once. It is no attempt that was lost: nothing of it ran.
void AgentPolls::decline(LockedBatch& locked, const Agent& agent,
                         const std::vector<AttemptId>& attempts) {
    const std::string why = "its agent on " + agent.facts.host + " takes no more trials";
    for (const AttemptId& attempt : attempts) {
        const TrialRef ref = book_.find_run(attempt.run_id);
        Member* const member = attempts_.current_member(ref, agent.facts.agent_id, attempt.attempt);
        if (member == nullptr) continue;
        if (ref.trial->progress->holder.is_gang()) {
            attempts_.lose(locked, ref, *member, why);
        } else {
            ref.study->requeue(*ref.trial, why, clock_.now_ms());
            writer_.write_trial(locked, *ref.study, *ref.trial, nullptr, {});
        }
        events_.after_change(locked, *ref.study);
    }
}

void AgentPolls::interrupt(LockedBatch& locked, Agent& agent, const PollRequest& request,
                           const Done<PollReply>& done) {
    if (agent.session == request.session)
        agent.interrupted = std::max(agent.interrupted, request.turn);
    const std::shared_ptr<PollCall> call = waiting_.find_call(agent.facts.agent_id);
    if (call != nullptr && call->session == request.session && call->turn <= request.turn)
        answer(locked, call, {}, {});
    locked.after([done, sequence = request.ack] { done(PollReply{.sequence = sequence}); });
}

std::vector<TrialRef> AgentPolls::undelivered(const std::string& agent_id,
                                              const std::string& session, std::int64_t ack) {
    std::vector<TrialRef> found;
    const auto* const held = agents_.held_by(agent_id);
    if (held == nullptr) return found;
    for (const auto& [run_id, ref] : *held) {
        const Member& member = *ref.trial->progress->holder.find_running(agent_id);
        // What is on its way to the disk goes to whoever polls when it is there.
        if (!ref.trial->sync.run_confirmed || member.expires_ms == kNotHandedOut_ms) continue;
        if (sequence_in(member.request_id, session) > ack) found.push_back(ref);
    }
    return found;
}

// --- leases --------------------------------------------------------------------------------------

/// False: no trial is wanted.
bool AgentPolls::begin_lease_part(LockedBatch& locked, const std::shared_ptr<PollCall>& call) {
    const std::vector<TrialRef> again = undelivered(call->agent_id, call->session, call->ack);
    if (!again.empty()) {
        for (const TrialRef& ref : again)
            ref.trial->progress->holder.find_running(call->agent_id)->request_id =
                call->leases.request_id;
        LeasePoll repeated = lease_part(call);
        leases_.give(locked, repeated, again);
        return true;
    }
    if (call->leases.free_slots <= 0 || phase_.draining) return false;
    leases_.begin(locked, lease_part(call));
    return true;
}

LeasePoll AgentPolls::lease_part(const std::shared_ptr<PollCall>& call) {
    return {.agent_id = call->agent_id,
            .request = call->leases,
            .deadline_ms = call->deadline_ms,
            .done =
                [this, call](Result<LeaseReply> reply) {
                    LockedBatch locked(lock_);
                    end_lease_part(locked, call, std::move(reply));
                },
            .give_up = [this, call](LockedBatch& locked) { answer(locked, call, {}, {}); },
            .call = call};
}

/// The poll may have been answered meanwhile, and the next one be there already.
void AgentPolls::end_lease_part(LockedBatch& locked, const std::shared_ptr<PollCall>& call,
                                Result<LeaseReply> reply) {
    if (!reply) return answer(locked, call, {}, {}, reply.error().text());
    std::shared_ptr<PollCall> to = call;
    if (call->is_answered) {
        const std::shared_ptr<PollCall> next = waiting_.find_call(call->agent_id);
        if (next != nullptr && next->session == call->session) to = next;
    }
    if (!to->is_answered) {
        label(*to, reply->leases);
        if (reply->leases.empty() && to != call) return;
        return answer(locked, to, {}, std::move(reply->leases));
    }
    // Found by the next poll, whose `ack` is below this number.
    const Agent* const agent = agents_.find(call->agent_id);
    if (agent == nullptr || agent->session != call->session) return;
    PollCall next;
    next.agent_id = call->agent_id;
    next.session = call->session;
    next.ack = agent->answered;
    label(next, reply->leases);
}

/// Marks what is still the agent's as given in the answer to this poll, and leaves out the rest.
void AgentPolls::label(const PollCall& call, std::vector<Lease>& leases) {
    std::erase_if(leases, [&](const Lease& lease) {
        const TrialRef ref = book_.find_run(lease.run_id);
        Member* const member = attempts_.current_member(ref, call.agent_id, lease.attempt);
        if (member != nullptr) member->request_id = label_of(call.session, call.ack + 1);
        return member == nullptr;
    });
}

void AgentPolls::gain_place(LockedBatch& locked, const std::string& agent_id) {
    const std::shared_ptr<PollCall> call = waiting_.find_call(agent_id);
    if (call == nullptr || phase_.draining || call->is_leaving) return;
    ++call->leases.free_slots;
    // The change that follows looks at who is in the line.
    if (!leases_.add_place(agent_id)) leases_.park(locked, lease_part(call));
}

// --- the answer ----------------------------------------------------------------------------------

void AgentPolls::answer(LockedBatch& locked, const std::shared_ptr<PollCall>& call,
                        HeartbeatReply news, std::vector<Lease> leases, std::string lease_error) {
    if (call->is_answered) return;
    // What the heartbeat part would say goes with it, whatever the answer is.
    const HeartbeatPoll* const beat = waiting_.find_heartbeat(call->agent_id);
    if (beat != nullptr && beat->call == call) news = heartbeat_reply(*beat);
    waiting_.withdraw(*call);
    PollReply reply{.sequence = call->ack,
                    .leases = std::move(leases),
                    .directives = std::move(news.directives),
                    .lost = std::move(news.lost),
                    .lease_error = std::move(lease_error),
                    .draining = phase_.draining};
    if (!reply.leases.empty() || !reply.directives.empty() || !reply.lost.empty()) {
        ++reply.sequence;
        // The agent will have acknowledged this number, and not what is still to come again.
        for (const TrialRef& ref : undelivered(call->agent_id, call->session, call->ack)) {
            const bool is_given =
                std::any_of(reply.leases.begin(), reply.leases.end(),
                            [&](const Lease& lease) { return lease.run_id == ref.trial->run_id; });
            Member& member = *ref.trial->progress->holder.find_running(call->agent_id);
            if (!is_given) member.request_id = label_of(call->session, reply.sequence + 1);
        }
    }
    Agent* const agent = agents_.find(call->agent_id);
    if (agent != nullptr && agent->session == call->session) agent->answered = reply.sequence;
    locked.after([done = std::move(call->done), reply = std::move(reply)] { done(reply); });
}

// --- heartbeat -----------------------------------------------------------------------------------

void AgentPolls::heartbeat(const std::string& agent_id, HeartbeatRequest request,
                           Done<HeartbeatReply> done) {
    attempts_.note_renewals(agent_id, request.running);
    LockedBatch locked(lock_);
    attempts_.count_renewals();
    Agent* const agent = agents_.find(agent_id);
    if (agent == nullptr) return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    agents_.heard(*agent, clock_.monotonic_ms());
    bool is_news = false;
    HeartbeatPoll poll{.agent_id = agent_id,
                       .lost = note_lost(*agent, request.running, is_news),
                       .deadline_ms = clock_.monotonic_ms() + poll_wait_ms(request.wait_ms),
                       .done = std::move(done)};
    const bool is_due = request.wait_ms <= 0 || is_news || has_news(agent_id);
    drop_heartbeat(locked, agent_id);
    if (is_due)
        return locked.after([answer = poll.done, reply = heartbeat_reply(poll)] { answer(reply); });
    park(std::move(poll));
}

/// What was reported to the agent already, it is busy ending; repeating it at once would spin.
std::vector<AttemptId> AgentPolls::note_lost(Agent& agent, const std::vector<AttemptId>& running,
                                             bool& is_news) {
    std::vector<AttemptId> lost;
    std::set<std::string> tokens;
    for (const AttemptId& attempt : running) {
        if (attempts_.is_current(book_.find_run(attempt.run_id), agent.facts.agent_id,
                                 attempt.attempt))
            continue;
        lost.push_back(attempt);
        tokens.insert(token_of(attempt));
    }
    std::set<std::string>& reported = agent.reported_lost;
    is_news = !std::includes(reported.begin(), reported.end(), tokens.begin(), tokens.end());
    reported = std::move(tokens);
    return lost;
}

void AgentPolls::park(HeartbeatPoll poll) {
    events_.wake_ticker(poll.deadline_ms);
    waiting_.park(std::move(poll));
}

/// An older poll of the agent belongs to a connection that is gone.
void AgentPolls::drop_heartbeat(LockedBatch& locked, const std::string& agent_id) {
    std::optional<HeartbeatPoll> older = waiting_.take_heartbeat(agent_id);
    if (!older) return;
    if (older->call) return answer(locked, older->call, {}, {});
    locked.after([done = std::move(older->done)] { done(HeartbeatReply{}); });
}

bool AgentPolls::has_news(const std::string& agent_id) {
    const auto* const held = agents_.held_by(agent_id);
    return held != nullptr && std::any_of(held->begin(), held->end(), [&](const auto& entry) {
               const TrialProgress& progress = *entry.second.trial->progress;
               return (progress.directive || progress.profile) &&
                      !progress.holder.find_running(agent_id)->is_directed;
           });
}

HeartbeatReply AgentPolls::heartbeat_reply(const HeartbeatPoll& poll) {
    HeartbeatReply reply{.directives = {}, .lost = poll.lost, .draining = phase_.draining};
    const auto* const held = agents_.held_by(poll.agent_id);
    if (held == nullptr) return reply;
    for (const auto& [run_id, ref] : *held) {
        TrialProgress& progress = *ref.trial->progress;
        Member& member = *progress.holder.find_running(poll.agent_id);
        if (progress.directive) reply.directives.push_back(*progress.directive);
        // Once, until the agent may not have got it: there is no end of the attempt to wait for.
        else if (progress.profile && !member.is_directed)
            reply.directives.push_back(*progress.profile);
        else
            continue;
        member.is_directed = true;
    }
    return reply;
}

void AgentPolls::wake(LockedBatch& locked, const std::string& agent_id) {
    std::optional<HeartbeatPoll> poll = waiting_.take_heartbeat(agent_id);
    if (!poll) return;
    if (poll->call) return answer(locked, poll->call, heartbeat_reply(*poll), {});
    locked.after([done = std::move(poll->done), reply = heartbeat_reply(*poll)] { done(reply); });
}

void AgentPolls::expire(LockedBatch& locked, std::int64_t now_ms) {
    while (const auto agent_id = waiting_.due_lease_poll(now_ms)) leases_.drop(locked, *agent_id);
    while (const auto agent_id = waiting_.due_heartbeat(now_ms)) wake(locked, *agent_id);
}

}  // namespace tune::tuner
