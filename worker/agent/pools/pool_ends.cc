// Of a process that died only the trials that it had begun may be the cause; which of them it was
// shows when they run again, and who lost attempts twice runs without neighbours (Study::needs). So
// their attempts are lost, and those of the others are preempted; the trials are not.

#include "worker/agent/pools/pool_ends.h"

#include <optional>
#include <utility>

#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/output/trial_output.h"

namespace tune::worker {
namespace {

tuner::FinishRequest classify_trial(const Pool& pool, const PoolTrial& trial,
                                    const ExitRecord& exit, const std::string& last_words) {
    const bool is_known = pool.is_alive || pool.exit || exit.stopped;
    const std::string out = trial.log->tail(false);
    const std::string err = last_words.empty() ? trial.log->tail(true) : last_words;
    const AttemptEnd end{.exit = is_known ? std::optional(exit) : std::nullopt,
                         .intent = trial.intent,
                         .command = trial.lease.command,
                         .search_path = "PATH",
                         .working_dir = trial.lease.working_dir,
                         .timeout_ms = trial.lease.timeout_ms,
                         .memory_limit_bytes = trial.lease.memory_bytes,
                         .gpu_fault = {},
                         .out_tail = out,
                         .err_tail = err};
    return classify(end);
}

tuner::FinishRequest lost_with_pool(const Pool& pool, bool is_suspect, const std::string& words,
                                    std::int64_t wall_ms) {
    const AttemptEnd end{.exit = pool.exit,
                         .intent = {},
                         .command = pool.first.command,
                         .search_path = {},
                         .working_dir = {},
                         .gpu_fault = {},
                         .out_tail = {},
                         .err_tail = words};
    const tuner::FinishRequest process = classify(end);
    tuner::FinishRequest request;
    request.outcome = is_suspect ? tuner::Outcome::kLost : tuner::Outcome::kPreempted;
    request.reason =
        "its pool ended: " + (process.reason.empty() ? std::string("exit code 0") : process.reason);
    request.wall_ms = wall_ms;
    return request;
}

}  // namespace

bool was_asked_to_end(const PoolTrial& trial) {
    return trial.intent.intent != Intent::kNone || trial.has_timed_out;
}

tuner::FinishRequest end_by_line(const Pool& pool, const PoolTrial& trial, const PoolEvent& event,
                                 std::int64_t now_ms) {
    ExitRecord exit;
    exit.exit_code = event.exit_code;
    exit.stopped = trial.intent.intent != Intent::kNone;
    exit.timed_out = trial.has_timed_out;
    exit.wall_ms = now_ms - trial.since_ms;
    tuner::FinishRequest request = classify_trial(pool, trial, exit, event.message);
    if (request.outcome == tuner::Outcome::kDone && trial.lines.malformed_count() > 0)
        request.reason =
            "metrics could not be read: " + last_line(trial.lines.malformed_example(), 400);
    return request;
}

tuner::FinishRequest end_with_pool(const Pool& pool, const PoolTrial& trial,
                                   const std::string& words, std::int64_t now_ms) {
    ExitRecord exit = pool.exit.value_or(ExitRecord());
    exit.stopped = trial.intent.intent != Intent::kNone;
    exit.timed_out = trial.has_timed_out;
    exit.wall_ms = now_ms - trial.since_ms;
    tuner::FinishRequest request = classify_trial(pool, trial, exit, words);
    if (was_asked_to_end(trial)) return request;
    const bool is_config = !pool.has_begun_any && request.outcome == tuner::Outcome::kBadConfig;
    if (!is_config && pool.size() > 1)
        return lost_with_pool(pool, trial.has_begun || !pool.has_begun_any, words, exit.wall_ms);
    if (pool.size() == 1 && request.outcome == tuner::Outcome::kDone) {
        request.outcome = tuner::Outcome::kFailed;
        request.reason = "the pool ended without a word about the trial";
    }
    return request;
}

}  // namespace tune::worker
