// What agents say. A report is answered once it is on disk; the end of an attempt is settled once
// the metrics before it have been observed, so that its value is known. A report of an attempt that
// is not the current one is refused, but for one whose answer was lost: it gets the same again.

#include "tuner/study/registry/broker/agent_calls.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/limits.h"
#include "base/text/number_text.h"
#include "tuner/study/registry/broker/lease_terms.h"
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

Error stale_attempt(const AttemptId& attempt) {
    return {Code::kResourceConflict,
            "attempt " + std::to_string(attempt.attempt) + " of run " + attempt.run_id +
                " is not the current one: it has ended or was given to another agent"};
}

/// The server of "API request to http://host:5000/api/2.0/mlflow/... failed with exception", which
/// MLflow says when nobody answers there; empty: it does not say so.
std::string unreachable_server(const std::string& reason) {
    static constexpr std::string_view kBefore = "API request to ";
    const std::size_t begin = reason.find(kBefore);
    const std::size_t end = reason.find("/api/2.0/mlflow", begin);
    if (begin == std::string::npos || end == std::string::npos) return {};
    if (reason.find("failed with exception", end) == std::string::npos) return {};
    return reason.substr(begin + kBefore.size(), end - begin - kBefore.size());
}

/// A remark for scripts whose MLflow client talks to another server or folder, where it does not
/// find the trial's run. Here it would have.
std::string remark_on_address(const std::string& reason, const std::string& run_id) {
    static constexpr std::string_view kTakeOut =
        ": take that line out, so that it follows MLFLOW_TRACKING_URI";
    const auto says = [&reason](const std::string& words) {
        return reason.find(words) != std::string::npos;
    };
    // As MLflow says it with a server or a database, and with a folder.
    const bool misses_run =
        says("Run with id=" + run_id + " not found") || says("Run '" + run_id + "' not found");
    if (misses_run || says("The filesystem tracking backend"))
        return "; the script sets another tracking URI (mlflow.set_tracking_uri), where the "
               "trial's run is not" +
               std::string(kTakeOut);
    if (const std::string server = unreachable_server(reason); !server.empty())
        return "; nothing of this attempt arrived here: unless " + server +
               " is this server, the script sets another tracking URI (mlflow.set_tracking_uri)" +
               std::string(kTakeOut);
    return {};
}

/// In batches that the store takes.
std::vector<tracker::Command> report_commands(const AttemptReport& report, std::int64_t now) {
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

}  // namespace

void AgentCalls::register_agent(RegisterRequest request, Done<RegisterReply> done) {
    if (const auto checked = check_registration(request); !checked) return done(checked.error());
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
    if (!agents_.has_room_for(request))
        return locked.after([done] {
            done(Error{Code::kRequestLimitExceeded,
                       "the registrations of all agents have reached " +
                           std::to_string(kAgentsBytesMax >> 20) +
                           " MiB, the server's limit; agents that are silent are forgotten after " +
                           duration_text(kAgentForgotten_ms)});
        });
    RegisterReply reply{.agent_id = request.agent_id,
                        .heartbeat_ms = options_.heartbeat_ms,
                        .lease_ttl_ms = options_.lease_ttl_ms,
                        .lost = {}};
    for (const AttemptId& attempt : request.running) {
        const TrialRef ref = book_.find_run(attempt.run_id);
        if (Member* const member = attempts_.current_member(ref, request.agent_id, attempt.attempt))
            attempts_.renew(ref, *member);
        else
            reply.lost.push_back(attempt);
    }
    // An agent that was started again hears nothing of what its predecessor waited for, nor
    // does that get what is let go here.
    const Agent* const before = agents_.find(request.agent_id);
    const bool is_started_again = before != nullptr && before->facts.pid != request.pid;
    if (request.slots <= 0 || is_started_again) leases_.drop(locked, request.agent_id);
    const std::shared_ptr<PollCall> poll = waiting_.find_call(request.agent_id);
    const bool is_predecessors =
        poll != nullptr && (is_started_again || poll->session != request.session);
    if (request.slots <= 0 || is_predecessors) polls_.drop(locked, request.agent_id);
    let_go(locked, request);
    const std::string id = request.agent_id;
    const bool has_left = request.leaving && request.slots <= 0 && agents_.held_by(id) == nullptr;
    if (has_left ? agents_.forget(id) : agents_.add(std::move(request), clock_.monotonic_ms()))
        turns_.note_obstacles();
    if (Agent* const agent = agents_.find(id)) {
        agent->reported_lost.clear();
        for (const AttemptId& attempt : reply.lost) agent->reported_lost.insert(token_of(attempt));
    }
    locked.after([done, reply = std::move(reply)] { done(reply); });
}

