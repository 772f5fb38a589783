// The last part of an attempt's life: it is asked to end, its process tree is gone, its output is
// read to the end, the server hears of it, and it is forgotten.

#include <signal.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/system/file.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/attempts.h"
#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/attempts/rank_environment.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {
namespace {

constexpr const char* kKeptFolder = "kept";

tuner::Outcome outcome_of(Intent intent) {
    if (intent == Intent::kPrune) return tuner::Outcome::kPruned;
    return intent == Intent::kStop ? tuner::Outcome::kCancelled : tuner::Outcome::kPreempted;
}

Intent intent_of(tuner::Action action) {
    switch (action) {
        case tuner::Action::kPrune: return Intent::kPrune;
        case tuner::Action::kCheckpointStop: return Intent::kCheckpointStop;
        case tuner::Action::kProfile:  // ends nothing
        case tuner::Action::kStop: break;
    }
    return Intent::kStop;
}

}  // namespace

void Attempts::end(Attempt& attempt, Intent intent, const std::string& reason, int signal) {
    if (!attempt.alive) return;
    const bool first = attempt.intent.intent == Intent::kNone;
    if (first || intent == Intent::kLost) {
        attempt.intent = {intent, reason};
        const Result<void> noted = attempt.files.write_intent(attempt.intent);
        if (!noted) log_warning(noted.error().text());
    }
    if (first || signal == SIGQUIT) signal_process(attempt.supervisor, signal);
}

/// A request that is known already stands in the file as it would again.
void Attempts::pass_on_profile(const Attempt& attempt, const tuner::Directive& directive) {
    if (!attempt.alive) return;
    const std::filesystem::path path = attempt.files.path(kProfileRequestFile);
    const std::string text =
        std::to_string(directive.turn) + " " + std::to_string(directive.steps) + "\n";
    if (const Result<std::string> known = read_file(path); known && *known == text) return;
    const Result<void> written = write_file_atomic(path, text);
    if (!written) attempt.files.note("no trace: " + written.error().text());
}

void Attempts::obey(const tuner::Directive& directive) {
    const tuner::AttemptId id{directive.run_id, directive.attempt};
    if (directive.action == tuner::Action::kProfile) {
        if (const Attempt* attempt = find(id)) pass_on_profile(*attempt, directive);
        return;
    }
    const Intent intent = intent_of(directive.action);
    if (Attempt* attempt = find(id)) return end(*attempt, intent, directive.reason, SIGTERM);
    if (pools_->obey(id, intent, directive.reason)) return;
    if (const std::optional<tuner::Lease> lease = take_unstarted(id)) {
        refuse(*lease, outcome_of(intent), directive.reason);
        publish();
    }
}

void Attempts::lose(const tuner::AttemptId& id) {
    while (take_unstarted(id)) parts_.server_client->free_slot();
    if (Attempt* attempt = find(id)) on_stale(attempt->record.serial);
    static_cast<void>(pools_->obey(id, Intent::kLost, "the server gave up the attempt"));
    publish();
}

void Attempts::on_stale(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr) return pools_->on_stale(serial);
    if (!attempt->alive) return;
    end(*attempt, Intent::kLost, "the server gave up the attempt", SIGTERM);
    publish();
}

void Attempts::end_all(Intent intent, const std::string& reason, bool at_once) {
    for (const tuner::AttemptId& id : unstarted())
        if (const auto lease = take_unstarted(id))
            refuse(*lease, tuner::Outcome::kPreempted, reason);
    for (const auto& [serial, attempt] : attempts_)
        end(*attempt, intent, reason, at_once ? SIGQUIT : SIGTERM);
    pools_->end_all(intent, reason, at_once);
    if (at_once) {
        saves_.hurry();
        models_.hurry();
    }
    publish();
}

void Attempts::drain() {
    pools_->drain();
    publish();
}

void Attempts::on_supervisor_gone(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr) return;
    gather();
    parts_.loop->unwatch(attempt->supervisor.pidfd.get());
    reap_process(attempt->supervisor);
    attempt->supervisor.pidfd.reset();
    attempt->exit = attempt->files.read_exit();
    if (attempt->exit)
        on_tree_gone(*attempt);
    else
        sweep(serial);
}

void Attempts::sweep(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || !attempt->alive) return;
    for (const Process& process : attempt->survivors) parts_.loop->unwatch(process.pidfd.get());
    attempt->survivors =
        find_marked_processes(attempt->record.lease.run_id, attempt->record.lease.attempt);
    bool watching = false;
    for (const Process& process : attempt->survivors) {
        signal_process(process, SIGKILL);
        if (parts_.loop->watch(process.pidfd.get(), [this, serial] { sweep(serial); }))
            watching = true;
    }
    if (watching) return;
    attempt->survivors.clear();
    on_tree_gone(*attempt);
}

