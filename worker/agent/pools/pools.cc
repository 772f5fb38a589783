// A trial is a line to the pool and lines from it. Output is read from the supervisor's file as
// that of any trial is; each line is handed to the trial that it names, and nothing about a trial
// is on disk but its log. The last part of a trial's life: pools_end.cc.

#include "worker/agent/pools/pools.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/id.h"
#include "base/log.h"
#include "worker/agent/attempts/environment.h"
#include "worker/agent/models/logged_model.h"
#include "worker/agent/pools/pool.h"

namespace tune::worker {
namespace {

constexpr std::size_t kChunkBytes = 256u << 10;
/// A line may hold the text of a log.
constexpr std::size_t kPoolLineBytesMax = 1u << 20;
/// More of a trial's log is left out.
constexpr std::int64_t kTrialLogBytesMax = kLogTailBytes;
constexpr int kPipeBytes = 1 << 20;
/// A pool that has no room for lines now is offered them again after this time.
constexpr int kFlushAgain_ms = 10;

/// By this variable processes of a pool are found whose supervisor was killed.
constexpr const char* kPoolVariable = "TUNE_POOL";

/// What is of one trial reaches it in its line.
bool is_of_trial(std::string_view variable) {
    constexpr std::string_view kNames[] = {
        "MLFLOW_RUN_ID=",       "TUNE_PARAMS=",      "TUNE_TRIAL=",     "TUNE_ATTEMPT=",
        "TUNE_SEED=",           "TUNE_RESUME_FROM=", "TUNE_STEP_FROM=", "TUNE_STEP_TO=",
        "TUNE_CHECKPOINT_DIR=", "TUNE_MODEL_DIR=",   "TUNE_PARENT="};
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [variable](std::string_view name) { return variable.starts_with(name); });
}

/// A pool that has ended is noticed by its pidfd, not by a signal of a write.
void block_broken_pipes() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Pools::Pools(const AttemptSettings& settings, const AttemptParts& parts, PoolHooks hooks,
             std::string wake_path, std::vector<std::string> environment)
    : settings_(settings),
      parts_(parts),
      hooks_(std::move(hooks)),
      wake_path_(std::move(wake_path)),
      environment_(std::move(environment)) {}

Pools::~Pools() = default;

Pools::Pool* Pools::find_pool(std::uint64_t serial) {
    const auto found = pools_.find(serial);
    return found == pools_.end() ? nullptr : found->second.get();
}

Pools::Trial* Pools::find_trial(std::uint64_t serial) {
    const auto found = trials_.find(serial);
    return found == trials_.end() ? nullptr : found->second.get();
}

Pools::Trial* Pools::find_trial(const tuner::AttemptId& id) {
    const auto found = by_id_.find(key_of(id));
    return found == by_id_.end() ? nullptr : find_trial(found->second);
}

bool Pools::has(const tuner::AttemptId& id) const {
    return by_id_.contains(key_of(id));
}

void Pools::add_counts(AttemptCounts& counts) const {
    // A process without trials is there, too.
    for (const auto& [serial, pool] : pools_)
        counts.running += std::max(1, static_cast<int>(pool->trials.size()));
    for (const auto& [serial, trial] : trials_)
        if (!trial->is_in_pool) ++counts.unreported;
    counts.started += started_;
    counts.finished += finished_;
}

void Pools::add_held(std::vector<tuner::AttemptId>& ids) const {
    for (const auto& [serial, trial] : trials_)
        if (!trial->finish_done && trial->intent.intent != Intent::kLost)
            ids.push_back(trial->id());
}

int Pools::room() const {
    int room = 0;
    for (const auto& [serial, pool] : pools_)
        if (pool->is_open) room += pool->size() - static_cast<int>(pool->trials.size());
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
        if (!pool->is_open || pool->first.pool->name != lease.pool->name) continue;
        if (static_cast<int>(pool->trials.size()) >= pool->size()) continue;
        add(*pool, std::move(lease));
        return true;
    }
    return false;
}

void Pools::open(tuner::Lease lease, Assignment taken) {
    block_broken_pipes();
    const std::uint64_t serial = new_serial();
    auto made = std::make_unique<Pool>(
        AttemptFiles(settings_.state_dir / kPoolsFolder / std::to_string(serial)));
    Pool& pool = *made;
    pool.serial = serial;
    pool.first = lease;
    pool.assignment = std::move(taken);
    LaunchSpec spec;
    Result<void> prepared = prepare(pool, lease, spec);
    Result<Process> process = prepared ? parts_.launcher->start(spec) : prepared.error();
    if (spec.input >= 0) close(spec.input);
    if (!process) {
        pool.files.remove();
        parts_.devices->release(pool.assignment);
        const bool is_users = process.error().code == Code::kInvalidParameterValue;
        return hooks_.refuse(lease, is_users ? tuner::Outcome::kBadConfig : tuner::Outcome::kLost,
                             process.error().message);
    }
    pool.supervisor = std::move(*process);
    pools_.emplace(serial, std::move(made));
    const Result<void> watched =
        parts_.loop->watch(pool.supervisor.pidfd.get(), [this, serial] { on_gone(serial); });
    if (!watched) end_pool(pool, Intent::kShutdown, watched.error().message, SIGTERM);
    ask_environment(pool, lease);
    add(pool, std::move(lease));
}

