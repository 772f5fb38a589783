// Builds the agent from its parts and connects them: server client and outbox call in from their
// threads, and everything is posted to the loop, which owns all attempts. Stopping is ordered: no
// more leases, the attempts end (or are left running), their ends are delivered within a time
// limit, then the threads stop. Every wait is for a condition, none for a time alone.

#include "worker/agent/agent.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/id.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/version.h"
#include "worker/agent/agent_impl.h"
#include "worker/agent/checkpoints/folder_record.h"
#include "worker/agent/server/own_address.h"

namespace tune::worker {
namespace {

/// Ends sent at a time: enough for the server to commit several with one sync of its disk.
constexpr int kSendersMax = 4;

std::string host_name() {
    char name[256] = {};
    return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// Bytes of memory of this machine; 0: unknown.
std::int64_t machine_memory() {
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? std::int64_t{pages} * page_bytes : 0;
}

std::filesystem::path own_folder() {
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    return error ? std::filesystem::path() : self.parent_path();
}

Result<void> make_folders(const std::filesystem::path& state_dir) {
    std::error_code error;
    std::filesystem::create_directories(state_dir / "attempts", error);
    if (error)
        return Error{Code::kPermissionDenied, "the agent cannot write its state folder '" +
                                                  state_dir.string() + "': " + error.message()};
    return {};
}

/// Held as long as the descriptor is open; the kernel lets go of it however the process ends.
Result<UniqueFd> lock_folder(const std::filesystem::path& state_dir) {
    const std::filesystem::path path = state_dir / "lock";
    UniqueFd lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock)
        return Error{Code::kPermissionDenied, "the agent cannot write its state folder: '" +
                                                  path.string() + "': " + std::strerror(errno)};
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
        return Error{Code::kResourceAlreadyExists,
                     "another agent uses the state folder '" + state_dir.string() +
                         "'; stop it, or choose another folder for this agent"};
    return lock;
}

Result<std::string> read_or_make_id(const std::filesystem::path& state_dir) {
    const std::filesystem::path path = state_dir / "agent-id";
    Result<std::string> known = read_file(path, 256);
    if (known) {
        while (!known->empty() && known->back() == '\n') known->pop_back();
        if (!known->empty()) return known;
    }
    std::string id = random_hex(16);
    TUNE_TRY_VOID(write_file_atomic(path, id + "\n"));
    return id;
}

}  // namespace

Result<void> Agent::Impl::build() {
    std::vector<int> cores = allowed_cores();
    if (options.cpus > static_cast<int>(cores.size()) || options.cpus < 0 || options.slots < 0)
        return Error{Code::kInvalidParameterValue,
                     "the agent was given " + std::to_string(options.cpus) + " cores and " +
                         std::to_string(options.slots) + " slots; this process may use " +
                         std::to_string(cores.size()) + " cores, and neither can be negative"};
    if (options.cpus > 0) cores.resize(static_cast<std::size_t>(options.cpus));
    if (options.memory_bytes == 0) options.memory_bytes = machine_memory();
    if (options.address.empty()) options.address = address_towards(options.server_url);
    TUNE_TRY(loop, Loop::create());
    loop_ = std::move(loop);
    contact_.emplace(*loop_, options.away_grace_ms,
                     [this](std::int64_t away_ms) { stop_without_server(away_ms); });
    end_timers_.emplace(*loop_, options.idle_exit_ms, options.time_limit_ms, end_events());
    TUNE_TRY_VOID(build_devices(std::move(cores)));
    TUNE_TRY_VOID(build_cgroups());
    TUNE_TRY_VOID(LogRules::create(options.log_rules));
    TUNE_TRY(launcher, Launcher::create());
    launcher_.emplace(std::move(launcher));
    tuner::RegisterRequest registration{.agent_id = id,
                                        .host = host_name(),
                                        .pid = getpid(),
                                        .slots = options.slots,
                                        .cpus = static_cast<int>(devices_->cores().size()),
                                        .gpus = devices_->gpus(),
                                        .devices = described_gpus(),
                                        .memory_bytes = options.memory_bytes,
                                        .labels = options.labels,
                                        .address = options.address,
                                        .version = kVersion};
    TUNE_TRY(server_client, ServerClient::create(options.server_url, std::move(registration),
                                                 options.slots, link_events()));
    server_client_ = std::move(server_client);
    TUNE_TRY_VOID(build_senders());
    build_attempts();
    status_.slots = options.slots;
    return {};
}

Result<void> Agent::Impl::build_senders() {
    cleaner_.emplace(options.checkpoint_root, [this](const std::string& key) {
        const FolderRecord record = read_folder_record(checkpoint_state, key);
        remove_folder_record(checkpoint_state, key);
        if (!record.at.store.empty())
            transfer_->submit({.kind = CheckpointJob::Kind::kClear, .at = record.at});
    });
    TUNE_TRY(outbox, Outbox::create(options.server_url, id,
                                    std::clamp(options.slots, 1, kSendersMax), outbox_events()));
    outbox_ = std::move(outbox);
    TUNE_TRY(upload, LogUpload::create(options.server_url, [this](std::uint64_t serial, bool final,
                                                                  bool uploaded) {
                 loop_->post([=, this] { attempts_->on_uploaded(serial, final, uploaded); });
             }));
    upload_ = std::move(upload);
    TUNE_TRY(transfer,
             CheckpointTransfer::create(options.server_url, [this](const CheckpointJob& job,
                                                                   const CheckpointResult& result) {
                 loop_->post([this, job, result] { attempts_->on_checkpoint(job, result); });
             }));
    transfer_ = std::move(transfer);
    return {};
}

void Agent::Impl::build_attempts() {
    attempts_ = std::make_unique<Attempts>(
        AttemptSettings{options.server_url, options.state_dir, options.checkpoint_root,
                        checkpoint_state, options.bin_dir.string(), options.slots,
                        options.system_metrics, std::max(100, options.system_metrics_period_ms),
                        options.log_upload_period_ms, options.trial_memory_bytes,
                        options.trial_processes, options.stores_checkpoints,
                        options.checkpoint_deadline_ms, options.log_rules, gpus_.devices,
                        gpus_.nvml == nullptr ? "" : gpus_.nvml->driver_version()},
        AttemptParts{loop_.get(), &*launcher_, &*devices_, gpu_watch_.get(),
                     cgroups_ ? &*cgroups_ : nullptr,
                     options.capture_environment ? &environment_ : nullptr, &gang_ports_,
                     server_client_.get(), outbox_.get(), upload_.get(), transfer_.get(),
                     [this](const std::string& uuid, const std::string& reason) {
                         // Later: an attempt is being looked at just now.
                         loop_->post([=, this] { exclude(uuid, reason); });
                     }},
        [this] { publish(); });
}

LinkEvents Agent::Impl::link_events() {
    LinkEvents events;
    events.registered = [this](const tuner::RegisterReply& reply) {
        contact_->set_lease_ttl(std::max<std::int64_t>(1'000, reply.lease_ttl_ms));
        loop_->post([this, lost = reply.lost] {
            for (const tuner::AttemptId& attempt : lost) attempts_->lose(attempt);
        });
    };
    events.leased = [this](std::vector<tuner::Lease> leases) {
        loop_->post([this, leases = std::move(leases)]() mutable {
            std::vector<tuner::AttemptId> ids;
            for (const tuner::Lease& lease : leases) ids.push_back(lease.id());
            // Once stopping, what was leased meanwhile is left to the server: our farewell tells
            // it.
            if (!applied_stop_ || *applied_stop_ == StopMode::kDrain)
                attempts_->start(std::move(leases));
            server_client_->leases_taken(ids);
        });
    };
    events.heartbeat = [this](const tuner::HeartbeatReply& reply) {
        if (reply.directives.empty() && reply.lost.empty()) return;
        loop_->post([this, reply] {
            for (const tuner::Directive& directive : reply.directives) attempts_->obey(directive);
            for (const tuner::AttemptId& attempt : reply.lost) attempts_->lose(attempt);
        });
    };
    events.contact = [this](const std::string& error) { contact(error); };
    events.gang_port = [this] { return gang_ports_.next(); };
    events.gang_port_given = [this](int port) { gang_ports_.promise(port); };
    return events;
}

OutboxEvents Agent::Impl::outbox_events() {
    OutboxEvents events;
    events.finished = [this](std::uint64_t serial) {
        loop_->post([=, this] { attempts_->on_finished(serial); });
    };
    events.checkpoints = [this](tuner::NeededCheckpoints needed) {
        cleaner_->submit(std::move(needed));
    };
    events.stale = [this](std::uint64_t serial) {
        loop_->post([=, this] { attempts_->on_stale(serial); });
    };
    events.room = [this](std::uint64_t serial) {
        loop_->post([=, this] { attempts_->on_room(serial); });
    };
    events.contact = [this](const std::string& error) { contact(error); };
    events.unknown_agent = [this] { server_client_->register_again(); };
    return events;
}

void Agent::Impl::contact(const std::string& error) {
    const bool connected = error.empty();
    const bool has_changed = contact_->note(connected);
    {
        const std::lock_guard lock(mutex_);
        const bool is_first_fault = !connected && status_.last_error.empty();
        if (!has_changed && connected == status_.connected && !is_first_fault) return;
        if (connected != status_.connected && connected && !status_.last_error.empty())
            log_info("the server answers again");
        if (is_first_fault) log_warning("cannot talk to the server; trying again: " + error);
        status_.connected = connected;
        status_.last_error = error;
    }
    loop_->post([this] {
        contact_->update();
        publish();
    });
}

/// By then the server has probably given its trials to other agents.
void Agent::Impl::stop_without_server(std::int64_t away_ms) {
    if (attempts_->counts().running == 0) return;
    const std::string reason =
        "the server has not responded for " + std::to_string(away_ms / 1000) + " s";
    log_warning(reason +
                "; its trials are stopped, because it has probably given them to other agents");
    attempts_->end_all(Intent::kAway, reason, false);
}

void Agent::Impl::publish() {
    const AttemptCounts counts = attempts_->counts();
    AgentStatus status;
    {
        const std::lock_guard lock(mutex_);
        status_.running = counts.running;
        status_.unreported = counts.unreported;
        status_.started = counts.started;
        status_.finished = counts.finished;
        status_.draining = applied_stop_.has_value() || server_client_->draining();
        status_.stopping = stop_.has_value();
        storing_ = counts.storing > 0;
        trees_gone_ = applied_stop_ && (counts.running == 0 || applied_stop_ == StopMode::kDetach);
        idle_ = trees_gone_ && (counts.unreported == 0 || applied_stop_ == StopMode::kDetach);
        status = status_;
        changed_.notify_all();
    }
    end_timers_->update();
    if (on_status) on_status(status);
}

EndEvents Agent::Impl::end_events() {
    EndEvents events;
    events.load = [this]() -> AgentLoad {
        return {.is_idle = attempts_->is_idle(),
                .is_draining = applied_stop_ == StopMode::kDrain,
                .is_stopping = applied_stop_ && applied_stop_ != StopMode::kDrain,
                .expected_ms = attempts_->expected_ms(),
                .grace_ms = attempts_->longest_grace_ms()};
    };
    events.idle = [this] {
        log_info("there was no trial for " + std::to_string(options.idle_exit_ms / 1000) +
                 " s: the agent ends");
        stop(StopMode::kDrain);
    };
    events.last_lease = [this] {
        log_info("what is left of the time limit is too short for a trial: no more are taken");
        stop(StopMode::kDrain);
    };
    events.limit = [this] {
        stop_reason_ = "the agent's time limit is reached";
        log_info(stop_reason_ + ": running trials are stopped and will run again elsewhere");
        stop(StopMode::kStop);
    };
    return events;
}

Result<void> Agent::Impl::start() {
    {
        const std::lock_guard lock(mutex_);
        if (started_) return Error{Code::kInvalidState, "the agent has already been started"};
        started_ = true;
    }
    contact_->begin();
    end_timers_->begin();
    TUNE_TRY_VOID(attempts_->open_wake_fifo());
    if (gpu_watch_ != nullptr) gpu_watch_->start();
    attempts_->adopt_all();
    thread_ = std::thread([this] { loop_->run(); });
    environment_.start();
    cleaner_->start();
    outbox_->start();
    upload_->start();
    transfer_->start();
    server_client_->start();
    return {};
}

void Agent::Impl::stop(StopMode mode) {
    {
        const std::lock_guard lock(mutex_);
        if (ended_ || (stop_ && mode <= *stop_)) return;
        stop_ = mode;
        changed_.notify_all();
        if (!started_) return;
    }
    server_client_->stop_leasing();
    loop_->post([this, mode] { apply_stop(mode); });
}

void Agent::Impl::apply_stop(StopMode mode) {
    applied_stop_ = mode;
    if (mode == StopMode::kStop || mode == StopMode::kKill)
        attempts_->end_all(Intent::kShutdown, stop_reason_, mode == StopMode::kKill);
    if (mode == StopMode::kDrain) attempts_->drain();
    publish();
}

bool Agent::Impl::wait(int deliver_ms) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ended_ || (stop_ && (!started_ || trees_gone_)); });
    if (ended_) return delivered_;
    const bool delivered = !started_ || wait_delivered(lock, deliver_ms);
    if (ended_) return delivered_;
    ended_ = true;
    delivered_ = delivered;
    const bool detach = *stop_ == StopMode::kDetach;
    const bool was_started = started_;
    lock.unlock();
    if (was_started) shut_down(detach, !detach && contact_->is_connected());
    lock.lock();
    changed_.notify_all();
    return delivered;
}