void Attempts::on_tree_gone(Attempt& attempt) {
    attempt.alive = false;
    parts_.loop->cancel(attempt.system_timer);
    parts_.loop->cancel(attempt.gpu_memory_timer);
    parts_.loop->cancel(attempt.upload_timer);
    saves_.stop(attempt.record.serial);
    attempt.assignment.locks.clear();  // so that a lock its supervisor held can be had again
    if (parts_.cgroups != nullptr) parts_.cgroups->remove(attempt.files.directory().filename());
    parts_.devices->release(attempt.assignment);
    parts_.gang_ports->give_back(attempt.ports);
    if (attempt.intent.intent == Intent::kLost)
        parts_.server_client->free_slot();
    else
        parts_.server_client->free_slot_at_end();
    const std::uint64_t serial = attempt.record.serial;
    read_last(attempt);
    pump(serial);  // may forget it
    start_waiting();
    publish();
}

/// Its end is judged once its output has been read and its GPUs have said whether they are well;
/// what it ran in goes before its end.
void Attempts::conclude_if_known(Attempt& attempt) {
    if (attempt.output_done && attempt.gpus_read && attempt.environment_known) conclude(attempt);
}

/// The end of stderr, or, of several processes, of the output of the one that failed.
std::string Attempts::last_words(const Attempt& attempt) {
    const int rank = attempt.exit ? attempt.exit->failed_rank : -1;
    const auto& gang = attempt.record.lease.gang;
    if (rank <= 0 || !gang) return attempt.output->tail(1, kTailBytes);
    return tail_of(attempt.files.path(rank_log(*gang, rank).c_str()));
}

void Attempts::conclude(Attempt& attempt) {
    const tuner::Lease& lease = attempt.record.lease;
    // An empty folder goes now: once the server knows of the end it may be the next attempt's.
    if (!attempt.checkpoint_dir.empty() && attempt.intent.intent != Intent::kLost)
        checkpoint_folders_.leave(attempt.checkpoint_dir);
    const std::string out_tail = attempt.output->tail(0, kTailBytes);
    const std::string err_tail = last_words(attempt);
    const AttemptEnd end{attempt.exit,
                         attempt.intent,
                         lease.command,
                         attempt.search_path,
                         lease.working_dir,
                         lease.timeout_ms,
                         attempt.exit && may_be_oom_kill(*attempt.exit) &&
                             count_oom_kills() > attempt.record.oom_kills,
                         limits_of(lease).memory_bytes,
                         attempt.gpu_fault,
                         lease.gang ? lease.gang->node * lease.gang->nproc : -1,
                         out_tail,
                         err_tail};
    tuner::FinishRequest request = classify(end);
    request.request_id = attempt.record.finish_request_id;
    request.peak_gpu_memory_bytes = attempt.peak_gpu_bytes;
    follow_rule(attempt, request);
    const MetricLines& lines = attempt.output->lines();
    // It may be why a trial that ended well has no value.
    if (request.outcome == tuner::Outcome::kDone && lines.malformed_count() > 0)
        request.reason =
            "a 'tune:' line could not be read: " + last_line(lines.malformed_example(), 400);
    fail_without_output(attempt, request);
    write_notes(attempt, request);
    ++finished_;
    if (request.outcome == tuner::Outcome::kDone) durations_.add(lease.study, request.wall_ms);
    const std::uint64_t serial = attempt.record.serial;
    if (attempt.intent.intent == Intent::kLost) {
        parts_.outbox->drop(serial);
        attempt.finish_done = attempt.logs_done = true;
        forget_results(serial);
    } else {
        report_when_kept(serial, std::move(request), [this, serial](tuner::FinishRequest kept) {
            if (Attempt* ended = find(serial)) report_end(*ended, std::move(kept));
            forget_if_done(serial);
        });
    }
    forget_if_done(serial);
}

void Attempts::report_when_kept(std::uint64_t serial, tuner::FinishRequest request,
                                CheckpointSaves::Report report) {
    saves_.stop(serial);
    models_.finish(serial, std::move(request),
                   [this, serial, report = std::move(report)](tuner::FinishRequest logged) {
                       saves_.finish(serial, std::move(logged), report);
                   });
}

void Attempts::forget_results(std::uint64_t serial) {
    models_.forget(serial);
    saves_.forget(serial);
}

void Attempts::on_checkpoint(const CheckpointJob& job, const CheckpointResult& result) {
    switch (job.kind) {
        case CheckpointJob::Kind::kFetch: return fetches_.on_result(job.serial, result);
        case CheckpointJob::Kind::kModel: return models_.on_result(job.serial, result.error);
        default: return saves_.on_result(job, result);
    }
}

void Attempts::report_end(Attempt& attempt, tuner::FinishRequest request) {
    send_logs(attempt, request);
    parts_.outbox->finish(attempt.record.serial, std::move(request));
}

/// What its output says about a failure that is its own by all that is known otherwise.
void Attempts::follow_rule(const Attempt& attempt, tuner::FinishRequest& request) {
    if (request.outcome != tuner::Outcome::kFailed || !attempt.output->rules()) return;
    if (const std::optional<LogHit>& hit = attempt.output->rules()->hit())
        follow_rule(*hit, attempt.record.lease, attempt.assignment.gpus, request);
}

