// How trials of a pool end: by themselves, at the server's wish, or with their process. What is
// then reported of them stands in pool_ends.cc; here is who is asked to end, and what is settled
// when somebody has.

#include <signal.h>

#include <algorithm>
#include <sstream>
#include <system_error>

#include "base/log.h"
#include "base/text/counted.h"
#include "worker/agent/attempts/conclusion.h"
#include "worker/agent/attempts/exit_class.h"
#include "worker/agent/attempts/kept_results.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/pools/pool_ends.h"
#include "worker/agent/pools/pools.h"
#include "worker/agent/time_limit.h"

namespace tune::worker {
namespace {

/// A process without trials stays so long: the next ones need no start.
constexpr int kIdle_ms = 3'000;
constexpr int kRetireMax_ms = 10'000;

}  // namespace

// ---- Ending one trial ----------------------------------------------------------------------

bool Pools::obey(const tuner::AttemptId& id, Intent intent, const std::string& reason) {
    PoolTrial* trial = trials_.find(id);
    if (trial == nullptr) return false;
    end(*trial, intent, reason);
    return true;
}

void Pools::on_stale(std::uint64_t serial) {
    if (PoolTrial* trial = trials_.find(serial))
        end(*trial, Intent::kLost, "the server gave up the attempt");
}

void Pools::end(PoolTrial& trial, Intent intent, const std::string& reason) {
    if (!trial.is_in_pool) return;
    const bool is_first = trial.intent.intent == Intent::kNone;
    if (is_first || intent == Intent::kLost) trial.intent = {intent, reason};
    if (is_first) await_end(trial);
}

/// A thread cannot be killed: one that does not end within its grace time takes the process with
/// it, whose other trials are asked to leave checkpoints first.
void Pools::await_end(PoolTrial& trial) {
    Pool* pool = find_pool(trial.pool);
    if (pool == nullptr || trial.grace_timer != Loop::kNoTimer) return;
    pool->input.send(
        end_line(trial.intent.intent == Intent::kPrune ? "prune" : "stop", trial.id()));
    trial.grace_timer =
        agent_.loop->at(agent_.loop->now_ms() + std::max<std::int64_t>(0, trial.lease.grace_ms),
                        [this, serial = trial.serial] {
                            PoolTrial* deaf = trials_.find(serial);
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
    pool.input.finish();
    if (pool.intent.intent == Intent::kNone) pool.intent = {intent, reason};
    for (const std::uint64_t serial : pool.trials) {
        PoolTrial& trial = *trials_.find(serial);
        if (trial.intent.intent == Intent::kNone && !trial.has_timed_out)
            trial.intent = {intent, reason};
    }
    pool.processes.signal(signal);
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
    agent_.loop->cancel(pool.idle_timer);
    pool.idle_timer =
        agent_.loop->at(agent_.loop->now_ms() + kIdle_ms, [this, serial = pool.serial] {
            Pool* idle = find_pool(serial);
            if (idle == nullptr || !idle->trials.empty()) return;
            retire(*idle);
            shared_.publish();
        });
}

/// Lets a process without trials end by itself.
void Pools::retire(Pool& pool) {
    if (!pool.is_open) return;
    pool.is_open = false;
    pool.input.finish();
    pool.intent = {Intent::kShutdown, "it had no trials any more"};
    agent_.loop->cancel(pool.idle_timer);
    pool.input.send(finish_line());
    pool.idle_timer =
        agent_.loop->at(agent_.loop->now_ms() + kRetireMax_ms, [this, serial = pool.serial] {
            if (Pool* left = find_pool(serial)) left->processes.signal(SIGTERM);
        });
}

/// Its output has been read to the end: whoever has not ended went with it.
void Pools::settle(Pool& pool) {
    const std::vector<std::uint64_t> left(pool.trials.begin(), pool.trials.end());
    if (!left.empty() && pool.intent.intent == Intent::kNone)
        log_warning("a pool of study '" + pool.first.study + "' ended with " +
                    counted(static_cast<std::int64_t>(left.size()), "trial") + " in it");
    const std::string words = tail_of(pool.files.path(kStderrFile));
    for (const std::uint64_t serial : left) {
        PoolTrial& trial = *trials_.find(serial);
        if (pool.is_adopted && trial.intent.intent == Intent::kNone) trial.intent = pool.intent;
        const std::int64_t now = agent_.loop->now_ms();
        tuner::FinishRequest request = end_with_pool(pool, trial, words, now);
        if (!was_asked_to_end(trial) && !words.empty()) {
            const PoolEvent event{.kind = PoolEvent::Kind::kLog, .text = words, .is_error = true};
            take_log(trial, event, agent_.loop->wall_ms());
        }
        conclude(pool, trial, std::move(request));
    }
    agent_.loop->cancel(pool.idle_timer);
    pool.assignment.locks.clear();
    if (agent_.cgroups != nullptr) agent_.cgroups->remove(pool.files.directory().filename());
    agent_.devices->release(pool.assignment);
    agent_.server_client->free_slot();
    const std::uint64_t serial = pool.serial;
    const AttemptFiles files = pool.files;
    pools_.erase(serial);
    mark_used_gpus();
    remove_if_reported(serial, files);
    shared_.freed();
}

// ---- The end of a trial --------------------------------------------------------------------

void Pools::conclude(Pool& pool, PoolTrial& trial, tuner::FinishRequest request) {
    const std::uint64_t serial = trial.serial;
    trial.is_in_pool = false;
    pool.trials.erase(serial);
    for (Loop::TimerId timer : {trial.grace_timer, trial.timeout_timer}) agent_.loop->cancel(timer);
    trial.log->stop();
    ++finished_;
    if (request.outcome == tuner::Outcome::kFailed) {
        Result<LogRules> rules =
            log_rules_of(trial.lease, shared_.settings, !pool.assignment.gpus.empty());
        std::istringstream text(trial.log->tail(false) + trial.log->tail(true) + request.reason);
        for (std::string line; rules && std::getline(text, line);) rules->read(line);
        if (rules && rules->hit())
            follow_rule(*rules->hit(), trial.lease, pool.assignment.gpus, agent_.exclude, request);
    }
    // An empty folder goes now: once the server knows of the end it may be the next attempt's.
    if (!trial.checkpoint_dir.empty() && trial.intent.intent != Intent::kLost)
        shared_.checkpoint_folders.leave(trial.checkpoint_dir);
    request.request_id = trial.finish_request_id;
    if (request.outcome == tuner::Outcome::kDone)
        shared_.durations.add(trial.lease.study, request.wall_ms);
    on_idle(pool);
    if (trial.intent.intent == Intent::kLost) {
        agent_.outbox->drop(serial);
        trial.finish_done = true;
        shared_.results.forget(serial);
        return forget_if_done(trial);
    }
    trial.logs_done = !trial.log->finish(may_run_again(request.outcome));
    shared_.results.report_when_kept(serial, std::move(request),
                                     [this, serial](tuner::FinishRequest kept) {
                                         agent_.outbox->finish(serial, std::move(kept));
                                     });
}

void Pools::on_finished(std::uint64_t serial) {
    PoolTrial* trial = trials_.find(serial);
    if (trial == nullptr) return;
    trial->finish_done = true;
    const std::uint64_t pool_serial = trial->pool;
    Pool* const pool = find_pool(pool_serial);
    if (pool != nullptr) pool->output.note_settled(key_of(trial->id()));
    forget_if_done(*trial);
    if (pool == nullptr)
        remove_if_reported(pool_serial, AttemptFiles(shared_.settings.state_dir / kPoolsFolder /
                                                     std::to_string(pool_serial)));
    shared_.publish();
}

/// What a pool that is gone had said is kept until all ends in it are with the server: should this
/// agent be killed before, the next one reads it again.
void Pools::remove_if_reported(std::uint64_t pool, const AttemptFiles& files) const {
    if (trials_.is_reported(pool)) files.remove();
}

void Pools::on_room(std::uint64_t serial) {
    if (const PoolTrial* trial = trials_.find(serial)) pump(trial->pool);
}

void Pools::on_uploaded(std::uint64_t serial, bool final) {
    PoolTrial* trial = trials_.find(serial);
    if (trial == nullptr) return;
    if (!final) return trial->log->on_uploaded();
    trial->logs_done = true;
    forget_if_done(*trial);
    shared_.publish();
}

void Pools::forget_if_done(const PoolTrial& trial) {
    if (!trial.is_settled()) return;
    std::error_code ignored;
    if (trial.log->exists() || std::filesystem::exists(trial.files.directory(), ignored)) {
        trial.files.remove();
        agent_.upload->forget(trial.serial);
    }
    trials_.erase(trial);
}

}  // namespace tune::worker
