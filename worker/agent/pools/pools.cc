// A trial is a line to the pool and lines from it. Output is read from the supervisor's file as
// that of any trial is; each line is handed to the trial that it names, and nothing about a trial
// is on disk but its log. The last part of a trial's life: pools_end.cc.

#include "worker/agent/pools/pools.h"

#include <signal.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "worker/agent/attempts/environment.h"
#include "worker/agent/attempts/kept_results.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/environment/environment_questions.h"
#include "worker/agent/models/logged_model.h"
#include "worker/agent/output/output_pump.h"
#include "worker/agent/pools/pool_ends.h"
#include "worker/agent/pools/pool_start.h"

namespace tune::worker {

Pools::Pools(const SharedParts& shared, Refuse refuse)
    : shared_(shared), agent_(shared.agent), refuse_(std::move(refuse)) {}

Pools::~Pools() = default;

Pool* Pools::find_pool(std::uint64_t serial) const {
    const auto found = pools_.find(serial);
    return found == pools_.end() ? nullptr : found->second.get();
}

void Pools::add_counts(AttemptCounts& counts) const {
    // A process without trials is there, too.
    for (const auto& [serial, pool] : pools_)
        counts.running += std::max(1, static_cast<int>(pool->trials.size()));
    counts.unreported += trials_.unreported();
    counts.started += started_;
    counts.finished += finished_;
}

int Pools::room() const {
    int room = 0;
    for (const auto& [serial, pool] : pools_) room += pool->room();
    return std::max(room, 0);
}

std::int64_t Pools::longest_grace_ms() const {
    std::int64_t longest = 0;
    for (const auto& [serial, pool] : pools_) longest = std::max(longest, pool->first.grace_ms);
    return longest;
}

// ---- Beginning -----------------------------------------------------------------------------

bool Pools::join(tuner::Lease& lease) {
    for (const auto& [serial, pool] : pools_) {
        if (pool->room() <= 0 || pool->first.pool->name != lease.pool->name) continue;
        add(*pool, std::move(lease));
        return true;
    }
    return false;
}

std::unique_ptr<Pool> Pools::make_pool(std::uint64_t serial) {
    PoolEvents events;
    events.processes.find_survivors = [serial] {
        return find_processes_with(std::string(kPoolVariable) + "=" + std::to_string(serial));
    };
    events.processes.supervisor_ended = [this, serial] {
        Pool* pool = find_pool(serial);
        if (pool == nullptr) return;
        pool->is_open = false;
        pool->input.finish();
    };
    events.processes.gone = [this, serial](std::optional<ExitRecord> exit) {
        Pool* pool = find_pool(serial);
        if (pool == nullptr) return;
        pool->exit = std::move(exit);
        pool->is_alive = false;
        pump(serial);
    };
    events.output.line = [this, serial](std::string_view line, std::int64_t read_ms) {
        Pool* pool = find_pool(serial);
        const Result<PoolEvent> event = parse_pool_event(line);
        // What is no line of the protocol is the program's own output, and stays in its log.
        if (pool != nullptr && event) take_event(*pool, *event, read_ms);
    };
    events.output.lost = [this, serial] {
        Pool* pool = find_pool(serial);
        if (pool != nullptr && !pool->is_adopted)
            end_pool(*pool, Intent::kCheckpointStop,
                     "more of the pool's lines waited than are kept, so some were lost", SIGTERM);
    };
    const AttemptFiles files(shared_.settings.state_dir / kPoolsFolder / std::to_string(serial));
    return std::make_unique<Pool>(*agent_.loop, serial, files, std::move(events));
}

void Pools::open(tuner::Lease lease, Assignment taken) {
    const std::uint64_t serial = new_serial();
    std::unique_ptr<Pool> made = make_pool(serial);
    made->first = lease;
    made->assignment = std::move(taken);
    Pool& pool = *pools_.emplace(serial, std::move(made)).first->second;
    mark_used_gpus();  // before its process is there, which is no foreign one
    Result<Process> process = start_pool(pool, shared_);
    if (!process) {
        pools_.erase(serial);
        mark_used_gpus();
        return refuse_(lease, outcome_of_failed_start(process.error()), process.error().message);
    }
    const Result<void> watched = pool.processes.watch(std::move(*process));
    if (!watched) end_pool(pool, Intent::kShutdown, watched.error().message, SIGTERM);
    ask_environment(pool);
    add(pool, std::move(lease));
}

void Pools::mark_used_gpus() {
    if (agent_.gpu_watch == nullptr) return;
    std::set<std::string> used;
    for (const auto& [serial, pool] : pools_)
        used.insert(pool->assignment.gpus.begin(), pool->assignment.gpus.end());
    agent_.gpu_watch->set_used(GpuWatch::Users::kPools, std::move(used));
}

/// What a pool runs in is found out once, before its first trial, and is a tag of each of its
/// trials' runs.
void Pools::ask_environment(Pool& pool) {
    const std::uint64_t serial = pool.serial;
    const auto on_answer = [this, serial](const RunEnvironment& environment) {
        Pool* known = find_pool(serial);
        if (known == nullptr) return;
        for (const auto& [key, value] : environment.tags) known->tags.push_back({key, value});
        for (const std::uint64_t trial : known->trials) agent_.outbox->add_tags(trial, known->tags);
        known->input.release();
    };
    shared_.environments.ask(serial, pool.first, variable(pool_environment(pool, shared_), "PATH"),
                             pool.assignment.gpus, on_answer);
    if (!shared_.environments.is_answered(serial)) pool.input.hold();
}

/// A trial of the pool from now on, whose metrics are read by `lines`, or by none if they are
/// wrong.
PoolTrial& Pools::enter(Pool& pool, tuner::Lease lease, Result<MetricLines> lines) {
    const std::string name = lease.run_id + "-" + std::to_string(lease.attempt);
    const AttemptFiles files(shared_.settings.state_dir / kTrialsFolder / name);
    const std::uint64_t serial = new_serial();
    auto log = std::make_unique<PoolTrialLog>(
        *agent_.loop, *agent_.upload, LogJob{serial, files, lease.id(), lease.experiment_id},
        shared_.settings.log_upload_period_ms);
    auto trial = std::make_unique<PoolTrial>(
        pool.serial, std::move(lease),
        lines ? std::move(*lines) : std::move(*MetricLines::create({}, "")), files, std::move(log));
    trial->serial = serial;
    trial->finish_request_id = random_hex(16);
    trial->since_ms = agent_.loop->now_ms();
    PoolTrial& entered = trials_.insert(std::move(trial));
    pool.trials.insert(serial);
    ++started_;
    agent_.outbox->open(serial, entered.files, entered.id(), {});
    return entered;
}

void Pools::add(Pool& pool, tuner::Lease lease) {
    agent_.loop->cancel(pool.idle_timer);
    Result<MetricLines> lines = MetricLines::create(lease.scrape, lease.metric);
    std::optional<Error> wrong;
    std::filesystem::path resume_dir;
    Result<std::filesystem::path> own = shared_.checkpoint_folders.make(lease);
    if (own) {
        Result<std::filesystem::path> parent = shared_.checkpoint_folders.find_parent(lease, *own);
        if (parent)
            resume_dir = std::move(*parent);
        else
            wrong = parent.error();
    } else {
        wrong = own.error();
    }
    if (!lines) wrong = lines.error();
    PoolTrial& trial = enter(pool, std::move(lease), std::move(lines));
    if (wrong) {
        tuner::FinishRequest request;
        request.outcome = outcome_of_failed_start(*wrong);
        request.reason = wrong->message;
        return conclude(pool, trial, std::move(request));
    }
    if (!pool.tags.empty()) agent_.outbox->add_tags(trial.serial, pool.tags);
    trial.checkpoint_dir = std::move(*own);
    shared_.results.watch(trial.serial, trial.lease, trial.checkpoint_dir, trial.files);
    pool.input.send(run_line(trial.lease, trial.checkpoint_dir.string(), resume_dir.string(),
                             trial.files.path(kModelFolder).string()));
}

// ---- What it says --------------------------------------------------------------------------

void Pools::pump_all() {
    std::vector<std::uint64_t> all;
    for (const auto& [serial, pool] : pools_) all.push_back(serial);
    for (const std::uint64_t serial : all) pump(serial);
}

void Pools::pump(std::uint64_t serial) {
    Pool* pool = find_pool(serial);
    if (pool == nullptr) return;
    const Outbox::Gathering gathering(*agent_.outbox);
    const std::int64_t now = agent_.loop->wall_ms();
    for (int i = 0; i < kChunksAtOnce; ++i) {
        for (const std::uint64_t trial : pool->trials)
            if (!agent_.outbox->has_room(trial)) return;  // on_room goes on
        if (pool->output.read(now)) continue;
        shared_.publish();
        if (!pool->is_alive) settle(*pool);
        return;
    }
    shared_.publish();
    agent_.loop->post([this, serial] { pump(serial); });  // others get their turn
}

void Pools::take_event(Pool& pool, const PoolEvent& event, std::int64_t now) {
    PoolTrial* trial = trials_.find(event.id);
    if (trial == nullptr) trial = adopt_trial(pool, event.id);
    if (trial == nullptr || trial->pool != pool.serial || !trial->is_in_pool) {
        if (event.kind == PoolEvent::Kind::kRefused)
            log_warning("a pool of study '" + pool.first.study + "' says: " + event.message);
        return;
    }
    if (!trial->has_begun) begin(pool, *trial);
    switch (event.kind) {
        case PoolEvent::Kind::kStarted: return;
        case PoolEvent::Kind::kMetrics: {
            Segment segment;
            trial->lines.read("tune: " + event.text, now, segment.findings);
            segment.end.offset = {-1, -1};
            return agent_.outbox->add(trial->serial, std::move(segment));
        }
        case PoolEvent::Kind::kLog: return take_log(*trial, event, now);
        case PoolEvent::Kind::kRefused: {
            tuner::FinishRequest request;
            request.outcome = tuner::Outcome::kBadConfig;
            request.reason = "the pool refused the trial: " + event.message;
            return conclude(pool, *trial, std::move(request));
        }
        case PoolEvent::Kind::kEnded: break;
    }
    conclude(pool, *trial, end_by_line(pool, *trial, event, agent_.loop->now_ms()));
}

/// Its time counts from here: before, it may have waited for a thread of the pool.
void Pools::begin(Pool& pool, PoolTrial& trial) {
    trial.has_begun = true;
    trial.since_ms = agent_.loop->now_ms();
    pool.has_begun_any = true;
    if (trial.lease.timeout_ms <= 0) return;
    trial.timeout_timer =
        agent_.loop->at(trial.since_ms + trial.lease.timeout_ms, [this, serial = trial.serial] {
            PoolTrial* due = trials_.find(serial);
            if (due == nullptr || !due->is_in_pool) return;
            due->has_timed_out = true;
            await_end(*due);
        });
}

/// Its lines may hold metrics, as those of a process do.
void Pools::take_log(PoolTrial& trial, const PoolEvent& event, std::int64_t now) {
    std::string text = event.text;
    if (text.empty() || text.back() != '\n') text += '\n';
    Segment segment;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        trial.lines.read(std::string_view(text).substr(begin, end - begin), now, segment.findings);
        begin = end + 1;
    }
    segment.end.offset = {-1, -1};
    agent_.outbox->add(trial.serial, std::move(segment));
    trial.log->add(text, event.is_error);
}

}  // namespace tune::worker
