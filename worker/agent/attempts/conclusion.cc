// How a process ended decides first (exit_class.cc). Then a failure that is the trial's own by all
// that is known otherwise is held against the log rules; and a trial that ended well, but whose
// output the disk did not take, did not: what is missing may be the value that counts.

#include "worker/agent/attempts/conclusion.h"

#include <algorithm>
#include <utility>

#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/attempts/rank_environment.h"

namespace tune::worker {
namespace {

std::int64_t lost_bytes(const Attempt& attempt) {
    return attempt.exit ? attempt.exit->lost_bytes[0] + attempt.exit->lost_bytes[1] : 0;
}

/// The end of stderr, or, of several processes, of the output of the one that failed.
std::string tail_of_failed(const EndedAttempt& ended) {
    const Attempt& attempt = ended.attempt;
    const int rank = attempt.exit ? attempt.exit->failed_rank : -1;
    const auto& gang = attempt.lease().gang;
    if (rank <= 0 || !gang) return ended.output.tail(1, kTailBytes);
    return tail_of(attempt.files.path(rank_log(*gang, rank).c_str()));
}

tuner::FinishRequest classify_end(const EndedAttempt& ended, const AttemptSettings& settings) {
    const Attempt& attempt = ended.attempt;
    const tuner::Lease& lease = attempt.lease();
    const std::string out_tail = ended.output.tail(0, kTailBytes);
    const std::string err_tail = tail_of_failed(ended);
    return classify({attempt.exit, attempt.intent, lease.command, attempt.search_path,
                     lease.working_dir, lease.timeout_ms,
                     attempt.exit && may_be_oom_kill(*attempt.exit) &&
                         count_oom_kills() > attempt.record.oom_kills,
                     limits_of(lease, settings).memory_bytes, ended.gpu_fault,
                     lease.gang ? lease.gang->node * lease.gang->nproc : -1, out_tail, err_tail});
}

void fail_without_output(const Attempt& attempt, const AttemptSettings& settings,
                         tuner::FinishRequest& request) {
    const std::int64_t lost = lost_bytes(attempt);
    const bool is_silent = attempt.lease().gang && attempt.lease().gang->node > 0;
    if (request.outcome != tuner::Outcome::kDone || lost == 0 || is_silent) return;
    request.outcome = tuner::Outcome::kFailed;
    request.reason = std::to_string(lost) +
                     " bytes of its output could not be stored, and metrics may have been among "
                     "them: the disk of the agent's folder '" +
                     settings.state_dir.string() + "' is full";
}

}  // namespace

tuner::FinishRequest conclude(const EndedAttempt& ended, const AttemptSettings& settings,
                              const Exclude& exclude) {
    const Attempt& attempt = ended.attempt;
    tuner::FinishRequest request = classify_end(ended, settings);
    request.request_id = attempt.record.finish_request_id;
    request.peak_gpu_memory_bytes = ended.peak_gpu_bytes;
    const std::optional<LogRules>& rules = ended.output.rules();
    if (request.outcome == tuner::Outcome::kFailed && rules && rules->hit())
        follow_rule(*rules->hit(), attempt.lease(), attempt.assignment.gpus, exclude, request);
    const MetricLines& lines = ended.output.lines();
    // It may be why a trial that ended well has no value.
    if (request.outcome == tuner::Outcome::kDone && lines.malformed_count() > 0)
        request.reason =
            "a 'tune:' line could not be read: " + last_line(lines.malformed_example(), 400);
    fail_without_output(attempt, settings, request);
    return request;
}

void write_notes(const EndedAttempt& ended, const tuner::FinishRequest& request) {
    const Attempt& attempt = ended.attempt;
    const AttemptFiles& files = attempt.files;
    const MetricLines& lines = ended.output.lines();
    if (lines.malformed_count() > 0)
        files.note(std::to_string(lines.malformed_count()) +
                   " malformed 'tune:' lines in the output were ignored; the first: " +
                   lines.malformed_example());
    if (attempt.exit && attempt.exit->killed)
        files.note(
            "processes of the trial did not end within the grace time after SIGTERM and were "
            "killed");
    if (attempt.exit && attempt.exit->swept && !attempt.exit->killed)
        files.note("the trial left processes behind; they were terminated");
    if (const std::int64_t lost = lost_bytes(attempt); lost > 0)
        files.note(std::to_string(lost) +
                   " bytes of output could not be stored (is the disk full?)");
    if (request.outcome != tuner::Outcome::kDone && !request.reason.empty())
        files.note(std::string(tuner::outcome_name(request.outcome)) + ": " + request.reason);
}

void follow_rule(const LogHit& hit, const tuner::Lease& lease, const std::vector<std::string>& gpus,
                 const Exclude& exclude, tuner::FinishRequest& request) {
    const bool is_final = hit.action == tuner::LogAction::kNoRetry;
    request.outcome = is_final ? tuner::Outcome::kBadConfig : tuner::Outcome::kLost;
    request.reason =
        "a log rule (" +
        std::string(tuner::kLogActions.at(static_cast<std::size_t>(hit.action)).second) +
        ") matched: " + hit.line;
    request.timed_out = false;
    const std::string because = "the log of " + short_name(lease) + " says: " + hit.line;
    if (hit.action == tuner::LogAction::kExcludeHost) exclude("", because);
    if (hit.action != tuner::LogAction::kExcludeDevice) return;
    // A line that names a GPU is about that one.
    const auto is_named = [&](const std::string& uuid) {
        return hit.line.find(uuid) != std::string::npos;
    };
    const bool is_any_named = std::any_of(gpus.begin(), gpus.end(), is_named);
    for (const std::string& uuid : gpus)
        if (!is_any_named || is_named(uuid)) exclude(uuid, because);
}

}  // namespace tune::worker
