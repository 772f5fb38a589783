// Cores are handed out whole, GPUs whole or in parts. A request is granted all or nothing. A
// fraction goes to the GPU with the least left that has room (best fit), which keeps whole GPUs
// free for those who ask for one. NVML is loaded at run time, so that a machine without a driver
// needs none.

#include "worker/agent/devices/devices.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/text/counted.h"

namespace tune::worker {
namespace {

constexpr double kShareSlack = 1e-9;  // ten shares of 0.1 fit one GPU

/// The few calls of NVML that are needed, from the driver's own library: nothing to link, nothing
/// to install where there is no GPU. Prototypes from nvml.h of the driver API 12.
class Nvml {
public:
    using Device = void*;

    Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
        using Init = int (*)();
        const auto init = find<Init>("nvmlInit_v2");
        ready_ = init != nullptr && init() == 0;
    }
    ~Nvml() {
        using Shutdown = int (*)();
        const auto shutdown = find<Shutdown>("nvmlShutdown");
        if (ready_ && shutdown != nullptr) shutdown();
        if (library_ != nullptr) dlclose(library_);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    [[nodiscard]] std::vector<std::string> uuids() const {
        using Count = int (*)(unsigned*);
        using ByIndex = int (*)(unsigned, Device*);
        const auto count = find<Count>("nvmlDeviceGetCount_v2");
        const auto by_index = find<ByIndex>("nvmlDeviceGetHandleByIndex_v2");
        std::vector<std::string> found;
        unsigned devices = 0;
        if (!ready_ || count == nullptr || by_index == nullptr || count(&devices) != 0)
            return found;
        for (unsigned i = 0; i < devices; ++i) {
            Device device = nullptr;
            if (by_index(i, &device) != 0) continue;
            const std::vector<std::string> slices = mig_uuids(device);
            if (slices.empty())
                append_uuid(device, found);
            else
                found.insert(found.end(), slices.begin(), slices.end());
        }
        return found;
    }

private:
    template <class Function>
    [[nodiscard]] Function find(const char* name) const {
        return library_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(library_, name));
    }
    void append_uuid(Device device, std::vector<std::string>& found) const {
        using Uuid = int (*)(Device, char*, unsigned);
        const auto uuid = find<Uuid>("nvmlDeviceGetUUID");
        char text[96] = {};
        if (uuid != nullptr && uuid(device, text, sizeof text) == 0) found.emplace_back(text);
    }
    [[nodiscard]] std::vector<std::string> mig_uuids(Device device) const {
        using MaxCount = int (*)(Device, unsigned*);
        using ByIndex = int (*)(Device, unsigned, Device*);
        const auto max_count = find<MaxCount>("nvmlDeviceGetMaxMigDeviceCount");
        const auto by_index = find<ByIndex>("nvmlDeviceGetMigDeviceHandleByIndex");
        std::vector<std::string> found;
        unsigned slices = 0;
        if (max_count == nullptr || by_index == nullptr || max_count(device, &slices) != 0)
            return found;
        for (unsigned i = 0; i < slices; ++i) {
            Device slice = nullptr;
            if (by_index(device, i, &slice) == 0) append_uuid(slice, found);
        }
        return found;
    }

