// The agent protocol: register, lease, heartbeat, report, finish.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "tuner/config/command_template.h"
#include "tuner/study/registry/studies_impl.h"
#include "tuner/study/trial/checkpoints.h"
#include "tuner/study/trial/lineage.h"

namespace tune::tuner {
namespace {

std::string token_of(const AttemptId& attempt) {
    return attempt.run_id + "/" + std::to_string(attempt.attempt);
}

Error unknown_agent(const std::string& agent_id) {
    return {Code::kResourceDoesNotExist, "the agent '" + agent_id +
                                             "' is not registered (the server may have restarted); "
                                             "register again"};
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

std::int64_t poll_wait_ms(std::int64_t asked_ms) {
    return std::clamp<std::int64_t>(asked_ms, 0, kLongPollMax_ms);
}

}  // namespace

Studies::Impl::TrialRef Studies::Impl::find_run(std::string_view run_id) const {
    const auto found = by_run_.find(run_id);
    return found == by_run_.end() ? TrialRef{} : found->second;
}

bool Studies::Impl::is_current(const TrialRef& ref, const std::string& agent_id,
                               int attempt) const {
    return ref.trial != nullptr && ref.trial->state == TrialState::kRunning &&
           ref.trial->attempt == attempt && ref.trial->progress->holder.agent_id == agent_id;
}

// --- register ------------------------------------------------------------------------------------

void Studies::Impl::register_agent(RegisterRequest request, Done<RegisterReply> done) {
    LockedBatch locked(*this);
    if (request.agent_id.empty() || request.agent_id.size() > kKeyCharsMax)
        return locked.after([done] {
            done(Error{Code::kInvalidParameterValue, "field 'agent_id' must be 1..250 bytes"});
        });
    RegisterReply reply{.agent_id = request.agent_id,
                        .heartbeat_ms = options_.heartbeat_ms,
                        .lease_ttl_ms = options_.lease_ttl_ms,
                        .lost = {}};
    std::set<std::string> named;
    for (const AttemptId& attempt : request.running) {
        named.insert(token_of(attempt));
        const TrialRef ref = find_run(attempt.run_id);
        if (is_current(ref, request.agent_id, attempt.attempt))
            ref.trial->progress->holder.expires_ms =
                monotonic_ms() + ref.trial->progress->holder.ttl_ms;
        else
            reply.lost.push_back(attempt);
    }
    for (const auto& [name, study] : studies_) {
        const std::set<std::uint64_t> running = study->running();
        for (const std::uint64_t number : running) {
            Trial& trial = *study->find(number);
            const TrialProgress& progress = *trial.progress;
            if (progress.holder.agent_id != request.agent_id || progress.is_ending) continue;
            if (named.contains(token_of({trial.run_id, trial.attempt}))) continue;
            study->lose_attempt(trial, "its agent on " + request.host + " let go of it", now_ms());
            write_trial(locked, *study, trial, nullptr, {});
        }
        after_change(locked, *study);
    }
    if (request.slots <= 0) drop_lease_polls(locked, request.agent_id);
    Agent& agent = agents_[request.agent_id];
    agent.reported_lost.clear();
    for (const AttemptId& attempt : reply.lost) agent.reported_lost.insert(token_of(attempt));
    agent.facts = std::move(request);
    locked.after([done, reply = std::move(reply)] { done(reply); });
}

// --- lease ---------------------------------------------------------------------------------------

namespace {

/// What the command of population based training needs to know.
void add_origin(const Study& study, const Trial& trial, Lease& lease) {
    const std::optional<Steps> steps = steps_of(study, trial);
    if (!steps) return;
    lease.env.push_back({"TUNE_STEP_FROM", std::to_string(steps->from)});
    lease.env.push_back({"TUNE_STEP_TO", std::to_string(steps->to)});
    if (!trial.origin->parent) return;
    lease.env.push_back({"TUNE_PARENT", std::to_string(*trial.origin->parent)});
    lease.resume_from = trial_key(study.identity(), *trial.origin->parent);
}

}  // namespace

Lease Studies::Impl::make_lease(const Study& study, const Trial& trial) const {
    const StudyConfig& config = study.config();
    Lease lease;
    lease.study = study.name();
    lease.number = static_cast<std::int64_t>(trial.number);
    lease.attempt = trial.attempt;
    lease.run_id = trial.run_id;
    lease.experiment_id = std::to_string(study.identity().experiment_id);
    lease.params_json = to_text(config.space.to_json(trial.point));
    lease.seed = study.trial_seed(trial.number);
    lease.command = fill_command(config.command, config.space, trial.point,
                                 {.study = study.name(),
                                  .trial = trial.number,
                                  .attempt = trial.attempt,
                                  .run_id = trial.run_id,
                                  .seed = lease.seed});
    for (const auto& [name, value] : config.env) lease.env.push_back({name, value});
    lease.working_dir = config.working_dir;
    lease.checkpoint_dir = trial_key(study.identity(), trial.number);
    add_origin(study, trial, lease);
    lease.grace_ms = config.grace_ms;
    lease.timeout_ms = config.timeout_ms.value_or(0);
    lease.metric = config.metric.name;
    for (const ScrapeConfig& scrape : config.scrape)
        lease.scrape.push_back({scrape.name, scrape.pattern});
    lease.cpus_per_trial = config.budget.cpus_per_trial;
    lease.gpus_per_trial = config.budget.gpus_per_trial;
    return lease;
}

/// Makes the running attempt's credential and remembers its hash, which the next write of the trial
/// puts on disk. Empty: the agent does not want one, or the study's commands log in themselves.
std::string Studies::Impl::issue_token(const Study& study, Trial& trial,
                                       const LeaseRequest& request) {
    const auto& env = study.config().env;
    const bool logs_in = std::any_of(env.begin(), env.end(), [](const auto& variable) {
        return variable.first == "MLFLOW_TRACKING_TOKEN" ||
               variable.first == "MLFLOW_TRACKING_USERNAME" ||
               variable.first == "MLFLOW_TRACKING_AUTH";
    });
    std::string& hash = trial.progress->holder.credential_hash;
    hash.clear();
    if (!request.wants_tokens || logs_in) return {};
    std::string token = make_attempt_token(trial);
    hash = hash_of_token(token);
    return token;
}

/// The study that may start a trial and has the fewest running, so that studies share the agents.
Study* Studies::Impl::next_study(std::int64_t now) const {
    Study* next = nullptr;
    for (const auto& [name, study] : studies_) {
        if (!options_.only_study.empty() && name != options_.only_study) continue;
        if (study->config().command.empty() || !study->may_start(now)) continue;
        if (next == nullptr || study->running().size() < next->running().size()) next = study.get();
    }
    return next;
}

void Studies::Impl::lease(const std::string& agent_id, LeaseRequest request,
                          Done<LeaseReply> done) {
    LockedBatch locked(*this);
    if (!agents_.contains(agent_id))
        return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    // One poll an agent: an older one belongs to a connection that is gone.
    drop_lease_polls(locked, agent_id);
    LeasePoll poll{.agent_id = agent_id,
                   .request = std::move(request),
                   .deadline_ms = 0,
                   .done = std::move(done)};
    poll.deadline_ms = monotonic_ms() + poll_wait_ms(poll.request.wait_ms);
    if (repeat_grant(locked, poll) || grant(locked, poll)) return;
    if (write_error_)
        return locked.after([done = std::move(poll.done), error = *write_error_] { done(error); });
    if (poll.request.wait_ms <= 0)
        return locked.after([answer = std::move(poll.done)] { answer(LeaseReply{}); });
    wake_ticker(poll.deadline_ms);
    lease_polls_.push_back(std::move(poll));
}

/// The answer to this request was lost on the way: the attempts it started are given again.
bool Studies::Impl::repeat_grant(LockedBatch& locked, LeasePoll& poll) {
    if (poll.request.request_id.empty()) return false;
    std::vector<TrialRef> started;
    for (const auto& [name, study] : studies_)
        for (const std::uint64_t number : study->running()) {
            Trial& trial = *study->find(number);
            const Holder& holder = trial.progress->holder;
            if (holder.agent_id == poll.agent_id && holder.request_id == poll.request.request_id &&
                trial.sync.run_confirmed)
                started.push_back({study.get(), &trial});
        }
    if (started.empty()) return false;
    give_leases(locked, poll, started);
    return true;
}

/// Starts as many trials as the agent has places. True if it did; then it answers once they are on
/// disk. None while the disk fails: the writes that wait find out when it works again.
bool Studies::Impl::grant(LockedBatch& locked, LeasePoll& poll) {
    if (draining_ || write_error_) return false;
    std::vector<TrialRef> started;
    while (started.size() < static_cast<std::size_t>(std::max(poll.request.free_slots, 0))) {
        Study* study = next_study(now_ms());
        if (study == nullptr) break;
        reuse_known(locked, *study);
        if (!study->may_start(now_ms())) continue;
        Trial& trial =
            study->start({.holder = {.agent_id = poll.agent_id,
                                     .request_id = poll.request.request_id,
                                     .ttl_ms = options_.lease_ttl_ms,
                                     .expires_ms = monotonic_ms() + options_.lease_ttl_ms},
                          .worker = agents_[poll.agent_id].facts.host,
                          .ask_request = {},
                          .now_ms = now_ms()});
        admit(*study, trial);
        wake_ticker_for(*study, trial);
        started.push_back({study, &trial});
    }
    if (started.empty()) return false;
    give_leases(locked, poll, started);
    return true;
}

/// Answers once all is on disk, also the hashes of the credentials. One whose answer was lost gets
/// another credential: nobody has the first, and its text is kept nowhere. If none
/// could be written, the answer is the error.
void Studies::Impl::give_leases(LockedBatch& locked, LeasePoll& poll,
                                const std::vector<TrialRef>& started) {
    struct Join {
        std::size_t left = 0;
        LeaseReply reply;
        std::optional<Error> error;
        Done<LeaseReply> done;
    };
    auto join = std::make_shared<Join>();
    join->left = started.size();
    join->done = std::move(poll.done);
    for (const TrialRef& ref : started) {
        Lease lease = make_lease(*ref.study, *ref.trial);
        lease.token = issue_token(*ref.study, *ref.trial, poll.request);
        write_trial(locked, *ref.study, *ref.trial, nullptr,
                    [this, join, ref, lease = std::move(lease)](LockedBatch& later,
                                                                const Result<void>& result) {
                        if (result) {
                            join->reply.leases.push_back(lease);
                        } else {
                            join->error = result.error();
                            const bool is_still_held = ref.trial->state == TrialState::kRunning &&
                                                       ref.trial->attempt == lease.attempt;
                            if (is_still_held) {
                                ref.study->requeue(*ref.trial, "could not be written", now_ms());
                                credentials_.follow(*ref.study, *ref.trial);
                            }
                        }
                        if (--join->left > 0) return;
                        later.after([join] {
                            if (join->reply.leases.empty()) return join->done(*join->error);
                            join->done(std::move(join->reply));
                        });
                    });
    }
}

void Studies::Impl::drop_lease_polls(LockedBatch& locked, const std::string& agent_id) {
    lease_polls_.remove_if([&locked, &agent_id](LeasePoll& poll) {
        if (poll.agent_id != agent_id) return false;
        locked.after([done = std::move(poll.done)] { done(LeaseReply{}); });
        return true;
    });
}

void Studies::Impl::wake_leases(LockedBatch& locked) {
    for (auto poll = lease_polls_.begin(); poll != lease_polls_.end();) {
        const auto next = std::next(poll);
        if (grant(locked, *poll)) lease_polls_.erase(poll);
        poll = next;
    }
}

// --- heartbeat -----------------------------------------------------------------------------------

void Studies::Impl::heartbeat(const std::string& agent_id, HeartbeatRequest request,
                              Done<HeartbeatReply> done) {
    LockedBatch locked(*this);
    const auto found = agents_.find(agent_id);
    if (found == agents_.end())
        return locked.after([done, agent_id] { done(unknown_agent(agent_id)); });
    HeartbeatPoll poll{.agent_id = agent_id,
                       .lost = {},
                       .deadline_ms = monotonic_ms() + poll_wait_ms(request.wait_ms),
                       .done = std::move(done)};
    std::set<std::string> lost_tokens;
    for (const AttemptId& attempt : request.running) {
        const TrialRef ref = find_run(attempt.run_id);
        if (is_current(ref, agent_id, attempt.attempt)) {
            Holder& holder = ref.trial->progress->holder;
            holder.expires_ms = monotonic_ms() + holder.ttl_ms;
        } else {
            poll.lost.push_back(attempt);
            lost_tokens.insert(token_of(attempt));
        }
    }
    // What was reported to the agent already, it is busy ending; repeating it at once would spin.
    std::set<std::string>& reported = found->second.reported_lost;
    const bool has_new_lost =
        !std::includes(reported.begin(), reported.end(), lost_tokens.begin(), lost_tokens.end());
    reported = std::move(lost_tokens);
    const bool is_due = request.wait_ms <= 0 || has_new_lost || has_news(agent_id);
    heartbeat_polls_.remove_if([&locked, &agent_id](HeartbeatPoll& older) {
        if (older.agent_id != agent_id) return false;
        locked.after([answer = std::move(older.done)] { answer(HeartbeatReply{}); });
        return true;
    });
    if (is_due)
        return locked.after([answer = poll.done, reply = heartbeat_reply(poll)] { answer(reply); });
    wake_ticker(poll.deadline_ms);
    heartbeat_polls_.push_back(std::move(poll));
}

bool Studies::Impl::has_news(const std::string& agent_id) const {
    for (const auto& [name, study] : studies_)
        for (const std::uint64_t number : study->running()) {
            const TrialProgress& progress = *study->find(number)->progress;
            if (progress.holder.agent_id == agent_id && progress.directive &&
                !progress.directive_sent)
                return true;
        }
    return false;
}

HeartbeatReply Studies::Impl::heartbeat_reply(const HeartbeatPoll& poll) {
    HeartbeatReply reply{.directives = {}, .lost = poll.lost, .draining = draining_};
    for (const auto& [name, study] : studies_)
        for (const std::uint64_t number : study->running()) {
            TrialProgress& progress = *study->find(number)->progress;
            if (progress.holder.agent_id != poll.agent_id || !progress.directive) continue;
            progress.directive_sent = true;
            reply.directives.push_back(*progress.directive);
        }
    return reply;
}

void Studies::Impl::wake_heartbeat(LockedBatch& locked, const std::string& agent_id) {
    for (auto poll = heartbeat_polls_.begin(); poll != heartbeat_polls_.end(); ++poll) {
        if (poll->agent_id != agent_id) continue;
        locked.after(
            [done = std::move(poll->done), reply = heartbeat_reply(*poll)] { done(reply); });
        heartbeat_polls_.erase(poll);
        return;
    }
}

/// Asks whoever holds the attempt to end it. A client without a connection learns of it
/// at its next report; when the study is over its attempt is cancelled at once.
void Studies::Impl::direct(LockedBatch& locked, Study& study, Trial& trial, Action action,
                           std::string reason) {
    TrialProgress& progress = *trial.progress;
    if (progress.holder.agent_id.empty() && action == Action::kStop) {
        finish_trial(locked, study, trial,
                     {.state = TrialState::kCancelled, .reason = reason, .now_ms = now_ms()});
        return;
    }
    if (progress.directive && progress.directive->action == action) return;
    progress.directive = Directive{.run_id = trial.run_id,
                                   .attempt = trial.attempt,
                                   .action = action,
                                   .reason = std::move(reason)};
    progress.directive_sent = false;
    wake_heartbeat(locked, progress.holder.agent_id);
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
    LockedBatch locked(*this);
    for (AttemptReport& report : request.reports) {
        const std::size_t index = join->reply.results.size();
        join->reply.results.push_back({report.run_id, report.attempt, true, {}, {}});
        const TrialRef ref = find_run(report.run_id);
        const auto refuse = [join, index](const Error& error) {
            ReportResult& result = join->reply.results[index];
            result.ok = false;
            result.error_code = std::string(code_name(error.code));
            result.message = error.message;
        };
        if (!is_current(ref, agent_id, report.attempt)) {
            refuse(stale_attempt({report.run_id, report.attempt}));
            continue;
        }
        Holder& holder = ref.trial->progress->holder;
        holder.expires_ms = monotonic_ms() + holder.ttl_ms;
        ++join->left;
        locked.write(report_commands(report, now_ms()),
                     [refuse, arrive](LockedBatch& later, const Result<void>& result) {
                         if (!result) refuse(result.error());
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
    LockedBatch locked(*this);
    const TrialRef ref = find_run(attempt.run_id);
    if (ref.trial == nullptr)
        return locked.after([done, attempt] {
            done(Error{Code::kResourceDoesNotExist, "no trial has the run " + attempt.run_id});
        });
    if (is_current(ref, agent_id, attempt.attempt)) ref.trial->progress->is_ending = true;
    // The metrics of the attempt were logged before; its value is known once they are observed.
    after_observed(locked, [this, agent_id, attempt, request = std::move(request),
                            done = std::move(done)]() mutable {
        settle(agent_id, attempt, std::move(request), std::move(done));
    });
}

void Studies::Impl::settle(const std::string& agent_id, const AttemptId& attempt,
                           FinishRequest request, Done<FinishReply> done) {
    LockedBatch locked(*this);
    const TrialRef ref = find_run(attempt.run_id);
    const bool is_repeat = !request.request_id.empty() &&
                           ref.trial->finish_request == request.request_id &&
                           ref.trial->finish_attempt == attempt.attempt;
    if (is_repeat) return answer_finish(locked, ref, nullptr, std::move(done));
    if (!is_current(ref, agent_id, attempt.attempt))
        return locked.after([done, attempt] { done(stale_attempt(attempt)); });
    Study& study = *ref.study;
    const std::uint64_t best = study.best_version();
    ref.trial->progress->is_unheard = credentials_.is_unheard(attempt.run_id);
    if (request.outcome == Outcome::kFailed && ref.trial->progress->is_unheard)
        request.reason += remark_on_address(request.reason, attempt.run_id);
    study.settle(*ref.trial, request, now_ms());
    answer_finish(locked, ref, &request, std::move(done));
    if (study.best_version() != best) write_best(locked, study);
    after_change(locked, study);
}

/// Answers once the end is on disk, and with it all that was decided before. Which checkpoints are
/// still needed holds then; but not while something waits to be written again: after a restart an
/// older trial might be its member's last one.
void Studies::Impl::answer_finish(LockedBatch& locked, const TrialRef& ref,
                                  const FinishRequest* finish, Done<FinishReply> done) {
    write_trial(
        locked, *ref.study, *ref.trial, finish,
        [this, done, reply = FinishReply{needed_checkpoints(*ref.study)}](
            LockedBatch& later, const Result<void>& result) {
            if (!result) return later.after([done, error = result.error()] { done(error); });
            const bool all_written = unsynced_trials_ == 0 && unsynced_studies_.empty();
            later.after([done, answer = all_written ? reply : FinishReply()] { done(answer); });
        });
}

}  // namespace tune::tuner