Result<void> Pools::prepare(Pool& pool, const tuner::Lease& lease, LaunchSpec& spec) {
    if (lease.command.empty() || lease.command.front().empty())
        return Error{Code::kInvalidParameterValue, "the study has no command to run"};
    std::error_code error;
    std::filesystem::create_directories(pool.files.directory().parent_path(), error);
    // What the next agent needs to know, should this one be killed.
    TUNE_TRY_VOID(pool.files.create({.serial = pool.serial,
                                     .lease = lease,
                                     .server_url = settings_.server_url,
                                     .finish_request_id = {},
                                     .boot_id = {},
                                     .started_ms = parts_.loop->now_ms(),
                                     .oom_kills = 0,
                                     .cores = pool.assignment.cores,
                                     .gpus = pool.assignment.gpus}));
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return Error{Code::kResourceExhausted,
                     "cannot make the input of a pool: " + std::string(std::strerror(errno))};
    pool.input.reset(ends[1]);
    spec.input = ends[0];
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // a smaller one works, too
    spec.with_agent = true;
    spec.directory = pool.files.directory();
    spec.wake_fifo = wake_path_;
    spec.serial = pool.serial;
    spec.grace_ms = std::max<std::int64_t>(0, lease.grace_ms);
    spec.cores = pool.assignment.cores;
    for (const MachineLock& lock : pool.assignment.locks) spec.inherited.push_back(lock->get());
    spec.working_dir = lease.working_dir;
    if (parts_.cgroups != nullptr) {
        const std::int64_t memory =
            lease.memory_bytes > 0 ? lease.memory_bytes : settings_.trial_memory_bytes;
        TUNE_TRY(cgroup, parts_.cgroups->create(pool.files.directory().filename(),
                                                {.memory_bytes = memory,
                                                 .cpus = lease.cpus_per_trial,
                                                 .processes = settings_.trial_processes}));
        spec.cgroup = cgroup;
    }
    spec.command = lease.command;
    spec.environment = pool_environment(pool, lease);
    return {};
}

std::vector<std::string> Pools::pool_environment(const Pool& pool,
                                                 const tuner::Lease& lease) const {
    tuner::Lease common = lease;
    common.token.clear();
    std::vector<std::string> list = trial_environment(
        environment_, {&common, &pool.assignment, settings_.server_url, "", "", settings_.bin_dir,
                       static_cast<int>(parts_.devices->cores().size()), settings_.slots});
    std::erase_if(list, is_of_trial);
    list.push_back("TUNE_POOL_SIZE=" + std::to_string(pool.size()));
    list.push_back(std::string(kPoolVariable) + "=" + std::to_string(pool.serial));
    return list;
}

/// What a pool runs in is found out once, and is a tag of each of its trials' runs.
void Pools::ask_environment(Pool& pool, const tuner::Lease& lease) {
    if (parts_.environment == nullptr) return;
    pool.environment_known = false;
    EnvironmentQuestion question{.command = lease.command,
                                 .working_dir = lease.working_dir,
                                 .search_path = variable(pool_environment(pool, lease), "PATH"),
                                 .driver_version = settings_.driver_version};
    const std::vector<std::string>& gpus = pool.assignment.gpus;
    for (const GpuFacts& gpu : settings_.gpus)
        if (std::find(gpus.begin(), gpus.end(), gpu.uuid) != gpus.end())
            question.gpus.push_back(gpu);
    const std::uint64_t serial = pool.serial;
    parts_.environment->ask(std::move(question), [this, serial](RunEnvironment environment) {
        parts_.loop->post([this, serial, environment = std::move(environment)] {
            Pool* known = find_pool(serial);
            if (known == nullptr) return;
            for (const auto& [key, value] : environment.tags) known->tags.push_back({key, value});
            known->environment_known = true;
            for (const std::uint64_t trial : known->trials)
                parts_.outbox->add_tags(trial, known->tags);
            flush(serial);
        });
    });
}

std::string Pools::key_of(const tuner::AttemptId& id) {
    return id.run_id + "/" + std::to_string(id.attempt);
}

