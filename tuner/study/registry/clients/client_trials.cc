// Trials in the hands of REST clients: ask, enqueue, report, renew and tell.
//
// A client retries what it got no response to, so each call may come twice and must have one
// effect. An ask or an enqueue with the request id of an earlier one gets the same trials. A report
// that repeats the last one is written with the same timestamp and so is the same row, which the
// store drops. A tell counts as a repeat if it has the request id of the accepted end or describes
// the same end; anything else about a trial that is over is a conflict.
//
// An attempt is fenced by its number: what names an earlier attempt is refused, and a client whose
// trial was asked with a lease has to name the attempt, since another client may hold the trial by
// now. A trial that was cancelled while its client computed is late, not wrong: the client hears
// stop, or success.
//
// Responses are sent once the change is on disk. A report waits for the pruner as well
// (after_observed), so that its verdict is in the response to the value that caused it; a tell
// waits so that every value reported before it counts.

#include "tuner/study/registry/clients/client_trials.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/study/registry/attempt_credentials.h"
#include "tuner/study/trial/lineage.h"

namespace tune::tuner {
namespace {

bool is_same_number(double a, double b) {
    return a == b || (a != a && b != b);
}

std::string trial_words(const Study& study, const Trial& trial) {
    return "trial " + std::to_string(trial.number) + " of study '" + study.name() + "'";
}

/// What its client could not know.
bool was_cancelled(const Trial& trial, int attempt) {
    return trial.state == TrialState::kCancelled && (attempt == 0 || attempt == trial.attempt);
}

/// Whether it is about the attempt whose end was accepted last. One that names no attempt is about
/// the last one, so it repeats an earlier end only while no later attempt has begun.
bool repeats_its_end(const TellRequest& request, const Trial& trial) {
    const int attempt = request.trial.attempt == 0 ? trial.attempt : request.trial.attempt;
    return attempt == trial.finish_attempt;
}

/// It may be the answer to an earlier attempt on its way once more, or be meant for this one.
Error ambiguous_repeat(const Study& study, const Trial& trial, const std::string& request_id) {
    return {Code::kResourceConflict,
            "request_id '" + request_id + "' has ended attempt " +
                std::to_string(trial.finish_attempt) + " of " + trial_words(study, trial) +
                "; to end attempt " + std::to_string(trial.attempt) +
                ", which is running, name it in 'attempt' or take another request_id"};
}

/// The metric by which trials cost something; nothing: the study has no such budget.
std::optional<std::string> cost_metric(const StudyConfig& config) {
    const auto& cost = config.budget.cost;
    if (!cost || cost->of != CostBudget::Of::kMetric) return std::nullopt;
    return cost->metric;
}

/// The metric of which final_values gives the value at `index`.
const std::string& final_metric(const StudyConfig& config, std::size_t index) {
    const std::size_t objectives = 1 + config.more_metrics.size();
    if (index == 0) return config.metric.name;
    return index < objectives ? config.more_metrics[index - 1].name
                              : config.constraints[index - objectives].metric.name;
}

/// The metric that a report is about.
Result<std::string> reported_metric(const Study& study, const std::string& named) {
    const StudyConfig& config = study.config();
    if (named.empty() && config.more_metrics.empty()) return config.metric.name;
    std::vector<std::string> measured = measured_metrics(config);
    if (auto cost = cost_metric(config)) measured.push_back(*std::move(cost));
    if (std::find(measured.begin(), measured.end(), named) != measured.end()) return named;
    std::string list;
    for (const std::string& metric : measured) list += (list.empty() ? "" : ", ") + metric;
    return Error{Code::kInvalidParameterValue,
                 "study '" + study.name() + "' measures " + list + "; " +
                     (named.empty() ? "say in 'metric' which of them is reported"
                                    : "'" + named + "' is none of them")};
}

/// What was given, objectives first, then constraints.
Result<std::vector<std::optional<double>>> final_values(const Study& study,
                                                        const TellRequest& request) {
    const StudyConfig& config = study.config();
    const std::size_t objectives = 1 + config.more_metrics.size();
    std::vector<std::optional<double>> given(objectives + config.constraints.size());
    if (request.value) {
        if (1 + request.more_values.size() != objectives)
            return Error{Code::kInvalidParameterValue,
                         "study '" + study.name() + "' has " + std::to_string(objectives) +
                             (objectives == 1 ? " objective" : " objectives") +
                             "; tell one value of each, found " +
                             std::to_string(1 + request.more_values.size())};
        given[0] = request.value;
        std::copy(request.more_values.begin(), request.more_values.end(), given.begin() + 1);
    }
    for (const auto& [name, value] : request.constraints) {
        std::size_t at = 0;
        while (at < config.constraints.size() && config.constraints[at].metric.name != name) ++at;
        if (at == config.constraints.size())
            return Error{Code::kInvalidParameterValue,
                         "study '" + study.name() + "' has no constraint on '" + name + "'"};
        given[objectives + at] = value;
    }
    return given;
}

Result<void> check_final_cost(const Study& study, const TellRequest& request) {
    if (!request.cost) return {};
    if (!cost_metric(study.config()))
        return Error{Code::kInvalidParameterValue,
                     "study '" + study.name() +
                         "' has no budget of cost by a metric; leave out 'cost' (its YAML: "
                         "budget: {cost: {metric: dollars, max: 20}})"};
    if (!std::isfinite(*request.cost) || *request.cost < 0)
        return Error{Code::kInvalidParameterValue, "'cost' must be a finite number of 0 or more"};
    return {};
}

/// 0 when none was given. The metric may be one that the study measures.
double final_cost(const Study& study, const std::vector<std::optional<double>>& given,
                  std::optional<double> cost) {
    const std::optional<std::string> metric = cost_metric(study.config());
    double most = cost.value_or(0);
    for (std::size_t i = 0; metric && i < given.size(); ++i)
        if (given[i] && final_metric(study.config(), i) == *metric && *given[i] > most)
            most = *given[i];
    return most;
}

AskedTrial asked(const Study& study, const Trial& trial) {
    return {.number = trial.number,
            .attempt = trial.attempt,
            .run_id = trial.run_id,
            .experiment_id = study.identity().experiment_id,
            .params_json = to_text(study.config().space.to_json(trial.point)),
            .seed = study.definition().trial_seed(trial.number),
            .origin = trial.origin,
            .steps = steps_of(study, trial).value_or(Steps())};
}

Result<void> check_held_by_client(const TrialRef& ref, int attempt) {
    const Trial& trial = *ref.trial;
    const std::string words = trial_words(*ref.study, trial);
    if (trial.state != TrialState::kRunning)
        return Error{Code::kResourceConflict, words + " is not running: it is " +
                                                  std::string(trial_state_name(trial.state))};
    if (attempt != 0 && attempt != trial.attempt)
        return Error{Code::kResourceConflict,
                     "attempt " + std::to_string(attempt) + " of " + words +
                         (attempt < trial.attempt ? " is over" : " has not begun") + "; attempt " +
                         std::to_string(trial.attempt) + " is running"};
    const Holder& holder = trial.progress->holder;
    if (!holder.agent_id.empty())
        return Error{Code::kResourceConflict,
                     words + " is running on the agent on " + trial.worker + ", not by a client"};
    if (attempt == 0 && holder.ttl_ms > 0)
        return Error{Code::kInvalidParameterValue,
                     words +
                         " was asked with a lease, so another client may hold it by now; name "
                         "the 'attempt' that ask returned (attempt " +
                         std::to_string(trial.attempt) + " is running)"};
    return {};
}

}  // namespace

Result<TrialRef> ClientTrials::find_named(const TrialName& name) const {
    Study* study = book_.find(name.study);
    if (study == nullptr) return book_.no_such_study(name.study);
    Trial* trial = study->find(name.number);
    if (trial == nullptr)
        return Error{Code::kResourceDoesNotExist,
                     "study '" + name.study + "' has no trial " + std::to_string(name.number)};
    return TrialRef{study, trial};
}

/// Nothing when the trial was cancelled.
Result<std::optional<TrialRef>> ClientTrials::held_by_client(const TrialName& name) const {
    TUNE_TRY(ref, find_named(name));
    if (was_cancelled(*ref.trial, name.attempt)) return std::optional<TrialRef>();
    TUNE_TRY_VOID(check_held_by_client(ref, name.attempt));
    ref.study->attendance().last_activity_ms = clock_.now_ms();
    return std::optional(ref);
}

void ClientTrials::renew_lease(Trial& trial) const {
    Holder& holder = trial.progress->holder;
    holder.expires_ms = clock_.monotonic_ms() + holder.ttl_ms;
}

// --- ask -----------------------------------------------------------------------------------------

void ClientTrials::ask(AskRequest request, Done<std::vector<AskedTrial>> done) {
    LockedBatch locked(lock_);
    Study* study = book_.find(request.study);
    if (study == nullptr)
        return locked.after([done, error = book_.no_such_study(request.study)] { done(error); });
    if (const auto usable = check_usable(*study); !usable)
        return locked.after([done, error = usable.error()] { done(error); });
    study->attendance().last_activity_ms = clock_.now_ms();
    if (request.count < 1 || request.count > kAskCountMax)
        return locked.after([done] {
            done(Error{Code::kInvalidParameterValue,
                       "count must be 1.." + std::to_string(kAskCountMax)});
        });
    if (request.lease_ttl_ms < 0 || request.lease_ttl_ms > kAskLeaseMax_ms)
        return locked.after([done] {
            done(Error{Code::kInvalidParameterValue,
                       "lease_ttl_ms must be 0.." + std::to_string(kAskLeaseMax_ms)});
        });
    const auto key = std::pair<const Study*, std::string>(study, request.request_id);
    if (const auto same = asking_.find(key); same != asking_.end() && !key.second.empty())
        return same->second->done.push_back(std::move(done));
    auto asking = std::make_shared<Asking>();
    asking->study = study;
    for (const std::uint64_t number : study->trials().started_by_request(request.request_id))
        asking->trials.push_back(study->find(number));
    asking->request = std::move(request);
    asking->done.push_back(std::move(done));
    if (!key.second.empty()) asking_[key] = asking;
    continue_ask(locked, asking);
}

void ClientTrials::continue_ask(LockedBatch& locked, const std::shared_ptr<Asking>& asking) {
    Study& study = *asking->study;
    const AskRequest& request = asking->request;
    while (!phase_.draining && asking->trials.size() < static_cast<std::size_t>(request.count)) {
        suggestions_.reuse_known(locked, study);
        if (!study.may_start(clock_.now_ms())) break;
        if (study.trials().queued().empty()) {
            const auto go_on = [this, asking](LockedBatch& later, const Result<Trial*>&) {
                continue_ask(later, asking);
            };
            return suggestions_.want(locked, study, {.settled = go_on});
        }
        asking->trials.push_back(&study.start({.holder = {.agent_id = {},
                                                          .request_id = request.request_id,
                                                          .ttl_ms = request.lease_ttl_ms,
                                                          .expires_ms = kNotHandedOut_ms},
                                               .worker = request.worker,
                                               .ask_request = request.request_id,
                                               .now_ms = clock_.now_ms()}));
    }
    end_ask(locked, asking);
}

/// Answers when all are on disk, with those that could be written. The others wait for the next
/// ask.
void ClientTrials::end_ask(LockedBatch& locked, const std::shared_ptr<Asking>& asking) {
    Study& study = *asking->study;
    const auto answer = [this, asking](LockedBatch& later,
                                       const Result<std::vector<AskedTrial>>& reply) {
        const auto found = asking_.find({asking->study, asking->request.request_id});
        if (found != asking_.end() && found->second == asking) asking_.erase(found);
        later.after([done = std::move(asking->done), reply] {
            for (const auto& one : done) one(reply);
        });
    };
    if (asking->trials.empty()) {
        // Its experiment may have been deleted while the suggestion was computed.
        if (const auto usable = check_usable(study); !usable) return answer(locked, usable.error());
        return answer(locked, std::vector<AskedTrial>());
    }
    struct Join {
        std::size_t left = 0;
        std::vector<AskedTrial> written;
        std::optional<Error> error;
    };
    auto join = std::make_shared<Join>();
    join->left = asking->trials.size();
    for (Trial* trial : asking->trials) {
        AskedTrial one = asked(study, *trial);
        if (trial->state == TrialState::kRunning) {
            one.token = issue_token(*trial);
            events_.begin_lease(*trial);
            events_.wake_ticker_for(study, *trial);
        }
        writer_.write_trial(
            locked, study, *trial, nullptr,
            [this, join, answer, &study, trial, one = std::move(one)](LockedBatch& later,
                                                                      const Result<void>& result) {
                const bool is_still_held =
                    trial->state == TrialState::kRunning && trial->attempt == one.attempt;
                if (result) {
                    join->written.push_back(one);
                } else {
                    join->error = result.error();
                    if (is_still_held) {
                        study.requeue(*trial, "could not be written", clock_.now_ms());
                        events_.follow(study, *trial);
                    }
                }
                if (--join->left > 0) return;
                if (join->written.empty()) return answer(later, *join->error);
                answer(later, std::move(join->written));
            });
    }
}

void ClientTrials::enqueue(const std::string& name, const std::string& params_json,
                           std::string request_id, Done<AskedTrial> done) {
    LockedBatch locked(lock_);
    const auto refuse = [&locked, &done](const Error& error) {
        locked.after([done, error] { done(error); });
    };
    Study* study = book_.find(name);
    if (study == nullptr) return refuse(book_.no_such_study(name));
    if (const auto usable = check_usable(*study); !usable) return refuse(usable.error());
    study->attendance().last_activity_ms = clock_.now_ms();
    if (const auto known = study->trials().enqueued_by_request(request_id))
        return answer_enqueued(locked, *study, *study->find(*known), std::move(done));
    const Result<Json> params = parse_json(params_json);
    if (!params) return refuse(params.error());
    const Result<Point> point = study->config().space.point_from_json(*params);
    if (!point) return refuse(point.error());
    enqueue_point(locked, *study, *point, std::move(request_id), std::move(done));
}

/// What the values leave open is suggested. A repeat of the request that comes meanwhile stands
/// behind it in the line, and finds the trial when its turn comes.
void ClientTrials::enqueue_point(LockedBatch& locked, Study& study, Point point,
                                 std::string request_id, Done<AskedTrial> done) {
    if (phase_.draining)
        return locked.after([done = std::move(done)] {
            done(Error{Code::kTemporarilyUnavailable, "the server is stopping; try again"});
        });
    Wish wish{.wanted = {.what = SuggestionWish::For::kGiven, .fixed = point},
              .request_id = request_id,
              .settled = {}};
    wish.settled = [this, &study, point, request_id = std::move(request_id),
                    done = std::move(done)](LockedBatch& later, const Result<Trial*>& added) {
        const auto earlier = study.trials().enqueued_by_request(request_id);
        Trial* known = earlier ? study.find(*earlier) : nullptr;
        if (known == nullptr) {
            const Error error =
                added ? Error{Code::kTemporarilyUnavailable, "the server is stopping; try again"}
                      : added.error();
            if (!added || *added == nullptr) return later.after([done, error] { done(error); });
            known = *added;
            study.note_enqueued(*known, point, request_id);
        }
        answer_enqueued(later, study, *known, done);
    };
    suggestions_.want(locked, study, std::move(wish));
}

void ClientTrials::answer_enqueued(LockedBatch& locked, Study& study, Trial& trial,
                                   Done<AskedTrial> done) {
    writer_.write_trial(locked, study, trial, nullptr,
                        [done = std::move(done), answer = asked(study, trial)](
                            LockedBatch& later, Result<void> result) {
                            later.after([done, answer, result = std::move(result)] {
                                if (!result) return done(result.error());
                                done(answer);
                            });
                        });
    events_.after_change(locked, study);
}

// --- report --------------------------------------------------------------------------------------

void ClientTrials::report(ClientReport report, Done<std::optional<Action>> done) {
    LockedBatch locked(lock_);
    const Result<std::optional<TrialRef>> ref = held_by_client(report.trial);
    if (!ref) return locked.after([done, error = ref.error()] { done(error); });
    if (!*ref) return locked.after([done] { done(std::optional(Action::kStop)); });
    Trial& trial = *(*ref)->trial;
    const Result<std::string> metric = reported_metric(*(*ref)->study, report.metric);
    if (!metric) return locked.after([done, error = metric.error()] { done(error); });

    TrialProgress& progress = *trial.progress;
    renew_lease(trial);
    std::int64_t timestamp_ms = clock_.now_ms();
    // A repeated report must be the same row, which the store then drops.
    const auto last = progress.metrics.last(*metric);
    if (last && last->step == report.step && is_same_number(last->value, report.value))
        timestamp_ms = last->timestamp_ms;
    tracker::LogBatch batch{.run_id = trial.run_id};
    batch.metrics.push_back(
        {.key = *metric, .value = report.value, .timestamp_ms = timestamp_ms, .step = report.step});
    std::vector<tracker::Command> commands;
    commands.push_back(std::move(batch));
    TrialName name = report.trial;
    name.attempt = trial.attempt;
    locked.write(std::move(commands), [this, name, done](LockedBatch& later, Result<void> result) {
        if (!result) return later.after([done, error = result.error()] { done(error); });
        commits_.after_observed(later, [this, name, done] { report_written(name, done); });
    });
}

/// The pruner has seen the report; its verdict, if any, is the trial's directive.
void ClientTrials::report_written(const TrialName& name, Done<std::optional<Action>> done) {
    std::optional<Action> action;
    {
        const LockedBatch locked(lock_);
        const Result<TrialRef> ref = find_named(name);
        const bool is_current =
            ref && ref->trial->state == TrialState::kRunning && ref->trial->attempt == name.attempt;
        if (!is_current)
            action = Action::kStop;
        else if (ref->trial->progress->directive)
            action = ref->trial->progress->directive->action;
    }
    done(action);
}

void ClientTrials::renew(const TrialName& name, Done<std::optional<Action>> done) {
    LockedBatch locked(lock_);
    const Result<std::optional<TrialRef>> ref = held_by_client(name);
    if (!ref) return locked.after([done, error = ref.error()] { done(error); });
    if (!*ref) return locked.after([done] { done(std::optional(Action::kStop)); });
    Trial& trial = *(*ref)->trial;
    renew_lease(trial);
    std::optional<Action> action;
    if (trial.progress->directive) action = trial.progress->directive->action;
    locked.after([done, action] { done(action); });
}

// --- profile -------------------------------------------------------------------------------------

void ClientTrials::profile(const TrialName& name, std::int64_t steps, Done<void> done) {
    LockedBatch locked(lock_);
    const auto refuse = [&](Error error) {
        locked.after([done, error = std::move(error)] { done(error); });
    };
    if (steps < 1 || steps > kProfileStepsMax)
        return refuse(
            {Code::kInvalidParameterValue, "steps must be 1.." + std::to_string(kProfileStepsMax)});
    const Result<TrialRef> ref = find_named(name);
    if (!ref) return refuse(ref.error());
    Trial& trial = *ref->trial;
    const std::string words = trial_words(*ref->study, trial);
    if (trial.state != TrialState::kRunning)
        return refuse({Code::kResourceConflict, words + " is not running: it is " +
                                                    std::string(trial_state_name(trial.state))});
    TrialProgress& progress = *trial.progress;
    if (progress.holder.members.empty())
        return refuse({Code::kResourceConflict,
                       words + " is in the hands of a client, which nobody can ask for a trace"});
    if (ref->study->config().resources.pool > 0)
        return refuse({Code::kResourceConflict,
                       words + " runs in a pool, whose trials cannot be told apart in a trace"});
    const std::int64_t turn = progress.profile ? progress.profile->turn + 1 : 1;
    progress.profile = Directive{.run_id = trial.run_id,
                                 .attempt = trial.attempt,
                                 .action = Action::kProfile,
                                 .reason = {},
                                 .steps = steps,
                                 .turn = turn};
    for (Member& member : progress.holder.members) {
        member.is_directed = false;
        if (!member.has_ended) events_.wake_heartbeat(locked, member.agent_id);
    }
    locked.after([done] { done({}); });
}

// --- tell ----------------------------------------------------------------------------------------

void ClientTrials::tell(TellRequest request, Done<void> done) {
    LockedBatch locked(lock_);
    commits_.after_observed(locked,
                            [this, request = std::move(request), done = std::move(done)]() mutable {
                                tell_after_metrics(std::move(request), std::move(done));
                            });
}

void ClientTrials::tell_after_metrics(TellRequest request, Done<void> done) {
    LockedBatch locked(lock_);
    const Result<TrialRef> ref = find_named(request.trial);
    if (!ref) return locked.after([done, error = ref.error()] { done(error); });
    const Trial& trial = *ref->trial;
    // The study ended meanwhile, and its client could not know: late, not wrong.
    if (was_cancelled(trial, request.trial.attempt)) return locked.after([done] { done({}); });
    const bool is_known_request =
        !request.request_id.empty() && request.request_id == trial.finish_request;
    const bool is_same_request = is_known_request && repeats_its_end(request, trial);
    const bool is_same_end =
        is_ended(trial.state) && request.state.value_or(TrialState::kComplete) == trial.state &&
        (request.trial.attempt == 0 || request.trial.attempt == trial.attempt) &&
        (!request.value ||
         (trial.value && is_same_number(*request.value, *trial.value) &&
          std::equal(request.more_values.begin(), request.more_values.end(),
                     trial.more_values.begin(), trial.more_values.end(), is_same_number)));
    if (!is_same_request && !is_same_end) {
        Result<void> applied = check_held_by_client(*ref, request.trial.attempt);
        if (applied && is_known_request && request.trial.attempt == 0)
            applied = ambiguous_repeat(*ref->study, trial, request.request_id);
        if (applied) applied = apply_tell(locked, *ref, request);
        if (!applied) return locked.after([done, error = applied.error()] { done(error); });
    }
    ref->study->attendance().last_activity_ms = clock_.now_ms();
    answer_written(locked, *ref, std::move(done));
    events_.after_change(locked, *ref->study);
}

Result<void> ClientTrials::apply_tell(LockedBatch& locked, const TrialRef& ref,
                                      const TellRequest& request) {
    Study& study = *ref.study;
    Trial& trial = *ref.trial;
    const TrialState state = request.state.value_or(TrialState::kComplete);
    if (!is_ended(state))
        return Error{Code::kInvalidParameterValue,
                     "a trial ends as complete, pruned, failed or cancelled"};
    TUNE_TRY(given, final_values(study, request));
    TUNE_TRY_VOID(check_final_cost(study, request));
    const ResultMetrics::Outcome outcome =
        trial.progress->metrics.outcome(given, trial.failed_attempt);
    if (state == TrialState::kComplete && !outcome.result && !outcome.is_nan)
        return Error{Code::kInvalidParameterValue,
                     trial_words(study, trial) + ": no value" +
                         (measured_metrics(study.config()).size() == 1
                              ? ""
                              : " of metric '" + outcome.bad_metric + "'") +
                         " was given, and none was reported" +
                         (outcome.is_of_failed
                              ? " since attempt " + std::to_string(trial.failed_attempt) + " failed"
                              : "")};
    trial.finish_request = request.request_id;
    trial.finish_attempt = trial.attempt;
    write_final_values(locked, ref, given, request.cost);
    trial.progress->cost = std::max(trial.progress->cost, final_cost(study, given, request.cost));
    const std::uint64_t best = study.front().version();
    if (state == TrialState::kFailed) {
        study.settle(trial,
                     {.request_id = request.request_id,
                      .outcome = Outcome::kFailed,
                      .reason = request.reason},
                     clock_.now_ms());
    } else if (state == TrialState::kComplete && outcome.result) {
        study.finish(trial, completed(*outcome.result, request.reason, clock_.now_ms()));
    } else if (state == TrialState::kComplete || (request.value && std::isnan(*request.value))) {
        const std::string& metric =
            state == TrialState::kComplete ? outcome.bad_metric : study.config().metric.name;
        study.finish(trial, {.state = TrialState::kFailed,
                             .reason = "metric '" + metric + "' is NaN",
                             .now_ms = clock_.now_ms()});
    } else {
        study.finish(trial, {.state = state,
                             .value = request.value,
                             .reason = request.reason,
                             .now_ms = clock_.now_ms(),
                             .more_values = request.more_values});
    }
    if (study.front().version() != best) writer_.write_best(locked, study);
    return {};
}

/// Later than what was reported, so that MLflow shows it as the latest value.
void ClientTrials::write_final_values(LockedBatch& locked, const TrialRef& ref,
                                      const std::vector<std::optional<double>>& given,
                                      std::optional<double> cost) {
    const StudyConfig& config = ref.study->config();
    tracker::LogBatch batch{.run_id = ref.trial->run_id};
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (!given[i]) continue;
        const std::string& metric = final_metric(config, i);
        const auto last = ref.trial->progress->metrics.last(metric);
        batch.metrics.push_back(
            {.key = metric,
             .value = *given[i],
             .timestamp_ms =
                 last ? std::max(clock_.now_ms(), last->timestamp_ms + 1) : clock_.now_ms(),
             .step = last ? last->step : 0});
    }
    if (cost)
        batch.metrics.push_back({.key = *cost_metric(config),
                                 .value = *cost,
                                 .timestamp_ms = clock_.now_ms(),
                                 .step = ref.trial->progress->cost_step});
    if (batch.metrics.empty()) return;
    std::vector<tracker::Command> commands;
    commands.push_back(std::move(batch));
    locked.write(std::move(commands), {});
}

/// Writes the trial as it is and answers when that is on disk; also the answer to a repeat.
void ClientTrials::answer_written(LockedBatch& locked, const TrialRef& ref, Done<void> done) {
    writer_.write_trial(locked, *ref.study, *ref.trial, nullptr,
                        [done](LockedBatch& later, Result<void> result) {
                            later.after([done, result = std::move(result)] { done(result); });
                        });
}

bool ClientTrials::names(const Study& study) const {
    return std::any_of(asking_.begin(), asking_.end(),
                       [&study](const auto& entry) { return entry.first.first == &study; });
}

}  // namespace tune::tuner
