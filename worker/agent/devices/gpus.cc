// Which GPUs are this agent's: the driver's list, cut down to what CUDA_VISIBLE_DEVICES shows, then
// to the names that the user gave, then to those that no other agent of this machine has locked.

#include "worker/agent/devices/gpus.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "worker/agent/devices/machine_locks.h"

namespace tune::worker {
namespace {

bool is_position(const std::string& name) {
    return !name.empty() && name.size() < 6 &&
           std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// All slices of a GPU that is named; nothing: it is unknown.
std::vector<GpuFacts> named(const std::vector<GpuFacts>& all, const std::string& name) {
    std::vector<GpuFacts> found;
    if (name.empty()) return found;
    const int position = is_position(name) ? std::atoi(name.c_str()) : -1;
    for (const GpuFacts& device : all)
        if (position >= 0 ? device.index == position
                          : device.uuid.starts_with(name) || device.parent.starts_with(name))
            found.push_back(device);
    return found;
}

void append_new(std::vector<GpuFacts>& list, std::vector<GpuFacts> more) {
    for (GpuFacts& device : more) {
        const bool is_known = std::any_of(list.begin(), list.end(), [&](const GpuFacts& known) {
            return known.uuid == device.uuid;
        });
        if (!is_known) list.push_back(std::move(device));
    }
}

Error unknown_gpu(const std::vector<GpuFacts>& all, const std::string& name) {
    std::string known;
    for (const GpuFacts& device : all) known += (known.empty() ? "" : ", ") + device.uuid;
    return {Code::kInvalidParameterValue,
            "no GPU '" + name + "' may be used here; " +
                (known.empty() ? "there is none" : "there are: " + known)};
}

Result<std::vector<GpuFacts>> choose(const OwnGpus& own, const GpuChoice& choice) {
    std::vector<GpuFacts> all;
    if (own.nvml != nullptr) all = own.nvml->devices();
    // Positions count within what is visible, as they do for a program that runs there.
    if (choice.visible) {
        all = visible_gpus(all, *choice.visible);
        int place = -1;
        std::string last;
        for (GpuFacts& device : all) {
            const std::string& gpu = device.parent.empty() ? device.uuid : device.parent;
            if (gpu != last) ++place;
            last = gpu;
            device.index = place;
        }
    }
    if (choice.names.empty()) return all;
    std::vector<GpuFacts> chosen;
    for (const std::string& name : choice.names) {
        std::vector<GpuFacts> found = named(all, name);
        if (found.empty()) return unknown_gpu(all, name);
        append_new(chosen, std::move(found));
    }
    return chosen;
}

}  // namespace

std::vector<GpuFacts> visible_gpus(const std::vector<GpuFacts>& all, const std::string& visible) {
    std::vector<GpuFacts> found;
    std::istringstream names(visible);
    for (std::string name; std::getline(names, name, ',');) {
        while (!name.empty() && name.front() == ' ') name.erase(0, 1);
        while (!name.empty() && name.back() == ' ') name.pop_back();
        std::vector<GpuFacts> match = named(all, name);
        if (match.empty()) break;
        append_new(found, std::move(match));
    }
    return found;
}

Result<OwnGpus> open_gpus(const GpuChoice& choice) {
    OwnGpus own;
    Result<std::unique_ptr<Nvml>> nvml = Nvml::load(choice.library);
    if (nvml)
        own.nvml = std::move(*nvml);
    else if (nvml.error().code != Code::kResourceDoesNotExist)
        own.remarks.push_back(nvml.error().message);
    if (own.nvml != nullptr) own.remarks = own.nvml->unusable();
    if (own.nvml == nullptr && !choice.declared.empty()) {
        own.devices = choice.declared;
        return own;
    }
    TUNE_TRY(chosen, choose(own, choice));
    for (GpuFacts& device : chosen) {
        if (choice.count_max && own.devices.size() >= *choice.count_max) break;
        TUNE_TRY(lock, lock_on_machine(gpu_lock_name(device.uuid)));
        if (!lock && !choice.adopted.contains(device.uuid)) {
            own.remarks.push_back("another agent of this machine uses " + device.uuid);
            continue;
        }
        if (lock) own.locks[device.uuid] = std::make_shared<const UniqueFd>(std::move(*lock));
        own.devices.push_back(std::move(device));
    }
    return own;
}

}  // namespace tune::worker
