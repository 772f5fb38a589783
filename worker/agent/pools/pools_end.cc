// How trials of a pool end: by themselves, at the server's wish, or with their process. Of a
// process that died only the trials that it had begun may be the cause; which of them it was shows
// when they run again, and who lost attempts twice runs without neighbours (Study::needs).

#include <signal.h>

#include <algorithm>
#include <sstream>
#include <system_error>

#include "base/log.h"
#include "base/text/counted.h"
#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/pools/pool.h"

namespace tune::worker {
namespace {

/// A process without trials stays so long: the next ones need no start.
constexpr int kIdle_ms = 3'000;
constexpr int kRetireMax_ms = 10'000;

}  // namespace

// ---- Ending one trial ----------------------------------------------------------------------

bool Pools::obey(const tuner::AttemptId& id, Intent intent, const std::string& reason) {
    Trial* trial = find_trial(id);
    if (trial == nullptr) return false;
    end(*trial, intent, reason);
    return true;
}

void Pools::on_stale(std::uint64_t serial) {
    if (Trial* trial = find_trial(serial))
        end(*trial, Intent::kLost, "the server gave up the attempt");
}

void Pools::end(Trial& trial, Intent intent, const std::string& reason) {
    if (!trial.is_in_pool) return;
    const bool is_first = trial.intent.intent == Intent::kNone;
    if (is_first || intent == Intent::kLost) trial.intent = {intent, reason};
    if (is_first) await_end(trial);
}

/// A thread cannot be killed: one that does not end within its grace time takes the process with
/// it, whose other trials are asked to leave checkpoints first.
void Pools::await_end(Trial& trial) {
    Pool* pool = find_pool(trial.pool);
    if (pool == nullptr || trial.grace_timer != Loop::kNoTimer) return;
    send(*pool, end_line(trial.intent.intent == Intent::kPrune ? "prune" : "stop", trial.id()));
    trial.grace_timer =
        parts_.loop->at(parts_.loop->now_ms() + std::max<std::int64_t>(0, trial.lease.grace_ms),
                        [this, serial = trial.serial] {
                            Trial* deaf = find_trial(serial);
                            Pool* theirs = deaf == nullptr ? nullptr : find_pool(deaf->pool);
                            if (theirs == nullptr || !deaf->is_in_pool) return;
                            end_pool(*theirs, Intent::kCheckpointStop,
                                     "its pool was ended, because " + short_name(deaf->lease) +
                                         " in it did not end within its grace time",
                                     SIGTERM);
                        });
}

// ---- Ending a process ----------------------------------------------------------------------

void Pools::end_pool(Pool& pool, Intent intent, const std::string& reason, int signal) {
    pool.is_open = false;
    if (pool.intent.intent == Intent::kNone) pool.intent = {intent, reason};
    for (const std::uint64_t serial : pool.trials) {
        Trial& trial = *trials_.at(serial);
        if (trial.intent.intent == Intent::kNone && !trial.has_timed_out)
            trial.intent = {intent, reason};
    }
    signal_process(pool.supervisor, signal);
}

void Pools::end_all(Intent intent, const std::string& reason, bool at_once) {
    for (const auto& [serial, pool] : pools_)
        end_pool(*pool, intent, reason, at_once ? SIGQUIT : SIGTERM);
}

void Pools::on_gpu_fault(const std::string& uuid, const std::string& fault) {
    for (const auto& [serial, pool] : pools_) {
        const std::vector<std::string>& gpus = pool->assignment.gpus;
        if (std::find(gpus.begin(), gpus.end(), uuid) != gpus.end())
            end_pool(*pool, Intent::kGpuFault, uuid + ": " + fault, SIGTERM);
    }
}

void Pools::end_idle() {
    for (const auto& [serial, pool] : pools_)
        if (pool->trials.empty()) retire(*pool);
}

void Pools::drain() {
    is_draining_ = true;
    end_idle();
}

void Pools::on_idle(Pool& pool) {
    if (!pool.trials.empty() || !pool.is_open) return;
    if (is_draining_) return retire(pool);
    parts_.loop->cancel(pool.idle_timer);
    pool.idle_timer =
        parts_.loop->at(parts_.loop->now_ms() + kIdle_ms, [this, serial = pool.serial] {
            Pool* idle = find_pool(serial);
            if (idle == nullptr || !idle->trials.empty()) return;
            retire(*idle);
            hooks_.publish();
        });
}

/// Lets a process without trials end by itself.
void Pools::retire(Pool& pool) {
    if (!pool.is_open) return;
    pool.is_open = false;
    pool.intent = {Intent::kShutdown, "it had no trials any more"};
    parts_.loop->cancel(pool.idle_timer);
    send(pool, finish_line());
    pool.idle_timer =
        parts_.loop->at(parts_.loop->now_ms() + kRetireMax_ms, [this, serial = pool.serial] {
            if (Pool* left = find_pool(serial)) signal_process(left->supervisor, SIGTERM);
        });
}

void Pools::on_gone(std::uint64_t serial) {
    Pool* pool = find_pool(serial);
    if (pool == nullptr) return;
    pool->is_open = false;
    parts_.loop->unwatch(pool->supervisor.pidfd.get());
    reap_process(pool->supervisor);
    pool->supervisor.pidfd.reset();
    pool->exit = pool->files.read_exit();
    if (!pool->exit) return sweep(serial);
    pool->is_alive = false;
    pump(serial);
}

/// The supervisor was killed, and with it the pool's main process; others of it may be left.
void Pools::sweep(std::uint64_t serial) {
    Pool* pool = find_pool(serial);
    if (pool == nullptr || !pool->is_alive) return;
    for (const Process& process : pool->survivors) parts_.loop->unwatch(process.pidfd.get());
    pool->survivors = find_processes_with("TUNE_POOL=" + std::to_string(serial));
    bool is_watching = false;
    for (const Process& process : pool->survivors) {
        signal_process(process, SIGKILL);
        if (parts_.loop->watch(process.pidfd.get(), [this, serial] { sweep(serial); }))
            is_watching = true;
    }
    if (is_watching) return;
    pool->survivors.clear();
    pool->is_alive = false;
    pump(serial);
}

/// Its output has been read to the end: whoever has not ended went with it.
void Pools::settle(Pool& pool) {
    const std::vector<std::uint64_t> left(pool.trials.begin(), pool.trials.end());
    if (!left.empty() && pool.intent.intent == Intent::kNone)
        log_warning("a pool of study '" + pool.first.study + "' ended with " +
                    counted(static_cast<std::int64_t>(left.size()), "trial") + " in it");
    const std::string words = tail_of(pool.files.path(kStderrFile));
    const bool is_anyone_suspect = !pool.has_begun_any;
    for (const std::uint64_t serial : left) {
        Trial& trial = *trials_.at(serial);
        if (pool.is_adopted && trial.intent.intent == Intent::kNone) trial.intent = pool.intent;
        ExitRecord exit = pool.exit.value_or(ExitRecord());
        exit.stopped = trial.intent.intent != Intent::kNone;
        exit.timed_out = trial.has_timed_out;
        exit.wall_ms = parts_.loop->now_ms() - trial.since_ms;
        tuner::FinishRequest request = request_of(pool, trial, exit, words);
        const bool is_ours = exit.stopped || exit.timed_out;
        const bool is_config = !pool.has_begun_any && request.outcome == tuner::Outcome::kBadConfig;
        if (!is_ours && !is_config && pool.size() > 1)
            request = lost_with(pool, trial, trial.has_begun || is_anyone_suspect);
        if (!is_ours && pool.size() == 1 && request.outcome == tuner::Outcome::kDone) {
            request.outcome = tuner::Outcome::kFailed;
            request.reason = "the pool ended without a word about the trial";
        }
        if (!is_ours && !words.empty()) {
            PoolEvent event{.kind = PoolEvent::Kind::kLog, .text = words, .is_error = true};
            take_log(trial, event, parts_.loop->wall_ms());
        }
        conclude(pool, trial, std::move(request));
    }
    parts_.loop->cancel(pool.idle_timer);
    parts_.loop->cancel(pool.flush_timer);
    pool.assignment.locks.clear();
    if (parts_.cgroups != nullptr) parts_.cgroups->remove(pool.files.directory().filename());
    parts_.devices->release(pool.assignment);
    parts_.server_client->free_slot();
    const std::uint64_t serial = pool.serial;
    const AttemptFiles files = pool.files;
    pools_.erase(serial);
    remove_if_reported(serial, files);
    hooks_.freed();
}

/// Its attempt is lost, the trial is not.
tuner::FinishRequest Pools::lost_with(const Pool& pool, const Trial& trial, bool is_suspect) const {
    const std::string words = tail_of(pool.files.path(kStderrFile));
    const AttemptEnd end{.exit = pool.exit,
                         .intent = {},
                         .command = trial.lease.command,
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
    request.wall_ms = parts_.loop->now_ms() - trial.since_ms;
    return request;
}

tuner::FinishRequest Pools::request_of(const Pool& pool, const Trial& trial, const ExitRecord& exit,
                                       const std::string& last_words) const {
    const bool is_told = pool.is_alive || pool.exit;
    const std::string out = trial.has_log ? tail_of(trial.files.path(kStdoutFile)) : "";
    const std::string err = !last_words.empty() ? last_words
                            : trial.has_log     ? tail_of(trial.files.path(kStderrFile))
                                                : "";
    const AttemptEnd end{.exit = is_told || exit.stopped ? std::optional(exit) : std::nullopt,
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

// ---- The end of a trial --------------------------------------------------------------------

void Pools::conclude(Pool& pool, Trial& trial, tuner::FinishRequest request) {
    const std::uint64_t serial = trial.serial;
    trial.is_in_pool = false;
    pool.trials.erase(serial);
    for (Loop::TimerId timer : {trial.grace_timer, trial.timeout_timer, trial.upload_timer})
        parts_.loop->cancel(timer);
    ++finished_;
    if (request.outcome == tuner::Outcome::kFailed) {
        std::vector<tuner::LogRule> all = trial.lease.log_rules;
        all.insert(all.end(), settings_.log_rules.begin(), settings_.log_rules.end());
        if (!pool.assignment.gpus.empty())
            all.insert(all.end(), gpu_log_rules().begin(), gpu_log_rules().end());
        Result<LogRules> rules = LogRules::create(all);
        std::istringstream text(tail_of(trial.files.path(kStdoutFile)) +
                                tail_of(trial.files.path(kStderrFile)) + request.reason);
        for (std::string line; rules && std::getline(text, line);) rules->read(line);
        if (rules && rules->hit())
            hooks_.follow_rule(*rules->hit(), trial.lease, pool.assignment.gpus, request);
    }
    // An empty folder goes now: once the server knows of the end it may be the next attempt's.
    if (!trial.checkpoint_dir.empty() && trial.intent.intent != Intent::kLost)
        hooks_.leave_folder(trial.checkpoint_dir);
    request.request_id = trial.finish_request_id;
    hooks_.ended(trial.lease, request);
    on_idle(pool);
    if (trial.intent.intent == Intent::kLost) {
        parts_.outbox->drop(serial);
        trial.finish_done = true;
        hooks_.report(serial, {}, false);
        return forget_if_done(serial);
    }
    if (trial.has_log) {
        trial.logs_done = false;
        parts_.upload->submit({serial, trial.files, trial.id(), trial.lease.experiment_id, "", true,
                               may_run_again(request.outcome)});
    }
    hooks_.report(serial, std::move(request), true);
}

void Pools::on_finished(std::uint64_t serial) {
    Trial* trial = find_trial(serial);
    if (trial == nullptr) return;
    trial->finish_done = true;
    const std::uint64_t pool_serial = trial->pool;
    Pool* const pool = find_pool(pool_serial);
    if (pool != nullptr) pool->journal.note_settled(key_of(trial->id()));
    forget_if_done(serial);
    if (pool == nullptr)
        remove_if_reported(pool_serial, AttemptFiles(settings_.state_dir / kPoolsFolder /
                                                     std::to_string(pool_serial)));
    hooks_.publish();
}

/// What a pool that is gone had said is kept until all ends in it are with the server: should this
/// agent be killed before, the next one reads it again.
void Pools::remove_if_reported(std::uint64_t pool, const AttemptFiles& files) const {
    const bool is_reported = std::all_of(trials_.begin(), trials_.end(), [&](const auto& entry) {
        return entry.second->pool != pool || entry.second->finish_done;
    });
    if (is_reported) files.remove();
}

void Pools::on_room(std::uint64_t serial) {
    if (const Trial* trial = find_trial(serial)) pump(trial->pool);
}

void Pools::on_uploaded(std::uint64_t serial, bool final) {
    Trial* trial = find_trial(serial);
    if (trial == nullptr) return;
    if (!final) return schedule_upload(*trial);
    trial->logs_done = true;
    forget_if_done(serial);
    hooks_.publish();
}

void Pools::forget_if_done(std::uint64_t serial) {
    const Trial* trial = find_trial(serial);
    if (trial == nullptr || trial->is_in_pool || !trial->finish_done || !trial->logs_done) return;
    std::error_code ignored;
    if (trial->has_log || std::filesystem::exists(trial->files.directory(), ignored)) {
        trial->files.remove();
        parts_.upload->forget(serial);
    }
    by_id_.erase(key_of(trial->id()));
    trials_.erase(serial);
}

}  // namespace tune::worker
