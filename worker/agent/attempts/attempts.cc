// The table of attempts, driven by events on the loop: a lease arrives, devices are free, a
// supervisor's pidfd is readable, output was announced, the outbox has room. An attempt leaves the
// table only when both its end and its logs are settled. The end of a process is seen through its
// pidfd, never by polling; output is read before the end is judged, so no line is lost.

#include "worker/agent/attempts/attempts.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "worker/agent/attempts/attempt.h"
#include "worker/agent/attempts/environment.h"
#include "worker/agent/devices/machine_locks.h"
#include "worker/agent/models/logged_model.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {
namespace {

/// A log without its middle is sent whole each time, so less often: at most this much a
/// millisecond.
constexpr std::int64_t kUploadBytesPerMs = 4'000;
/// System metrics are differences: their base is read this part of a period after the start.
constexpr int kBasePart = 10;
/// A slot whose trial could not be started for want of the machine's means rests this long.
constexpr int kStartFailureRest_ms = 1'000;
/// Where it cannot be heard that a core became free, it is looked for again after this time.
constexpr int kCoreRest_ms = 200;

}  // namespace

std::string short_name(const tuner::Lease& lease) {
    return "trial " + std::to_string(lease.number) + " of study '" + lease.study + "'";
}

Attempts::Attempts(AttemptSettings settings, AttemptParts parts, std::function<void()> changed)
    : settings_(std::move(settings)),
      parts_(parts),
      changed_(std::move(changed)),
      environment_(own_environment()),
      boot_id_(current_boot_id()),
      wake_path_(settings_.state_dir / "wake"),
      has_gpu_each_(settings_.slots > 0 &&
                    parts_.devices->gpus().size() >= static_cast<std::size_t>(settings_.slots)),
      spare_folders_(settings_.state_dir / "spare"),
      checkpoint_folders_({.root = settings_.checkpoint_root,
                           .state = settings_.checkpoint_state,
                           .spare = settings_.state_dir / "empty",
                           // One that other agents share has rights of its own.
                           .own = settings_.state_dir / "checkpoints",
                           .stores = settings_.stores_checkpoints}),
      fetches_(*parts_.loop, *parts_.transfer, checkpoint_folders_, settings_.state_dir / "models",
               settings_.checkpoint_deadline_ms,
               [this](tuner::Lease lease, const CheckpointResult& result) {
                   on_fetched(std::move(lease), result);
               }),
      saves_(*parts_.loop, *parts_.transfer, checkpoint_folders_, settings_.checkpoint_deadline_ms,
             [this] { publish(); }),
      models_(*parts_.loop, *parts_.transfer, [this] { publish(); }),
      pools_(make_pools()) {}

Attempts::~Attempts() = default;