/// Attempts that the agent holds and does not name are lost, but for those of an answer that did
/// not arrive: its next poll brings them.
void AgentCalls::let_go(LockedBatch& locked, const RegisterRequest& request) {
    std::set<std::string> named;
    for (const AttemptId& attempt : request.running) named.insert(token_of(attempt));
    if (!request.session.empty() && request.slots > 0)
        for (const TrialRef& ref :
             polls_.undelivered(request.agent_id, request.session, request.ack))
            named.insert(token_of({ref.trial->run_id, ref.trial->attempt}));
    std::vector<TrialRef> held;
    if (const auto* const known = agents_.held_by(request.agent_id))
        for (const auto& [run_id, ref] : *known) held.push_back(ref);
    std::set<Study*> changed;
    for (const TrialRef& ref : held) {
        Trial& trial = *ref.trial;
        Member& member = *trial.progress->holder.find_running(request.agent_id);
        if (member.is_ending || named.contains(token_of({trial.run_id, trial.attempt}))) continue;
        attempts_.lose(locked, ref, member, "its agent on " + request.host + " let go of it");
        changed.insert(ref.study);
    }
    for (Study* study : changed) events_.after_change(locked, *study);
}

void AgentCalls::report_metrics(const std::string& agent_id, ReportRequest request,
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
        Member* const member = attempts_.current_member(ref, agent_id, report.attempt);
        // What was reported before it is on disk as well.
        const bool is_repeat =
            member == nullptr && report.finish &&
            is_repeated(ref, {report.run_id, report.attempt}, report.finish->request_id);
        if (member == nullptr && !is_repeat) {
            refuse(stale_attempt({report.run_id, report.attempt}));
            continue;
        }
        if (member != nullptr) attempts_.renew(ref, *member);
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
        if (!is_repeat) commands = report_commands(report, clock_.now_ms());
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

void AgentCalls::finish(const std::string& agent_id, const AttemptId& attempt,
                        FinishRequest request, Done<FinishReply> done) {
    LockedBatch locked(lock_);
    const TrialRef ref = book_.find_run(attempt.run_id);
    if (ref.trial == nullptr)
        return locked.after([done, attempt] {
            done(Error{Code::kResourceDoesNotExist, "no trial has the run " + attempt.run_id});
        });
    if (Member* const member = attempts_.current_member(ref, agent_id, attempt.attempt))
        member->is_ending = true;
    // The metrics of the attempt were logged before; its value is known once they are observed.
    commits_.after_observed(locked, [this, agent_id, attempt, request = std::move(request),
                                     done = std::move(done)]() mutable {
        settle(agent_id, attempt, std::move(request), std::move(done));
    });
}

void AgentCalls::settle(const std::string& agent_id, const AttemptId& attempt,
                        FinishRequest request, Done<FinishReply> done) {
    LockedBatch locked(lock_);
    const TrialRef ref = book_.find_run(attempt.run_id);
    if (ref.trial == nullptr)  // its study was removed meanwhile
        return locked.after([done, attempt] { done(stale_attempt(attempt)); });
    if (is_repeated(ref, attempt, request.request_id))
        return answer_finish(locked, ref, nullptr, std::move(done));
    Member* const member = attempts_.current_member(ref, agent_id, attempt.attempt);
    if (member == nullptr) return locked.after([done, attempt] { done(stale_attempt(attempt)); });
    Study& study = *ref.study;
    study.attendance().last_activity_ms =
        clock_.now_ms();  // it asks for the next trial in a moment
    const std::uint64_t best = study.front().version();
    // One that could not be begun leaves its place to none yet: the agent says when.
    const bool is_place_free = request.outcome != Outcome::kLost;
    ref.trial->progress->is_unheard = credentials_.is_unheard(attempt.run_id);
    if (request.outcome == Outcome::kFailed && ref.trial->progress->is_unheard)
        request.reason += remark_on_address(request.reason, attempt.run_id);
    if (ref.trial->progress->holder.is_gang()) {
        const auto verdict = attempts_.end_part(locked, ref, *member, std::move(request));
        answer_finish(locked, ref, verdict ? &*verdict : nullptr, std::move(done));
    } else {
        attempts_.settle(ref, request);
        answer_finish(locked, ref, &request, std::move(done));
    }
    if (study.front().version() != best) writer_.write_best(locked, study);
    if (is_place_free) polls_.gain_place(locked, agent_id);
    events_.after_change(locked, study);
}

/// Answers once the end is on disk, and with it all that was decided before. Which checkpoints are
/// still needed holds then; but not while something waits to be written again: after a restart an
/// older trial might be its member's last one.
void AgentCalls::answer_finish(LockedBatch& locked, const TrialRef& ref,
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