    void* library_;
    bool ready_ = false;
};

std::string number_text(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

}  // namespace

Devices::Devices(std::vector<int> cores, std::vector<std::string> gpus)
    : cores_(std::move(cores)), core_taken_(cores_.size(), false) {
    for (std::string& uuid : gpus) gpus_.push_back({std::move(uuid)});
}

std::vector<std::string> Devices::gpus() const {
    std::vector<std::string> uuids;
    for (const Gpu& gpu : gpus_) uuids.push_back(gpu.uuid);
    return uuids;
}

std::optional<std::vector<std::string>> Devices::find_gpus(double gpus) const {
    std::vector<std::string> found;
    if (gpus < 1) {
        const Gpu* best = nullptr;
        for (const Gpu& gpu : gpus_)
            if (gpu.free >= gpus - kShareSlack && (best == nullptr || gpu.free < best->free))
                best = &gpu;
        if (best == nullptr) return std::nullopt;
        found.push_back(best->uuid);
        return found;
    }
    const auto wanted = static_cast<std::size_t>(std::ceil(gpus - kShareSlack));
    for (const Gpu& gpu : gpus_)
        if (gpu.free >= 1 - kShareSlack && found.size() < wanted) found.push_back(gpu.uuid);
    if (found.size() < wanted) return std::nullopt;
    return found;
}

void Devices::change_gpus(const Assignment& assignment, double by) {
    for (const std::string& uuid : assignment.gpus)
        for (Gpu& gpu : gpus_)
            if (gpu.uuid == uuid) gpu.free += by * assignment.gpu_share;
}

Result<std::optional<Assignment>> Devices::take(double cpus, double gpus) {
    const auto cores_wanted = cpus >= 1 ? static_cast<std::size_t>(cpus) : 0;
    if (cores_wanted > cores_.size())
        return Error{Code::kInvalidParameterValue,
                     "a trial of the study needs " +
                         counted(static_cast<std::int64_t>(cores_wanted), "core") +
                         "; this agent has " + std::to_string(cores_.size())};
    if (gpus > static_cast<double>(gpus_.size()) + kShareSlack)
        return Error{Code::kInvalidParameterValue,
                     "a trial of the study needs " + number_text(gpus) +
                         (gpus == 1 ? " GPU; this agent has " : " GPUs; this agent has ") +
                         std::to_string(gpus_.size())};
    Assignment assignment;
    for (std::size_t i = 0; i < cores_.size() && assignment.cores.size() < cores_wanted; ++i)
        if (!core_taken_[i]) assignment.cores.push_back(cores_[i]);
    if (assignment.cores.size() < cores_wanted) return std::optional<Assignment>{};
    if (gpus > 0) {
        std::optional<std::vector<std::string>> found = find_gpus(gpus);
        if (!found) return std::optional<Assignment>{};
        assignment.gpus = std::move(*found);
        assignment.gpu_share = gpus < 1 ? gpus : 1;
    }
    take_again(assignment);
    return std::optional<Assignment>(std::move(assignment));
}

void Devices::take_again(const Assignment& assignment) {
    for (const int core : assignment.cores)
        for (std::size_t i = 0; i < cores_.size(); ++i)
            if (cores_[i] == core) core_taken_[i] = true;
    change_gpus(assignment, -1);
}

void Devices::release(const Assignment& assignment) {
    for (const int core : assignment.cores)
        for (std::size_t i = 0; i < cores_.size(); ++i)
            if (cores_[i] == core) core_taken_[i] = false;
    change_gpus(assignment, +1);
}

std::vector<int> allowed_cores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    std::vector<int> cores;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
    return cores;
}

std::vector<std::string> visible_gpus(const std::vector<std::string>& all,
                                      const std::string& visible) {
    std::vector<std::string> found;
    std::istringstream names(visible);
    for (std::string name; std::getline(names, name, ',');) {
        while (!name.empty() && name.front() == ' ') name.erase(0, 1);
        while (!name.empty() && name.back() == ' ') name.pop_back();
        const bool index =
            !name.empty() && name.size() < 6 &&
            std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
        std::string match;
        if (index) {
            const auto position = static_cast<std::size_t>(std::atoi(name.c_str()));
            if (position < all.size()) match = all[position];
        } else if (!name.empty()) {
            for (const std::string& uuid : all)
                if (uuid.starts_with(name)) match = uuid;
        }
        // As the CUDA runtime: the first name it does not know ends the list.
        if (match.empty()) break;
        if (std::find(found.begin(), found.end(), match) == found.end()) found.push_back(match);
    }
    return found;
}

std::vector<std::string> find_gpus() {
    std::vector<std::string> all = Nvml().uuids();
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return visible == nullptr ? all : visible_gpus(all, visible);
}

}  // namespace tune::worker