Result<void> Attempts::open_wake_fifo() {
    if (mkfifo(wake_path_.c_str(), 0600) != 0 && errno != EEXIST)
        return Error{Code::kInternalError,
                     "cannot make '" + wake_path_ + "': " + std::strerror(errno)};
    wake_.reset(open(wake_path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!wake_)
        return Error{Code::kInternalError,
                     "cannot open '" + wake_path_ + "': " + std::strerror(errno)};
    return parts_.loop->watch(wake_.get(), [this] { on_wake(); });
}

Attempts::Attempt& Attempts::insert(std::unique_ptr<Attempt> attempt) {
    return *attempts_.insert_or_assign(attempt->record.serial, std::move(attempt)).first->second;
}

Attempts::Attempt* Attempts::find(std::uint64_t serial) {
    const auto found = attempts_.find(serial);
    return found == attempts_.end() ? nullptr : found->second.get();
}

Attempts::Attempt* Attempts::find(const tuner::AttemptId& id) {
    for (const auto& [serial, attempt] : attempts_)
        if (attempt->record.id() == id) return attempt.get();
    return nullptr;
}

/// Also one that waits, for a device or its checkpoint.
bool Attempts::holds(const tuner::AttemptId& id) {
    if (find(id) != nullptr || pools_->has(id)) return true;
    const std::vector<tuner::AttemptId> ids = unstarted();
    return std::find(ids.begin(), ids.end(), id) != ids.end();
}

AttemptCounts Attempts::counts() const {
    AttemptCounts counts{0, 0, started_, finished_};
    for (const auto& [serial, attempt] : attempts_)
        ++(attempt->alive ? counts.running : counts.unreported);
    counts.storing = saves_.finishing() + models_.finishing();
    pools_->add_counts(counts);
    return counts;
}

bool Attempts::is_idle() const {
    return attempts_.empty() && waiting_.empty() && fetches_.is_empty() && pools_->is_idle();
}

std::int64_t Attempts::longest_grace_ms() const {
    std::int64_t longest = pools_->longest_grace_ms();
    for (const auto& [serial, attempt] : attempts_)
        if (attempt->alive) longest = std::max(longest, attempt->record.lease.grace_ms);
    return longest;
}

std::vector<tuner::AttemptId> Attempts::held() const {
    std::vector<tuner::AttemptId> ids;
    for (const auto& [serial, attempt] : attempts_)
        if (!attempt->finish_done && attempt->intent.intent != Intent::kLost)
            ids.push_back(attempt->record.id());
    for (tuner::AttemptId& id : unstarted()) ids.push_back(std::move(id));
    pools_->add_held(ids);
    return ids;
}

std::vector<tuner::AttemptId> Attempts::unstarted() const {
    std::vector<tuner::AttemptId> ids = fetches_.ids();
    for (const tuner::Lease& lease : waiting_) ids.push_back(lease.id());
    return ids;
}

std::optional<tuner::Lease> Attempts::take_unstarted(const tuner::AttemptId& id) {
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const auto& lease) { return lease.id() == id; });
    if (waits == waiting_.end()) return fetches_.give_up(id);
    std::optional<tuner::Lease> taken = std::move(*waits);
    waiting_.erase(waits);
    return taken;
}

void Attempts::publish() {
    if (std::exchange(is_publishing_, true)) return;
    parts_.loop->post([this] {
        is_publishing_ = false;
        publish_now();
    });
}

void Attempts::publish_now() {
    parts_.server_client->set_running(held());
    parts_.server_client->set_pool_room(pools_->room());
    changed_();
}

// ---- Beginning -----------------------------------------------------------------------------

void Attempts::start(std::vector<tuner::Lease> leases) {
    for (tuner::Lease& lease : leases) {
        if (holds(lease.id())) {
            parts_.server_client->free_slot();  // a repeated answer
            continue;
        }
        if (!fetches_.take(lease)) begin(std::move(lease));
    }
    publish_now();  // should we register just now, the server must hear that we have them
}

void Attempts::on_fetched(tuner::Lease lease, const CheckpointResult& result) {
    for (const std::string& note : result.notes) log_info(short_name(lease) + ": " + note);
    if (result.model_error) {
        refuse(lease, tuner::Outcome::kBadConfig, result.model_error->message);
        return publish();
    }
    const bool has_models = result.models.size() == wanted_models(lease.command).size();
    if (result.error && (result.error->code != Code::kInvalidParameterValue || !has_models)) {
        // It would begin anew here, and might go on elsewhere.
        refuse(lease, tuner::Outcome::kLost,
               "what it starts from, a stored checkpoint or a registered model, could not be "
               "fetched: " +
                   result.error->message);
        return publish();
    }
    for (const FetchedModel& model : result.models)
        put_model_path(lease.command, model.uri, model.folder);
    if (result.error) log_warning(result.error->message);
    if (!lease.pool) notes_[lease.run_id] = result.notes;
    // Its parent's record says that what is here now is what is stored.
    begin(std::move(lease));
    publish();
}