/// Checkpoints may be large: while the last ones are being stored, the limit does not count.
bool Agent::Impl::wait_delivered(std::unique_lock<std::mutex>& lock, int deliver_ms) {
    const std::chrono::milliseconds limit(deliver_ms);
    const auto is_done = [this] { return ended_ || idle_; };
    changed_.wait_for(lock, limit, [&] { return is_done() || storing_; });
    if (is_done() || !storing_) return is_done();
    changed_.wait_for(lock, std::chrono::milliseconds(options.checkpoint_deadline_ms),
                      [&] { return is_done() || !storing_; });
    return changed_.wait_for(lock, limit, is_done);
}

void Agent::Impl::shut_down(bool detach, bool goodbye) {
    server_client_->stop(goodbye && !detach);
    outbox_->stop();
    cleaner_->stop();
    upload_->stop();
    transfer_->stop();
    if (gpu_watch_ != nullptr) gpu_watch_->stop();
    environment_.stop();
    loop_->quit();
    thread_.join();
}

AgentStatus Agent::Impl::status() const {
    const std::lock_guard lock(mutex_);
    return status_;
}

Agent::Agent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Agent::~Agent() {
    stop(StopMode::kStop);
    wait();
}

Result<std::unique_ptr<Agent>> Agent::create(AgentOptions options) {
    if (options.state_dir.empty())
        return Error{Code::kInvalidParameterValue, "the agent needs a state folder"};
    auto impl = std::make_unique<Impl>();
    options.state_dir = std::filesystem::absolute(options.state_dir);
    while (options.server_url.ends_with('/')) options.server_url.pop_back();
    // Who names a folder may have given it a file system of its own, shared with other agents.
    impl->checkpoint_state = options.checkpoint_root.empty()
                                 ? options.state_dir / "checkpoint-state"
                                 : std::filesystem::absolute(options.checkpoint_root) / ".state";
    if (options.checkpoint_root.empty())
        options.checkpoint_root = options.state_dir / "checkpoints";
    options.checkpoint_root = std::filesystem::absolute(options.checkpoint_root);
    if (options.bin_dir.empty()) options.bin_dir = own_folder();
    TUNE_TRY_VOID(make_folders(options.state_dir));
    TUNE_TRY(lock, lock_folder(options.state_dir));
    impl->folder_lock = std::move(lock);
    TUNE_TRY(id, read_or_make_id(options.state_dir));
    impl->id = id;
    impl->options = std::move(options);
    TUNE_TRY_VOID(impl->build());
    return std::unique_ptr<Agent>(new Agent(std::move(impl)));
}

void Agent::on_status(std::function<void(const AgentStatus&)> callback) {
    impl_->on_status = std::move(callback);
}

Result<void> Agent::start() {
    return impl_->start();
}
void Agent::stop(StopMode mode) {
    impl_->stop(mode);
}
bool Agent::wait(int deliver_ms) {
    return impl_->wait(deliver_ms);
}
AgentStatus Agent::status() const {
    return impl_->status();
}
const std::string& Agent::id() const {
    return impl_->id;
}

}  // namespace tune::worker
