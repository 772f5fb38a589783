// The agent protocol: register, heartbeat, report, finish. Leases: studies_leases.cc.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "base/text/number_text.h"
#include "tuner/study/registry/studies_impl.h"
#include "tuner/study/trial/checkpoints.h"

namespace tune::tuner {
namespace {

/// Whether the attempt runs on elsewhere, and this finish of one agent's part has been taken.
bool was_told(const TrialRef& ref, const AttemptId& attempt, const std::string& request_id) {
    if (request_id.empty() || ref.trial->state != TrialState::kRunning) return false;
    if (ref.trial->attempt != attempt.attempt) return false;
    const std::vector<Member>& members = ref.trial->progress->holder.members;
    return std::any_of(members.begin(), members.end(), [&](const Member& member) {
        return member.has_ended && member.finish_request == request_id;
    });
}

/// Whether this finish has been taken before: its answer was lost.
bool is_repeated(const TrialRef& ref, const AttemptId& attempt, const std::string& request_id) {
    if (ref.trial == nullptr || request_id.empty()) return false;
    const bool was_last =
        ref.trial->finish_request == request_id && ref.trial->finish_attempt == attempt.attempt;
    return was_last || was_told(ref, attempt, request_id);
}

std::string token_of(const AttemptId& attempt) {
    return attempt.run_id + "/" + std::to_string(attempt.attempt);
}

Error stale_attempt(const AttemptId& attempt) {
    return {Code::kResourceConflict,
            "attempt " + std::to_string(attempt.attempt) + " of run " + attempt.run_id +
                " is not the current one: it has ended or was given to another agent"};
}

/// A remark for scripts whose MLflow client talks to another server or folder: it does not find the
/// trial's run there. Here it would have.
std::string remark_on_address(const std::string& reason, const std::string& run_id) {
    const bool misses_run =
        reason.find(run_id) != std::string::npos && reason.find("not found") != std::string::npos;
    const bool has_folder = reason.find("The filesystem tracking backend") != std::string::npos;
    if (!misses_run && !has_folder) return {};
    return "; the script sets another tracking URI (mlflow.set_tracking_uri), where the trial's "
           "run is not: take that line out, so that it follows MLFLOW_TRACKING_URI";
}

}  // namespace

Error unknown_agent(const std::string& agent_id) {
    return {Code::kResourceDoesNotExist, "the agent '" + agent_id +
                                             "' is not registered (the server may have restarted); "
                                             "register again"};
}

std::int64_t poll_wait_ms(std::int64_t asked_ms) {
    return std::clamp<std::int64_t>(asked_ms, 0, kLongPollMax_ms);
}

void Studies::Impl::renew_lease(const TrialRef& ref, Member& member) const {
    member.expires_ms = monotonic_ms() + ref.trial->progress->holder.ttl_ms;
}

bool Studies::Impl::is_current(const TrialRef& ref, const std::string& agent_id,
                               int attempt) const {
    return current_member(ref, agent_id, attempt) != nullptr;
}

// --- register ------------------------------------------------------------------------------------

void Studies::Impl::register_agent(RegisterRequest request, Done<RegisterReply> done) {
    LockedBatch locked(lock_);
    if (request.agent_id.empty() || request.agent_id.size() > kKeyCharsMax)
        return locked.after([done] {
            done(Error{Code::kInvalidParameterValue, "field 'agent_id' must be 1..250 bytes"});
        });
    if (agents_.find(request.agent_id) == nullptr && agents_.is_full())
        return locked.after([done] {
            done(Error{Code::kRequestLimitExceeded,
                       "the server knows " + std::to_string(kAgentsMax) +
                           " agents already, its limit; agents that are silent are forgotten "
                           "after " +
                           duration_text(kAgentForgotten_ms)});
        });
    RegisterReply reply{.agent_id = request.agent_id,
                        .heartbeat_ms = options_.heartbeat_ms,
                        .lease_ttl_ms = options_.lease_ttl_ms,
                        .lost = {}};
    for (const AttemptId& attempt : request.running) {
        const TrialRef ref = book_.find_run(attempt.run_id);
        if (Member* const member = current_member(ref, request.agent_id, attempt.attempt))
            renew_lease(ref, *member);
        else
            reply.lost.push_back(attempt);
    }
    // An agent that was started again hears nothing of what its predecessor waited for, nor
    // does that get what is let go here.
    const Agent* const before = agents_.find(request.agent_id);
    const bool is_started_again = before != nullptr && before->facts.pid != request.pid;
    if (request.slots <= 0 || is_started_again) drop_lease_poll(locked, request.agent_id);
    const auto poll = poll_calls_.find(request.agent_id);
    const bool is_predecessors =
        poll != poll_calls_.end() && (is_started_again || poll->second->session != request.session);
    if (request.slots <= 0 || is_predecessors) drop_poll(locked, request.agent_id);
    let_go(locked, request);
    const std::string id = request.agent_id;
    if (agents_.add(std::move(request), monotonic_ms())) note_obstacles();
    Agent& agent = *agents_.find(id);
    agent.reported_lost.clear();
    for (const AttemptId& attempt : reply.lost) agent.reported_lost.insert(token_of(attempt));
    locked.after([done, reply = std::move(reply)] { done(reply); });
}

/// Attempts that the agent holds and does not name are lost, but for those of an answer that did
/// not arrive: its next poll brings them.
void Studies::Impl::let_go(LockedBatch& locked, const RegisterRequest& request) {
    std::set<std::string> named;
    for (const AttemptId& attempt : request.running) named.insert(token_of(attempt));
    if (!request.session.empty() && request.slots > 0)
        for (const TrialRef& ref : undelivered(request.agent_id, request.session, request.ack))
            named.insert(token_of({ref.trial->run_id, ref.trial->attempt}));
    std::vector<TrialRef> held;
    if (const auto* const known = agents_.held_by(request.agent_id))
        for (const auto& [run_id, ref] : *known) held.push_back(ref);
    std::set<Study*> changed;
    for (const TrialRef& ref : held) {
        Trial& trial = *ref.trial;
        Member& member = *trial.progress->holder.find_running(request.agent_id);
        if (member.is_ending || named.contains(token_of({trial.run_id, trial.attempt}))) continue;
        lose_part(locked, ref, member, "its agent on " + request.host + " let go of it");
        changed.insert(ref.study);
    }
    for (Study* study : changed) after_change(locked, *study);
}

// --- heartbeat -----------------------------------------------------------------------------------

void Studies::Impl::heartbeat(const std::string& agent_id, HeartbeatRequest request,
                              Done<HeartbeatReply> done) {
    renewals_.add(agent_id, request.running);
    LockedBatch locked(lock_);
    count_renewals();
    Agent* const agent = agents_.find(agent_id);
    if (agent == nullptr) return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    agents_.heard(*agent, monotonic_ms());
    bool is_news = false;
    HeartbeatPoll poll{.agent_id = agent_id,
                       .lost = note_lost(*agent, request.running, is_news),
                       .deadline_ms = monotonic_ms() + poll_wait_ms(request.wait_ms),
                       .done = std::move(done)};
    const bool is_due = request.wait_ms <= 0 || is_news || has_news(agent_id);
    drop_heartbeat_poll(locked, agent_id);
    if (is_due)
        return locked.after([answer = poll.done, reply = heartbeat_reply(poll)] { answer(reply); });
    park_heartbeat(std::move(poll));
}

/// What was reported to the agent already, it is busy ending; repeating it at once would spin.
std::vector<AttemptId> Studies::Impl::note_lost(Agent& agent, const std::vector<AttemptId>& running,
                                                bool& is_news) {
    std::vector<AttemptId> lost;
    std::set<std::string> tokens;
    for (const AttemptId& attempt : running) {
        if (is_current(book_.find_run(attempt.run_id), agent.facts.agent_id, attempt.attempt))
            continue;
        lost.push_back(attempt);
        tokens.insert(token_of(attempt));
    }
    std::set<std::string>& reported = agent.reported_lost;
    is_news = !std::includes(reported.begin(), reported.end(), tokens.begin(), tokens.end());
    reported = std::move(tokens);
    return lost;
}

void Studies::Impl::park_heartbeat(HeartbeatPoll poll) {
    wake_ticker(poll.deadline_ms);
    heartbeat_poll_ends_.set(poll.agent_id, poll.deadline_ms);
    const std::string agent_id = poll.agent_id;
    heartbeat_polls_.insert_or_assign(agent_id, std::move(poll));
}

/// An older poll of the agent belongs to a connection that is gone.
void Studies::Impl::drop_heartbeat_poll(LockedBatch& locked, const std::string& agent_id) {
    const auto older = heartbeat_polls_.extract(agent_id);
    if (!older) return;
    heartbeat_poll_ends_.erase(agent_id);
    if (older.mapped().call) return answer_poll(locked, older.mapped().call, {}, {});
    locked.after([answer = std::move(older.mapped().done)] { answer(HeartbeatReply{}); });
}

void Studies::Impl::count_renewals() {
    for (const Renewal& renewal : renewals_.take()) {
        const TrialRef ref = book_.find_run(renewal.attempt.run_id);
        if (Member* const member = current_member(ref, renewal.agent_id, renewal.attempt.attempt))
            renew_lease(ref, *member);
    }
}

bool Studies::Impl::has_news(const std::string& agent_id) {
    const auto* const held = agents_.held_by(agent_id);
    return held != nullptr && std::any_of(held->begin(), held->end(), [&](const auto& entry) {
               const TrialProgress& progress = *entry.second.trial->progress;
               return progress.directive && !progress.holder.find_running(agent_id)->is_directed;
           });
}

HeartbeatReply Studies::Impl::heartbeat_reply(const HeartbeatPoll& poll) {
    HeartbeatReply reply{.directives = {}, .lost = poll.lost, .draining = phase_.draining};
    const auto* const held = agents_.held_by(poll.agent_id);
    if (held == nullptr) return reply;
    for (const auto& [run_id, ref] : *held) {
        TrialProgress& progress = *ref.trial->progress;
        if (!progress.directive) continue;
        progress.holder.find_running(poll.agent_id)->is_directed = true;
        reply.directives.push_back(*progress.directive);
    }
    return reply;
}

void Studies::Impl::wake_heartbeat(LockedBatch& locked, const std::string& agent_id) {
    const auto poll = heartbeat_polls_.extract(agent_id);
    if (!poll) return;
    heartbeat_poll_ends_.erase(agent_id);
    if (poll.mapped().call)
        return answer_poll(locked, poll.mapped().call, heartbeat_reply(poll.mapped()), {});
    locked.after([done = std::move(poll.mapped().done), reply = heartbeat_reply(poll.mapped())] {
        done(reply);
    });
}

/// Asks whoever holds the attempt to end it. A client without a connection learns of it
/// at its next report; when the study is over its attempt is cancelled at once.
void Studies::Impl::direct(LockedBatch& locked, Study& study, Trial& trial, Action action,
                           std::string reason) {
    TrialProgress& progress = *trial.progress;
    if (progress.holder.agent_id.empty() && action == Action::kStop) {
        writer_.finish_trial(
            locked, study, trial,
            {.state = TrialState::kCancelled, .reason = reason, .now_ms = now_ms()});
        return;
    }
    if (progress.directive && progress.directive->action == action) return;
    progress.directive = Directive{.run_id = trial.run_id,
                                   .attempt = trial.attempt,
                                   .action = action,
                                   .reason = std::move(reason)};
    for (Member& member : progress.holder.members) {
        member.is_directed = false;
        if (!member.has_ended) wake_heartbeat(locked, member.agent_id);
    }
}

// --- report and finish ---------------------------------------------------------------------------

void Studies::Impl::report_metrics(const std::string& agent_id, ReportRequest request,
                                   Done<ReportReply> done) {
    struct Join {
        std::size_t left = 1;
        ReportReply reply;
    };
    auto join = std::make_shared<Join>();
    const auto arrive = [join, done](LockedBatch& locked) {
        if (--join->left == 0) locked.after([join, done] { done(std::move(join->reply)); });
    };
    LockedBatch locked(lock_);
    for (AttemptReport& report : request.reports) {
        const std::size_t index = join->reply.results.size();
        join->reply.results.push_back({report.run_id, report.attempt, true, {}, {}});
        const TrialRef ref = book_.find_run(report.run_id);
        const auto refuse = [join, index](const Error& error) {
            ReportResult& result = join->reply.results[index];
            result.ok = false;
            result.error_code = std::string(code_name(error.code));
            result.message = error.message;
        };
        Member* const member = current_member(ref, agent_id, report.attempt);
        // What was reported before it is on disk as well.
        const bool is_repeat =
            member == nullptr && report.finish &&
            is_repeated(ref, {report.run_id, report.attempt}, report.finish->request_id);
        if (member == nullptr && !is_repeat) {
            refuse(stale_attempt({report.run_id, report.attempt}));
            continue;
        }
        if (member != nullptr) renew_lease(ref, *member);
        // Who has rank 0 reports for all.
        const bool is_front =
            member == nullptr || member == &ref.trial->progress->holder.members.front();
        if (!is_front) continue;
        ++join->left;
        const auto end = [this, join, index, agent_id, refuse, arrive,
                          id = AttemptId{report.run_id, report.attempt},
                          finish = report.finish](LockedBatch& later) {
            if (!finish) return arrive(later);
            // A call of its own: this one holds the lock.
            later.after([=, this] {
                this->finish(agent_id, id, *finish, [=, this](const Result<FinishReply>& reply) {
                    LockedBatch answered(lock_);
                    if (!reply) refuse(reply.error());
                    ReportResult& result = join->reply.results[index];
                    result.finished = reply.has_value();
                    if (reply) result.checkpoints = reply->checkpoints;
                    arrive(answered);
                });
            });
        };
        std::vector<tracker::Command> commands;
        if (!is_repeat) commands = report_commands(report, now_ms());
        if (commands.empty()) {
            end(locked);
            continue;
        }
        locked.write(std::move(commands),
                     [refuse, arrive, end](LockedBatch& later, const Result<void>& result) {
                         if (result) return end(later);
                         refuse(result.error());
                         arrive(later);
                     });
    }
    arrive(locked);
}

/// In batches that the store takes.
std::vector<tracker::Command> Studies::Impl::report_commands(const AttemptReport& report,
                                                             std::int64_t now) {
    std::vector<tracker::Command> commands;
    tracker::LogBatch batch{.run_id = report.run_id};
    for (const ReportedMetric& metric : report.metrics) {
        batch.metrics.push_back(
            {.key = metric.key,
             .value = metric.value,
             .timestamp_ms = metric.timestamp_ms != 0 ? metric.timestamp_ms : now,
             .step = metric.step});
        if (batch.metrics.size() < kBatchMetricsMax) continue;
        commands.push_back(std::exchange(batch, {.run_id = report.run_id}));
    }
    for (const ReportedTag& tag : report.tags) {
        if (batch.tags.size() >= kBatchTagsMax)
            commands.push_back(std::exchange(batch, {.run_id = report.run_id}));
        batch.tags.push_back({tag.key, tag.value});
    }
    if (!batch.metrics.empty()) commands.push_back(std::exchange(batch, {.run_id = report.run_id}));
    for (const ReportedParam& param : report.params) {
        batch.params.push_back({param.key, param.value});
        if (batch.params.size() < kBatchParamsMax) continue;
        commands.push_back(std::exchange(batch, {.run_id = report.run_id}));
    }
    if (!batch.params.empty()) commands.push_back(std::move(batch));
    return commands;
}

void Studies::Impl::finish(const std::string& agent_id, const AttemptId& attempt,
                           FinishRequest request, Done<FinishReply> done) {
    LockedBatch locked(lock_);
    const TrialRef ref = book_.find_run(attempt.run_id);
    if (ref.trial == nullptr)
        return locked.after([done, attempt] {
            done(Error{Code::kResourceDoesNotExist, "no trial has the run " + attempt.run_id});
        });
    if (Member* const member = current_member(ref, agent_id, attempt.attempt))
        member->is_ending = true;
    // The metrics of the attempt were logged before; its value is known once they are observed.
    commits_.after_observed(locked, [this, agent_id, attempt, request = std::move(request),
                                     done = std::move(done)]() mutable {
        settle(agent_id, attempt, std::move(request), std::move(done));
    });
}

void Studies::Impl::settle(const std::string& agent_id, const AttemptId& attempt,
                           FinishRequest request, Done<FinishReply> done) {
    LockedBatch locked(lock_);
    const TrialRef ref = book_.find_run(attempt.run_id);
    if (ref.trial == nullptr)  // its study was removed meanwhile
        return locked.after([done, attempt] { done(stale_attempt(attempt)); });
    if (is_repeated(ref, attempt, request.request_id))
        return answer_finish(locked, ref, nullptr, std::move(done));
    Member* const member = current_member(ref, agent_id, attempt.attempt);
    if (member == nullptr) return locked.after([done, attempt] { done(stale_attempt(attempt)); });
    Study& study = *ref.study;
    const std::uint64_t best = study.best_version();
    // One that could not be begun leaves its place to none yet: the agent says when.
    const bool is_place_free = request.outcome != Outcome::kLost;
    ref.trial->progress->is_unheard = credentials_.is_unheard(attempt.run_id);
    if (request.outcome == Outcome::kFailed && ref.trial->progress->is_unheard)
        request.reason += remark_on_address(request.reason, attempt.run_id);
    if (ref.trial->progress->holder.is_gang()) {
        const auto verdict = end_part(locked, ref, *member, std::move(request));
        answer_finish(locked, ref, verdict ? &*verdict : nullptr, std::move(done));
    } else {
        settle_trial(ref, request);
        answer_finish(locked, ref, &request, std::move(done));
    }
    if (study.best_version() != best) writer_.write_best(locked, study);
    if (is_place_free) gain_place(locked, agent_id);
    after_change(locked, study);
}

/// Answers once the end is on disk, and with it all that was decided before. Which checkpoints are
/// still needed holds then; but not while something waits to be written again: after a restart an
/// older trial might be its member's last one.
void Studies::Impl::answer_finish(LockedBatch& locked, const TrialRef& ref,
                                  const FinishRequest* finish, Done<FinishReply> done) {
    writer_.write_trial(
        locked, *ref.study, *ref.trial, finish,
        [this, done, reply = FinishReply{needed_checkpoints(*ref.study)}](
            LockedBatch& later, const Result<void>& result) {
            if (!result) return later.after([done, error = result.error()] { done(error); });
            const bool all_written = writer_.is_all_written();
            later.after([done, answer = all_written ? reply : FinishReply()] { done(answer); });
        });
}

}  // namespace tune::tuner