void Attempts::follow_rule(const LogHit& hit, const tuner::Lease& lease,
                           const std::vector<std::string>& gpus, tuner::FinishRequest& request) {
    const bool is_final = hit.action == tuner::LogAction::kNoRetry;
    request.outcome = is_final ? tuner::Outcome::kBadConfig : tuner::Outcome::kLost;
    request.reason =
        "a log rule (" +
        std::string(tuner::kLogActions.at(static_cast<std::size_t>(hit.action)).second) +
        ") matched: " + hit.line;
    request.timed_out = false;
    const std::string because = "the log of " + short_name(lease) + " says: " + hit.line;
    if (hit.action == tuner::LogAction::kExcludeHost) parts_.exclude("", because);
    if (hit.action != tuner::LogAction::kExcludeDevice) return;
    // A line that names a GPU is about that one.
    const auto is_named = [&](const std::string& uuid) {
        return hit.line.find(uuid) != std::string::npos;
    };
    const bool is_any_named = std::any_of(gpus.begin(), gpus.end(), is_named);
    for (const std::string& uuid : gpus)
        if (!is_any_named || is_named(uuid)) parts_.exclude(uuid, because);
}

/// What is missing may be the value that counts, so a trial that ended well did not.
void Attempts::fail_without_output(const Attempt& attempt, tuner::FinishRequest& request) const {
    if (request.outcome != tuner::Outcome::kDone || !attempt.exit) return;
    const std::int64_t lost = attempt.exit->lost_bytes[0] + attempt.exit->lost_bytes[1];
    const bool is_silent = attempt.record.lease.gang && attempt.record.lease.gang->node > 0;
    if (lost == 0 || is_silent) return;
    request.outcome = tuner::Outcome::kFailed;
    request.reason = std::to_string(lost) +
                     " bytes of its output could not be stored, and metrics may have been among "
                     "them: the disk of the agent's folder '" +
                     settings_.state_dir.string() + "' is full";
}

void Attempts::write_notes(const Attempt& attempt, const tuner::FinishRequest& request) const {
    const MetricLines& lines = attempt.output->lines();
    if (lines.malformed_count() > 0)
        attempt.files.note(std::to_string(lines.malformed_count()) +
                           " malformed 'tune:' lines in the output were ignored; the first: " +
                           lines.malformed_example());
    if (attempt.exit && attempt.exit->killed)
        attempt.files.note(
            "processes of the trial did not end within the grace time after "
            "SIGTERM and were killed");
    if (attempt.exit && attempt.exit->swept && !attempt.exit->killed)
        attempt.files.note("the trial left processes behind; they were terminated");
    if (attempt.exit && attempt.exit->lost_bytes[0] + attempt.exit->lost_bytes[1] > 0)
        attempt.files.note(
            std::to_string(attempt.exit->lost_bytes[0] + attempt.exit->lost_bytes[1]) +
            " bytes of output could not be stored (is the disk full?)");
    if (request.outcome != tuner::Outcome::kDone && !request.reason.empty())
        attempt.files.note(std::string(tuner::outcome_name(request.outcome)) + ": " +
                           request.reason);
}

void Attempts::send_logs(Attempt& attempt, const tuner::FinishRequest& request) {
    std::error_code ignored;
    bool any = false;
    for (const char* name : {kStdoutFile, kStderrFile, kAgentLogFile, kDiffFile})
        any = std::filesystem::exists(attempt.files.path(name), ignored) || any;
    attempt.logs_done = !any;
    if (!any) return;
    parts_.upload->submit({attempt.record.serial, attempt.files, attempt.record.id(),
                           attempt.record.lease.experiment_id, log_folder(attempt.record.lease),
                           true, may_run_again(request.outcome)});
}

void Attempts::on_finished(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr) return pools_->on_finished(serial);
    attempt->finish_done = true;
    forget_if_done(serial);
    publish();
}

void Attempts::on_room(std::uint64_t serial) {
    if (find(serial) == nullptr) return pools_->on_room(serial);
    pump(serial);
}

void Attempts::on_uploaded(std::uint64_t serial, bool final, bool uploaded) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr) return pools_->on_uploaded(serial, final);
    if (!final) return;
    attempt->logs_done = true;
    attempt->keep_folder = !uploaded;
    forget_if_done(serial);
    publish();
}

void Attempts::forget_if_done(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || attempt->alive || !attempt->finish_done || !attempt->logs_done)
        return;
    const AttemptFiles files = attempt->files;
    std::error_code ignored;
    if (attempt->keep_folder) {
        const std::filesystem::path kept = settings_.state_dir / kKeptFolder;
        std::filesystem::create_directories(kept, ignored);
        std::filesystem::rename(files.directory(), kept / files.directory().filename(), ignored);
    } else if (!files.directory().empty()) {
        spare_folders_.take_back(files);
    }
    parts_.upload->forget(serial);
    attempts_.erase(serial);
}

}  // namespace tune::worker
