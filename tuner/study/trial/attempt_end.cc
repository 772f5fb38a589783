// A failure of the program is tried again as often as the study says, a lost machine more often and
// without counting as one. What an attempt measured before it failed is no result of the trial.

#include "tuner/study/trial/attempt_end.h"

#include <algorithm>
#include <utility>

namespace tune::tuner {
namespace {

TrialEnd failed(std::string reason, std::int64_t now_ms) {
    return {.state = TrialState::kFailed, .reason = std::move(reason), .now_ms = now_ms};
}

TrialEnd done_end(const Trial& trial, const std::string& remark, std::int64_t now_ms) {
    const ResultMetrics::Outcome outcome =
        trial.progress->metrics.outcome({}, trial.failed_attempt);
    if (outcome.result) return completed(*outcome.result, {}, now_ms);
    if (outcome.is_nan) return failed("metric '" + outcome.bad_metric + "' is NaN", now_ms);
    std::string reason = metric_never_arrived(outcome.bad_metric, trial.progress->other_metrics,
                                              trial.progress->is_unheard);
    if (outcome.is_of_failed)
        reason += " What attempt " + std::to_string(trial.failed_attempt) +
                  " measured before it failed does not count.";
    if (!remark.empty()) reason = remark + "; " + reason;
    return failed(std::move(reason), now_ms);
}

AttemptEnd retry_or_fail(Trial& trial, RetryOn why, std::string reason, const RetryConfig& retry,
                         std::int64_t now_ms) {
    ++trial.user_failures;
    const bool is_retried = std::find(retry.on.begin(), retry.on.end(), why) != retry.on.end();
    if (!is_retried || trial.user_failures > retry.max)
        return {.end = failed(std::move(reason), now_ms)};
    trial.failed_attempt = trial.attempt;
    return {.reason = std::move(reason)};
}

}  // namespace

TrialEnd completed(const TrialResult& result, std::string reason, std::int64_t now_ms) {
    return {.state = TrialState::kComplete,
            .value = result.value,
            .reason = std::move(reason),
            .now_ms = now_ms,
            .more_values = result.more_values,
            .constraint_values = result.constraint_values};
}

AttemptEnd attempt_end(Trial& trial, const FinishRequest& request, const StudyConfig& config,
                       std::int64_t now_ms) {
    trial.finish_request = request.request_id;
    trial.finish_attempt = trial.attempt;
    const auto ends_as = [&](TrialState state) {
        return AttemptEnd{.end =
                              TrialEnd{.state = state, .reason = request.reason, .now_ms = now_ms}};
    };
    switch (request.outcome) {
        case Outcome::kDone: return {.end = done_end(trial, request.reason, now_ms)};
        case Outcome::kPruned: return ends_as(TrialState::kPruned);
        case Outcome::kCancelled: return ends_as(TrialState::kCancelled);
        case Outcome::kPreempted: return {.reason = request.reason};
        case Outcome::kLost: return lost_attempt_end(trial, request.reason, now_ms);
        case Outcome::kBadConfig: return ends_as(TrialState::kFailed);
        case Outcome::kOom:
            return retry_or_fail(trial, RetryOn::kOom, request.reason, config.retry, now_ms);
        case Outcome::kFailed:
            return retry_or_fail(trial, request.timed_out ? RetryOn::kTimeout : RetryOn::kFailed,
                                 request.reason, config.retry, now_ms);
    }
    return ends_as(TrialState::kFailed);
}

AttemptEnd lost_attempt_end(Trial& trial, std::string reason, std::int64_t now_ms) {
    ++trial.lost_attempts;
    if (trial.lost_attempts < kLostAttemptsMax) return {.reason = std::move(reason)};
    return {.end = failed("given up after " + std::to_string(trial.lost_attempts) +
                              " lost attempts; the last: " + reason,
                          now_ms)};
}

std::string metric_never_arrived(const std::string& metric, const std::vector<std::string>& arrived,
                                 bool is_unheard) {
    std::string text = "metric '" + metric + "' never arrived: the command succeeded, but ";
    if (arrived.empty()) {
        text += "reported no metric";
    } else {
        text += "reported only ";
        for (std::size_t i = 0; i < arrived.size(); ++i)
            text += (i == 0 ? "'" : ", '") + arrived[i] + "'";
    }
    text += ". Print a line  tune: {\"" + metric +
            "\": 0.5}  on stdout, log it with an MLflow client (the environment names the run), or "
            "give a pattern with --scrape.";
    if (is_unheard && arrived.empty())
        text +=
            " If it does log with MLflow, then elsewhere: no request with its "
            "MLFLOW_TRACKING_TOKEN reached this server; take mlflow.set_tracking_uri out.";
    return text;
}

}  // namespace tune::tuner