/// A trial of the pool from now on, whose metrics are read by `lines`, or by none if they are
/// wrong.
Pools::Trial& Pools::enter(Pool& pool, tuner::Lease lease, Result<MetricLines> lines) {
    const std::string name = lease.run_id + "-" + std::to_string(lease.attempt);
    auto made =
        std::make_unique<Trial>(lines ? std::move(*lines) : std::move(*MetricLines::create({}, "")),
                                AttemptFiles(settings_.state_dir / kTrialsFolder / name));
    Trial& trial = *made;
    trial.serial = new_serial();
    trial.pool = pool.serial;
    trial.lease = std::move(lease);
    trial.finish_request_id = random_hex(16);
    trial.since_ms = parts_.loop->now_ms();
    trials_.emplace(trial.serial, std::move(made));
    by_id_[key_of(trial.id())] = trial.serial;
    pool.trials.insert(trial.serial);
    ++started_;
    parts_.outbox->open(trial.serial, trial.files, trial.id(), {});
    return trial;
}

void Pools::add(Pool& pool, tuner::Lease lease) {
    parts_.loop->cancel(pool.idle_timer);
    Result<MetricLines> lines = MetricLines::create(lease.scrape, lease.metric);
    const auto folders = hooks_.folders(lease);
    std::optional<Error> wrong;
    if (!folders) wrong = folders.error();
    if (!lines) wrong = lines.error();
    Trial& trial = enter(pool, std::move(lease), std::move(lines));
    if (wrong) {
        const bool is_users = wrong->code == Code::kInvalidParameterValue;
        tuner::FinishRequest request;
        request.outcome = is_users ? tuner::Outcome::kBadConfig : tuner::Outcome::kLost;
        request.reason = wrong->message;
        return conclude(pool, trial, std::move(request));
    }
    if (!pool.tags.empty()) parts_.outbox->add_tags(trial.serial, pool.tags);
    trial.checkpoint_dir = folders->first;
    hooks_.begun(trial.serial, trial.lease, trial.checkpoint_dir, trial.files);
    send(pool, run_line(trial.lease, folders->first.string(), folders->second.string(),
                        trial.files.path(kModelFolder).string()));
}

void Pools::send(Pool& pool, const std::string& lines) {
    pool.unsent += lines;
    flush(pool.serial);
}

void Pools::flush(std::uint64_t serial) {
    Pool* pool = find_pool(serial);
    if (pool == nullptr || !pool->input || !pool->environment_known) return;
    while (!pool->unsent.empty()) {
        const ssize_t count = write(pool->input.get(), pool->unsent.data(), pool->unsent.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) {
            parts_.loop->cancel(pool->flush_timer);
            pool->flush_timer = parts_.loop->at(parts_.loop->now_ms() + kFlushAgain_ms,
                                                [this, serial] { flush(serial); });
            return;
        }
        if (count < 0) return pool->unsent.clear();  // it has ended
        pool->unsent.erase(0, static_cast<std::size_t>(count));
    }
    if (!pool->is_open) pool->input.reset();
}

// ---- What it says --------------------------------------------------------------------------

void Pools::wake_all() {
    std::vector<std::uint64_t> all;
    for (const auto& [serial, pool] : pools_) all.push_back(serial);
    for (const std::uint64_t serial : all) pump(serial);
}

void Pools::pump(std::uint64_t serial) {
    Pool* pool = find_pool(serial);
    if (pool == nullptr) return;
    const Outbox::Gathering gathering(*parts_.outbox);
    const std::int64_t now = parts_.loop->wall_ms();
    for (int i = 0; i < kChunksAtOnce; ++i) {
        for (const std::uint64_t trial : pool->trials)
            if (!parts_.outbox->has_room(trial)) return;  // on_room goes on
        if (read_chunk(*pool, now)) continue;
        hooks_.publish();
        if (!pool->is_alive) settle(*pool);
        return;
    }
    hooks_.publish();
    parts_.loop->post([this, serial] { pump(serial); });  // others get their turn
}

bool Pools::read_chunk(Pool& pool, std::int64_t now) {
    if (!pool.output)
        pool.output.reset(::open(pool.files.path(kStdoutFile).c_str(), O_RDONLY | O_CLOEXEC));
    if (!pool.output) return false;
    static thread_local std::vector<char> buffer(kChunkBytes);
    std::size_t most = buffer.size();
    const bool is_again = !pool.read_before.empty();
    if (is_again) {
        const ReadStretch& stretch = pool.read_before.front();
        most = std::min(
            most, static_cast<std::size_t>(std::max<std::int64_t>(stretch.end - pool.offset, 1)));
        now = stretch.timestamp_ms;
    }
    const ssize_t count = pread(pool.output.get(), buffer.data(), most, pool.offset);
    if (count <= 0) return false;
    pool.offset += count;
    if (!is_again)
        pool.journal.note_read({pool.offset, now});
    else if (pool.offset >= pool.read_before.front().end)
        pool.read_before.pop_front();
    std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    if (!pool.is_adopted && bytes.find('\0') != std::string_view::npos)
        end_pool(pool, Intent::kCheckpointStop,
                 "more of the pool's lines waited than are kept, so some were lost", SIGTERM);
    while (!bytes.empty()) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) {
            pool.partial.append(bytes);
            if (pool.partial.size() > kPoolLineBytesMax) pool.partial.clear();
            break;
        }
        if (pool.partial.empty()) {
            take_line(pool, bytes.substr(0, end), now);
        } else {
            const std::string line = std::exchange(pool.partial, {}).append(bytes.substr(0, end));
            take_line(pool, line, now);
        }
        bytes.remove_prefix(end + 1);
    }
    return true;
}