void Attempts::begin(tuner::Lease lease) {
    if (lease.pool && pools_->join(lease)) return parts_.server_client->free_slot();
    pools_->end_idle();
    if (lease.pool && pools_->has_leftovers()) return waiting_.push_back(std::move(lease));
    double gpus = lease.gpus_per_trial;
    // Nothing asked for, and a GPU for each slot: then each trial gets one of its own.
    if (gpus <= 0 && has_gpu_each_) gpus = 1;
    std::vector<std::string> chosen;
    for (const tuner::GrantedGpu& gpu : lease.devices) chosen.push_back(gpu.uuid);
    Result<std::optional<Assignment>> taken =
        chosen.empty() ? parts_.devices->take(lease.cpus_per_trial, gpus)
                       : parts_.devices->take_these(lease.cpus_per_trial, chosen,
                                                    lease.devices.front().bytes > 0);
    if (!taken) {
        // What was there when the server chose this agent may be gone meanwhile.
        const bool is_never_here = taken.error().code == Code::kInvalidParameterValue;
        const bool is_lost = taken.error().code == Code::kResourceDoesNotExist;
        return refuse(lease,
                      is_never_here ? tuner::Outcome::kBadConfig
                      : is_lost     ? tuner::Outcome::kLost
                                    : tuner::Outcome::kPreempted,
                      taken.error().message);
    }
    if (!*taken) {
        waiting_.push_back(std::move(lease));
        return await_core();
    }
    launch(std::move(lease), std::move(**taken));
}

void Attempts::start_waiting() {
    std::deque<tuner::Lease> waiting;
    waiting.swap(waiting_);
    for (tuner::Lease& lease : waiting) begin(std::move(lease));
}

void Attempts::on_devices_changed() {
    start_waiting();
    publish();
}

/// What waits for a core that another agent of this machine has hears when that lets go of it.
void Attempts::await_core() {
    const std::string& name = parts_.devices->held_elsewhere();
    if (name.empty() || core_news_) return;
    std::optional<UniqueFd> news = wait_for_release(name);
    const auto look_again = [this] {
        if (core_news_) parts_.loop->unwatch(core_news_.get());
        core_news_.reset();
        on_devices_changed();
    };
    if (news && parts_.loop->watch(news->get(), look_again))
        core_news_ = std::move(*news);
    else
        parts_.loop->at(parts_.loop->now_ms() + kCoreRest_ms, look_again);
}

void Attempts::refuse(const tuner::Lease& lease, tuner::Outcome outcome,
                      const std::string& reason) {
    auto attempt = std::make_unique<Attempt>(AttemptFiles(std::filesystem::path()));
    attempt->record.serial = new_serial();
    attempt->record.lease = lease;
    attempt->record.finish_request_id = random_hex(16);
    attempt->alive = false;
    attempt->logs_done = true;
    const std::uint64_t serial = insert(std::move(attempt)).record.serial;
    log_warning(short_name(lease) + " was not started: " + reason);
    parts_.outbox->open(serial, AttemptFiles(std::filesystem::path()), lease.id(), {});
    tuner::FinishRequest request;
    request.request_id = attempts_.at(serial)->record.finish_request_id;
    request.outcome = outcome;
    request.reason = reason;
    parts_.outbox->finish(serial, std::move(request));
    if (outcome == tuner::Outcome::kLost)
        parts_.loop->at(parts_.loop->now_ms() + kStartFailureRest_ms,
                        [this] { parts_.server_client->free_slot(); });
    else
        parts_.server_client->free_slot_at_end();
}

/// The study's, then the agent's, then those for GPUs.
Result<LogRules> Attempts::rules_of(const Attempt& attempt) const {
    std::vector<tuner::LogRule> rules = attempt.record.lease.log_rules;
    rules.insert(rules.end(), settings_.log_rules.begin(), settings_.log_rules.end());
    const std::vector<tuner::LogRule>& of_gpus = gpu_log_rules();
    if (!attempt.record.gpus.empty()) rules.insert(rules.end(), of_gpus.begin(), of_gpus.end());
    return LogRules::create(rules);
}

