// What the agent has to hand out: found at the start, and taken out of use when it fails.
//
// GPUs that trials of an earlier agent still hold are adopted, not given out again. A lock per GPU
// and core keeps two agents of a machine from using the same one. A GPU that reports a fault is
// excluded by its UUID and the agent registers again, so that the server leases nothing more for
// it; if the machine as a whole is unusable, what runs may end and the agent stays up to say why.

#include <algorithm>
#include <cstdlib>
#include <set>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/text/counted.h"
#include "worker/agent/agent_impl.h"
#include "worker/agent/devices/machine_locks.h"

namespace tune::worker {
namespace {

/// GPUs of the trials that an earlier agent left in the state folder.
std::set<std::string> gpus_in_use(const std::filesystem::path& state_dir) {
    std::set<std::string> gpus;
    std::error_code error;
    for (const auto& folder : std::filesystem::directory_iterator(state_dir / "attempts", error))
        if (const auto record = AttemptFiles(folder.path()).read_record())
            gpus.insert(record->gpus.begin(), record->gpus.end());
    return gpus;
}

Result<MachineLock> lock_of_machine(const std::string& name) {
    TUNE_TRY(lock, lock_on_machine(name));
    return lock ? std::make_shared<const UniqueFd>(std::move(*lock)) : MachineLock();
}

}  // namespace

Result<void> Agent::Impl::build_devices(std::vector<int> cores) {
    if (options.use_gpus) {
        GpuChoice choice{.names = options.gpus, .adopted = gpus_in_use(options.state_dir)};
        if (!options.gpu_library.empty()) choice.library = options.gpu_library;
        for (const tuner::GpuFacts& gpu : options.gpu_facts)
            choice.declared.push_back(
                {.uuid = gpu.uuid, .name = gpu.name, .bytes = gpu.bytes, .index = gpu.index});
        if (options.gpus_max)
            choice.count_max = static_cast<std::size_t>(std::max(0, *options.gpus_max));
        if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) choice.visible = visible;
        TUNE_TRY(own, open_gpus(choice));
        gpus_ = std::move(own);
    }
    for (const std::string& remark : gpus_.remarks) log_warning(remark);
    std::vector<std::string> uuids;
    for (const GpuFacts& gpu : gpus_.devices) uuids.push_back(gpu.uuid);
    slots_follow_gpus_ = options.slots == 0 && !uuids.empty();
    if (options.slots == 0)
        options.slots = static_cast<int>(uuids.empty() ? cores.size() : uuids.size());
    devices_.emplace(std::move(cores), std::move(uuids), lock_of_machine);
    for (const GpuFacts& gpu : gpus_.devices) {
        const auto lock = gpus_.locks.find(gpu.uuid);
        devices_->describe(gpu.uuid, gpu.cores,
                           lock == gpus_.locks.end() ? MachineLock() : lock->second);
    }
    if (gpus_.devices.empty() || gpus_.nvml == nullptr) return {};
    GpuEvents events;
    events.fault = [this](const std::string& uuid, const std::string& fault) {
        loop_->post([=, this] { exclude(uuid, fault); });
    };
    events.foreign = [this](const std::string& uuid, int processes, std::int64_t bytes) {
        loop_->post([=, this] { note_foreign_use(uuid, processes, bytes); });
    };
    gpu_watch_ = std::make_unique<GpuWatch>(*gpus_.nvml, gpus_.devices,
                                            std::max(10, options.gpu_period_ms), std::move(events));
    return {};
}

/// What the server is told of the GPUs.
std::vector<tuner::GpuFacts> Agent::Impl::described_gpus() const {
    std::vector<tuner::GpuFacts> described;
    for (const GpuFacts& gpu : gpus_.devices)
        described.push_back(
            {.uuid = gpu.uuid, .bytes = gpu.bytes, .name = gpu.name, .index = gpu.index});
    return described;
}

Result<void> Agent::Impl::build_cgroups() {
    const bool has_limits = options.trial_memory_bytes > 0 || options.trial_processes > 0;
    const bool is_chosen = options.cgroup != "auto" && options.cgroup != "off";
    if (options.trial_memory_bytes < 0 || options.trial_processes < 0)
        return Error{Code::kInvalidParameterValue, "limits of a trial cannot be negative"};
    if (options.cgroup == "off") {
        if (has_limits) log_warning("trials are not limited: cgroups are off");
        return {};
    }
    Result<Cgroups> cgroups = Cgroups::open(is_chosen ? options.cgroup : "");
    if (cgroups)
        cgroups_ = std::move(*cgroups);
    else if (is_chosen)
        return cgroups.error();
    else if (has_limits)
        log_warning("trials are not limited: " + cgroups.error().message);
    return {};
}

void Agent::Impl::exclude(const std::string& uuid, const std::string& reason) {
    if (uuid.empty()) return exclude_machine(reason);
    const std::vector<std::string> usable = devices_->gpus();
    if (std::find(usable.begin(), usable.end(), uuid) != usable.end()) exclude_gpu(uuid, reason);
}

/// What runs goes on to its end; the agent stays, so that somebody sees why.
void Agent::Impl::exclude_machine(const std::string& reason) {
    log_error("this machine takes no more trials: " + reason);
    const std::string excluded = "this machine: " + reason;
    int slots = 0;
    {
        const std::lock_guard lock(mutex_);
        status_.excluded.push_back(excluded);
        slots = std::exchange(status_.slots, 0);
    }
    server_client_->set_gpus(devices_->gpus(), slots, excluded);
    publish();
}

/// The server hears of it by a new registration, so that it leases no trial for it any more.
void Agent::Impl::exclude_gpu(const std::string& uuid, const std::string& fault) {
    log_error("the GPU " + uuid + " is not used any more: " + fault);
    devices_->exclude(uuid);
    const std::string excluded = uuid + ": " + fault;
    int fewer_slots = 0;
    {
        const std::lock_guard lock(mutex_);
        status_.excluded.push_back(excluded);
        if (slots_follow_gpus_) fewer_slots = std::min(1, status_.slots);
        status_.slots -= fewer_slots;
    }
    server_client_->set_gpus(devices_->gpus(), fewer_slots, excluded);
    attempts_->on_gpu_fault(uuid, fault);
    publish();
}

void Agent::Impl::note_foreign_use(const std::string& uuid, int processes, std::int64_t bytes) {
    const bool avoids = options.foreign_use == ForeignUse::kAvoid;
    if (processes == 0)
        log_info("nobody else uses the GPU " + uuid + " any more");
    else
        log_warning("the GPU " + uuid + " is used by " +
                    counted(processes, "process", "processes") +
                    " that this agent did not start (" + std::to_string(bytes / 1'000'000) +
                    " MB)" + (avoids ? "; trials wait until it is free" : ""));
    if (!avoids) return;
    devices_->set_occupied(uuid, processes > 0);
    attempts_->on_devices_changed();
}

}  // namespace tune::worker