/// What is no line of the protocol is the program's own output, and stays in the pool's log.
void Pools::take_line(Pool& pool, std::string_view line, std::int64_t now) {
    const Result<PoolEvent> event = parse_pool_event(line);
    if (event) take_event(pool, *event, now);
}

void Pools::take_event(Pool& pool, const PoolEvent& event, std::int64_t now) {
    Trial* trial = find_trial(event.id);
    if (trial == nullptr) trial = adopt_trial(pool, event.id);
    if (trial == nullptr || trial->pool != pool.serial || !trial->is_in_pool) {
        if (event.kind == PoolEvent::Kind::kRefused)
            log_warning("a pool of study '" + pool.first.study + "' says: " + event.message);
        return;
    }
    if (!trial->has_begun) begin(*trial);
    switch (event.kind) {
        case PoolEvent::Kind::kStarted: return;
        case PoolEvent::Kind::kMetrics: {
            Segment segment;
            trial->lines.read("tune: " + event.text, now, segment.findings);
            segment.end.offset = {-1, -1};
            return parts_.outbox->add(trial->serial, std::move(segment));
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
    ExitRecord exit;
    exit.exit_code = event.exit_code;
    exit.stopped = trial->intent.intent != Intent::kNone;
    exit.timed_out = trial->has_timed_out;
    exit.wall_ms = parts_.loop->now_ms() - trial->since_ms;
    tuner::FinishRequest request = request_of(pool, *trial, exit, event.message);
    if (request.outcome == tuner::Outcome::kDone && trial->lines.malformed_count() > 0)
        request.reason =
            "metrics could not be read: " + last_line(trial->lines.malformed_example(), 400);
    conclude(pool, *trial, std::move(request));
}

/// Its time counts from here: before, it may have waited for a thread of the pool.
void Pools::begin(Trial& trial) {
    trial.has_begun = true;
    trial.since_ms = parts_.loop->now_ms();
    if (Pool* pool = find_pool(trial.pool)) pool->has_begun_any = true;
    if (trial.lease.timeout_ms <= 0) return;
    trial.timeout_timer =
        parts_.loop->at(trial.since_ms + trial.lease.timeout_ms, [this, serial = trial.serial] {
            Trial* due = find_trial(serial);
            if (due == nullptr || !due->is_in_pool) return;
            due->has_timed_out = true;
            await_end(*due);
        });
}

/// Its lines may hold metrics, as those of a process do.
void Pools::take_log(Trial& trial, const PoolEvent& event, std::int64_t now) {
    std::string text = event.text;
    if (text.empty() || text.back() != '\n') text += '\n';
    Segment segment;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        trial.lines.read(std::string_view(text).substr(begin, end - begin), now, segment.findings);
        begin = end + 1;
    }
    segment.end.offset = {-1, -1};
    parts_.outbox->add(trial.serial, std::move(segment));
    trial.log_bytes += static_cast<std::int64_t>(text.size());
    if (trial.log_bytes > kTrialLogBytesMax) return;
    std::error_code error;
    if (!trial.has_log) std::filesystem::create_directories(trial.files.directory(), error);
    trial.has_log = true;
    const UniqueFd file(::open(trial.files.path(event.is_error ? kStderrFile : kStdoutFile).c_str(),
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    // Text that cannot be stored (full disk) has no other place to go.
    if (!file || write(file.get(), text.data(), text.size()) < 0) return;
    schedule_upload(trial);
}

void Pools::schedule_upload(Trial& trial) {
    if (trial.upload_timer != Loop::kNoTimer || trial.log_bytes == trial.uploaded_bytes) return;
    const int delay = trial.uploaded_bytes > 0 ? settings_.log_upload_period_ms : kFirstUpload_ms;
    trial.upload_timer =
        parts_.loop->at(parts_.loop->now_ms() + delay, [this, serial = trial.serial] {
            Trial* due = find_trial(serial);
            if (due == nullptr || !due->is_in_pool) return;
            due->upload_timer = Loop::kNoTimer;
            due->uploaded_bytes = due->log_bytes;
            parts_.upload->submit(
                {serial, due->files, due->id(), due->lease.experiment_id, "", false, false});
        });
}

}  // namespace tune::worker