CgroupLimits Attempts::limits_of(const tuner::Lease& lease) const {
    return {
        .memory_bytes = lease.memory_bytes > 0 ? lease.memory_bytes : settings_.trial_memory_bytes,
        .cpus = lease.cpus_per_trial,
        .processes = settings_.trial_processes};
}

Result<void> Attempts::prepare(Attempt& attempt, LaunchSpec& spec) {
    const tuner::Lease& lease = attempt.record.lease;
    if (lease.command.empty() || lease.command.front().empty())
        return Error{Code::kInvalidParameterValue, "the study has no command to run"};
    TUNE_TRY(lines, metric_lines(lease));
    TUNE_TRY(rules, rules_of(attempt));
    TUNE_TRY(checkpoint_dir, checkpoint_folders_.make(lease));
    attempt.checkpoint_dir = checkpoint_dir;
    TUNE_TRY(resume_dir, checkpoint_folders_.find_parent(lease, checkpoint_dir));
    TUNE_TRY_VOID(spare_folders_.make(attempt.files, attempt.record));
    const std::filesystem::path artifacts = attempt.files.path(kArtifactFolder);
    std::error_code failed;
    std::filesystem::create_directory(artifacts, failed);
    attempt.output.emplace(attempt.files.directory(), std::move(lines), OutputPosition{});
    attempt.output->set_rules(std::move(rules));
    spec.directory = attempt.files.directory();
    spec.wake_fifo = wake_path_;
    spec.serial = attempt.record.serial;
    spec.grace_ms = std::max<std::int64_t>(0, lease.grace_ms);
    spec.timeout_ms = std::max<std::int64_t>(0, lease.timeout_ms);
    spec.cores = attempt.assignment.cores;
    for (const MachineLock& lock : attempt.assignment.locks) spec.inherited.push_back(lock->get());
    spec.working_dir = lease.working_dir;
    if (parts_.cgroups != nullptr) {
        TUNE_TRY(cgroup,
                 parts_.cgroups->create(attempt.files.directory().filename(), limits_of(lease)));
        spec.cgroup = cgroup;
    }
    spec.command = lease.command;
    spec.environment = trial_environment(
        environment_,
        {&lease, &attempt.assignment, settings_.server_url, checkpoint_dir.string(),
         resume_dir.string(), settings_.bin_dir, static_cast<int>(parts_.devices->cores().size()),
         settings_.slots, artifacts.string(), attempt.files.path(kModelFolder).string(),
         attempt.files.path(kProfileRequestFile).string()});
    return {};
}

/// Ports for several processes. Those on several machines have been told which; one machine may
/// take any.
Result<int> Attempts::take_ports(tuner::Lease& lease) {
    if (!lease.gang) return 0;
    tuner::Gang& gang = *lease.gang;
    if (gang.node < 0 || gang.nproc < 1 || gang.node >= static_cast<int>(gang.nodes.size()))
        return Error{Code::kInvalidParameterValue, "the lease names no place for its processes"};
    int& port = gang.nodes[static_cast<std::size_t>(gang.node)].port;
    const bool is_alone = gang.nodes.size() == 1;
    const int taken = parts_.gang_ports->take(port, is_alone);
    if (taken == 0)
        return Error{Code::kResourceExhausted,
                     "the ports from " + std::to_string(port) +
                         " on, where its processes are to meet, are not free (any more)"};
    port = taken;
    return taken;
}

