// Cores are handed out whole, GPUs whole or in parts. A request is granted all or nothing. A
// fraction goes to the GPU with the least left that has room (best fit), which keeps whole GPUs
// free for those who ask for one. GPUs are this agent's for as long as it lives; a core is locked
// against other agents only while a trial has it.

#include "worker/agent/devices/devices.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/text/counted.h"
#include "worker/agent/devices/machine_locks.h"

namespace tune::worker {
namespace {

constexpr double kShareSlack = 1e-9;  // ten shares of 0.1 fit one GPU

std::string number_text(double value) {
    std::ostringstream out;
    out << value;
    return out.str();
}

}  // namespace

Devices::Devices(std::vector<int> cores, std::vector<std::string> gpus, Locker locker)
    : cores_(std::move(cores)), core_taken_(cores_.size(), false), locker_(std::move(locker)) {
    for (std::string& uuid : gpus) gpus_.push_back({.uuid = std::move(uuid)});
}

Devices::Gpu* Devices::find(const std::string& uuid) {
    for (Gpu& gpu : gpus_)
        if (gpu.uuid == uuid) return &gpu;
    return nullptr;
}

std::vector<std::string> Devices::gpus() const {
    std::vector<std::string> uuids;
    for (const Gpu& gpu : gpus_)
        if (!gpu.is_excluded) uuids.push_back(gpu.uuid);
    return uuids;
}

void Devices::describe(const std::string& uuid, std::vector<int> near_cores, MachineLock lock) {
    Gpu* const gpu = find(uuid);
    if (gpu == nullptr) return;
    gpu->near_cores = std::move(near_cores);
    gpu->lock = std::move(lock);
}

void Devices::exclude(const std::string& uuid) {
    if (Gpu* const gpu = find(uuid)) gpu->is_excluded = true;
}

void Devices::set_occupied(const std::string& uuid, bool occupied) {
    if (Gpu* const gpu = find(uuid)) gpu->is_occupied = occupied;
}

std::optional<std::vector<std::string>> Devices::find_gpus(double gpus) const {
    std::vector<std::string> found;
    if (gpus < 1 - kShareSlack) {
        const Gpu* best = nullptr;
        for (const Gpu& gpu : gpus_)
            if (gpu.is_usable() && gpu.free >= gpus - kShareSlack &&
                (best == nullptr || gpu.free < best->free))
                best = &gpu;
        if (best == nullptr) return std::nullopt;
        found.push_back(best->uuid);
        return found;
    }
    const auto wanted = static_cast<std::size_t>(std::ceil(gpus - kShareSlack));
    for (const Gpu& gpu : gpus_)
        if (gpu.is_usable() && gpu.free >= 1 - kShareSlack && found.size() < wanted)
            found.push_back(gpu.uuid);
    if (found.size() < wanted) return std::nullopt;
    return found;
}

void Devices::change_gpus(const Assignment& assignment, double by) {
    for (const std::string& uuid : assignment.gpus)
        if (Gpu* const gpu = find(uuid)) gpu->free += by * assignment.gpu_share;
}

/// Places in `cores_`: those near its first GPU, then the others.
std::vector<std::size_t> Devices::cores_in_order(const Assignment& assignment) {
    const Gpu* const gpu = assignment.gpus.empty() ? nullptr : find(assignment.gpus.front());
    std::vector<std::size_t> order(cores_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (gpu == nullptr) return order;
    std::stable_partition(order.begin(), order.end(), [&](std::size_t i) {
        return std::find(gpu->near_cores.begin(), gpu->near_cores.end(), cores_[i]) !=
               gpu->near_cores.end();
    });
    return order;
}

/// False: there are not enough now.
Result<bool> Devices::take_cores(std::size_t wanted, Assignment& assignment) {
    held_elsewhere_.clear();
    for (const std::size_t i : cores_in_order(assignment)) {
        if (assignment.cores.size() == wanted) break;
        if (core_taken_[i]) continue;
        if (locker_) {
            const std::string name = core_lock_name(cores_[i]);
            TUNE_TRY(lock, locker_(name));
            if (lock == nullptr) {
                held_elsewhere_ = name;
                continue;
            }
            assignment.locks.push_back(std::move(lock));
        }
        assignment.cores.push_back(cores_[i]);
    }
    return assignment.cores.size() == wanted;
}

Result<void> Devices::check_cores(double cpus) const {
    if (cpus < static_cast<double>(cores_.size()) + 1) return {};
    return Error{Code::kInvalidParameterValue,
                 "a trial of the study needs " + counted(static_cast<std::int64_t>(cpus), "core") +
                     "; this agent has " + std::to_string(cores_.size())};
}

/// Takes the cores for an assignment that has its GPUs, and all of it if there are enough.
Result<std::optional<Assignment>> Devices::complete(double cpus, Assignment assignment) {
    for (const std::string& uuid : assignment.gpus)
        if (const MachineLock& lock = find(uuid)->lock) assignment.locks.push_back(lock);
    TUNE_TRY(has_cores, take_cores(cpus >= 1 ? static_cast<std::size_t>(cpus) : 0, assignment));
    if (!has_cores) return std::optional<Assignment>{};
    take_again(assignment);
    return std::optional<Assignment>(std::move(assignment));
}

Result<std::optional<Assignment>> Devices::take(double cpus, double gpus) {
    TUNE_TRY_VOID(check_cores(cpus));
    held_elsewhere_.clear();
    const std::size_t gpus_left = this->gpus().size();
    if (gpus > static_cast<double>(gpus_left) + kShareSlack) {
        const bool had_them = gpus <= static_cast<double>(gpus_.size()) + kShareSlack;
        return Error{had_them ? Code::kResourceExhausted : Code::kInvalidParameterValue,
                     "a trial of the study needs " + number_text(gpus) +
                         (gpus == 1 ? " GPU; this agent has " : " GPUs; this agent has ") +
                         std::to_string(gpus_left) + (had_them ? " left" : "")};
    }
    Assignment assignment;
    if (gpus > 0) {
        std::optional<std::vector<std::string>> found = find_gpus(gpus);
        if (!found) return std::optional<Assignment>{};
        assignment.gpus = std::move(*found);
        assignment.gpu_share = gpus < 1 ? gpus : 1;
    }
    return complete(cpus, std::move(assignment));
}

Result<std::optional<Assignment>> Devices::take_these(double cpus,
                                                      const std::vector<std::string>& gpus,
                                                      bool is_part) {
    TUNE_TRY_VOID(check_cores(cpus));
    held_elsewhere_.clear();
    const double share = is_part ? kPartOfGpu : 1;
    for (const std::string& uuid : gpus) {
        const Gpu* const gpu = find(uuid);
        if (gpu == nullptr || gpu->is_excluded)
            return Error{Code::kResourceDoesNotExist,
                         "the GPU " + uuid + " is not one of this agent's (any more)"};
        if (gpu->is_occupied || gpu->free < share - kShareSlack) return std::optional<Assignment>{};
    }
    Assignment assignment;
    assignment.gpus = gpus;
    assignment.gpu_share = share;
    return complete(cpus, std::move(assignment));
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
    if (!locker_) return;
    // What a trial of an earlier agent had until now: another agent may be quicker.
    for (const std::string& uuid : assignment.gpus) {
        Gpu* const gpu = find(uuid);
        if (gpu == nullptr || gpu->lock != nullptr || gpu->free < 1 - kShareSlack) continue;
        const Result<MachineLock> lock = locker_(gpu_lock_name(uuid));
        if (lock && *lock != nullptr)
            gpu->lock = *lock;
        else
            gpu->is_excluded = true;
    }
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

}  // namespace tune::worker