void Attempts::launch(tuner::Lease lease, Assignment assignment) {
    if (lease.pool) return pools_->open(std::move(lease), std::move(assignment));
    const Result<int> ports = take_ports(lease);
    if (!ports) {
        parts_.devices->release(assignment);
        return refuse(lease,
                      ports.error().code == Code::kInvalidParameterValue
                          ? tuner::Outcome::kBadConfig
                          : tuner::Outcome::kLost,
                      ports.error().message);
    }
    const std::string name = lease.run_id + "-" + std::to_string(lease.attempt);
    auto attempt = std::make_unique<Attempt>(AttemptFiles(settings_.state_dir / "attempts" / name));
    attempt->record = {new_serial(),      std::move(lease), settings_.server_url,
                       random_hex(16),    boot_id_,         parts_.loop->now_ms(),
                       count_oom_kills(), assignment.cores, assignment.gpus};
    attempt->assignment = std::move(assignment);
    attempt->ports = *ports;
    LaunchSpec spec;
    note_used_gpus(attempt->assignment);
    Result<void> prepared = prepare(*attempt, spec);
    Result<Process> process = prepared ? parts_.launcher->start(spec) : prepared.error();
    if (!process) {
        const bool is_users_error = process.error().code == Code::kInvalidParameterValue;
        attempt->files.remove();
        if (parts_.cgroups != nullptr) parts_.cgroups->remove(name);
        parts_.gang_ports->give_back(attempt->ports);
        parts_.devices->release(attempt->assignment);
        return refuse(attempt->record.lease,
                      is_users_error ? tuner::Outcome::kBadConfig : tuner::Outcome::kLost,
                      process.error().message);
    }
    attempt->search_path = variable(spec.environment, "PATH");
    attempt->supervisor = std::move(*process);
    attempt->alive = true;
    ++started_;
    Attempt& running = insert(std::move(attempt));
    parts_.outbox->open(running.record.serial, running.files, running.record.id(), {});
    if (auto notes = notes_.extract(running.record.lease.run_id); !notes.empty())
        for (const std::string& note : notes.mapped()) running.files.note(note);
    capture_environment(running);
    watch(running);
    read_first(running);
}

void Attempts::watch(Attempt& attempt) {
    const std::uint64_t serial = attempt.record.serial;
    const Result<void> watched = parts_.loop->watch(attempt.supervisor.pidfd.get(),
                                                    [this, serial] { on_supervisor_gone(serial); });
    if (!watched) {
        // Without a watch its end would go unseen; epoll refuses only when memory is out.
        log_error(watched.error().text());
        end(attempt, Intent::kShutdown, watched.error().message, SIGTERM);
    }
    schedule_system_metrics(attempt);
    watch_gpu_memory(attempt);
    keep_results(serial, attempt.record.lease, attempt.checkpoint_dir, attempt.files);
}

void Attempts::keep_results(std::uint64_t serial, const tuner::Lease& lease,
                            const std::filesystem::path& folder, const AttemptFiles& files) {
    models_.watch(serial, lease, short_name(lease), files);
    saves_.watch(serial, lease, short_name(lease), folder, files);
}

// ---- While it runs -------------------------------------------------------------------------

void Attempts::gather() {
    if (gathering_) return;
    gathering_.emplace(*parts_.outbox);
    parts_.loop->post([this] { gathering_.reset(); });
}

void Attempts::on_wake() {
    gather();
    std::uint64_t records[8192];
    const ssize_t count = read(wake_.get(), records, sizeof records);
    if (count <= 0) return;
    const std::size_t woken = static_cast<std::size_t>(count) / sizeof records[0];
    if (woken >= std::size(records) / 2) {  // it may have been full: some wakes were lost
        std::vector<std::uint64_t> all;
        for (const auto& [serial, attempt] : attempts_) all.push_back(serial);
        for (const std::uint64_t serial : all) pump(serial);
        return pools_->wake_all();
    }
    std::sort(records, records + woken);
    const auto* end = std::unique(records, records + woken);
    for (const auto* serial = records; serial != end; ++serial) pump(*serial);
}

void Attempts::pump(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr) return pools_->on_wake(serial);
    if (!attempt->output || attempt->output_done) return;
    const std::int64_t now = parts_.loop->wall_ms();
    for (int i = 0; i < kChunksAtOnce; ++i) {
        if (!parts_.outbox->has_room(serial)) return;  // on_room goes on
        Segment segment;
        const bool more = attempt->output->read(now, segment);
        if (!more && !attempt->alive) attempt->output->read_unfinished_lines(now, segment);
        note_told_peak(*attempt, segment.findings);
        parts_.outbox->add(serial, std::move(segment));
        if (more) continue;
        if (attempt->alive) return schedule_upload(*attempt);
        attempt->output_done = true;
        return conclude_if_known(*attempt);
    }
    parts_.loop->post([this, serial] { pump(serial); });  // others get their turn
}

void Attempts::schedule_upload(Attempt& attempt) {
    const std::int64_t bytes = attempt.output->bytes();
    if (attempt.upload_timer != Loop::kNoTimer || bytes == attempt.uploaded_bytes) return;
    std::int64_t delay = kFirstUpload_ms;
    if (attempt.uploaded_bytes > 0)
        delay =
            std::max<std::int64_t>(settings_.log_upload_period_ms,
                                   bytes > kCompleteLogBytesMax ? bytes / kUploadBytesPerMs : 0);
    const std::uint64_t serial = attempt.record.serial;
    attempt.upload_timer = parts_.loop->at(parts_.loop->now_ms() + delay, [this, serial] {
        Attempt* due = find(serial);
        if (due == nullptr || !due->alive) return;
        due->upload_timer = Loop::kNoTimer;
        due->uploaded_bytes = due->output->bytes();
        parts_.upload->submit({serial, due->files, due->record.id(),
                               due->record.lease.experiment_id, log_folder(due->record.lease),
                               false, false});
    });
}

Result<MetricLines> Attempts::metric_lines(const tuner::Lease& lease) {
    if (lease.gang && lease.gang->node > 0) return MetricLines::create({}, "");
    return MetricLines::create(lease.scrape, lease.metric);
}

std::string Attempts::log_folder(const tuner::Lease& lease) {
    if (!lease.gang || lease.gang->node == 0) return {};
    return "node-" + std::to_string(lease.gang->node) + "/";
}

/// The base is read a little after the start, so that short trials do not pay for it.
void Attempts::schedule_system_metrics(Attempt& attempt) {
    if (!settings_.system_metrics) return;
    const std::uint64_t serial = attempt.record.serial;
    const int period_ms = settings_.system_metrics_period_ms;
    const int delay_ms = attempt.system ? period_ms : period_ms / kBasePart;
    attempt.system_timer = parts_.loop->at(parts_.loop->now_ms() + delay_ms,
                                           [this, serial] { sample_system_metrics(serial); });
}

void Attempts::sample_system_metrics(std::uint64_t serial) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || !attempt->alive) return;
    if (!attempt->system) {
        attempt->system.emplace(attempt->supervisor.pid);
    } else {
        send_system_metrics(serial, attempt->system->sample());
        sample_gpus(*attempt);
    }
    schedule_system_metrics(*attempt);
}

void Attempts::send_system_metrics(std::uint64_t serial, std::vector<NamedValue> values) {
    Attempt* attempt = find(serial);
    if (attempt == nullptr || !attempt->alive) return;
    const std::int64_t now = parts_.loop->wall_ms();
    // Not by the wall clock, which may be set back meanwhile.
    const std::int64_t step =
        (parts_.loop->now_ms() - attempt->record.started_ms) / settings_.system_metrics_period_ms;
    std::vector<tuner::ReportedMetric> metrics;
    for (NamedValue& value : values)
        metrics.push_back({std::move(value.key), value.value, step, now});
    parts_.outbox->add_metrics(serial, std::move(metrics));
}

}  // namespace tune::worker
