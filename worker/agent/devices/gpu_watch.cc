// Two threads. One hangs in the driver's wait for events, which nothing can interrupt, so each wait
// is short. The other serves requests and looks at all devices once a period: not every fault is
// announced, other people's processes never are, and power has to be sampled where there is no
// counter of energy (joules are then the trapezoids between the samples).

#include "worker/agent/devices/gpu_watch.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/system/file.h"
#include "base/text/counted.h"

namespace tune::worker {
namespace {

/// How long stop() may wait for the driver's wait to end.
constexpr unsigned kEventWait_ms = 200;
/// Of the way from a process to its ancestors.
constexpr int kAncestorsMax = 1'000;

/// 0: it is gone.
int parent_of(int pid) {
    const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat", 8192);
    if (!stat) return 0;
    const std::size_t end = stat->rfind(')');  // of the name, which may hold anything
    if (end == std::string::npos || end + 4 > stat->size()) return 0;
    return std::atoi(stat->c_str() + end + 4);  // behind the state
}

bool descends_from(int pid, int ancestor) {
    for (int i = 0; pid > 1 && i < kAncestorsMax; ++i, pid = parent_of(pid))
        if (pid == ancestor) return true;
    return false;
}

}  // namespace

GpuWatch::GpuWatch(const Nvml& nvml, std::vector<GpuFacts> devices, int period_ms, GpuEvents events)
    : nvml_(nvml), period_ms_(period_ms), events_(std::move(events)) {
    for (GpuFacts& device : devices) {
        State state;
        state.facts = std::move(device);
        states_.push_back(std::move(state));
    }
}

GpuWatch::~GpuWatch() {
    stop();
}

void GpuWatch::start() {
    look_at_all();
    worker_ = std::thread([this] { work(); });
    if (nvml_.has_events()) event_thread_ = std::thread([this] { await_events(); });
}

void GpuWatch::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (worker_.joinable()) worker_.join();
    if (event_thread_.joinable()) event_thread_.join();
}

void GpuWatch::ask(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(task));
    changed_.notify_all();
}

void GpuWatch::read(std::vector<std::string> uuids, std::function<void(Readings)> done) {
    ask([this, uuids = std::move(uuids), done = std::move(done)] {
        Readings readings;
        for (State& state : states_)
            if (std::find(uuids.begin(), uuids.end(), state.facts.uuid) != uuids.end())
                readings.push_back(look(state));
        done(std::move(readings));
    });
}

void GpuWatch::read_memory(std::vector<std::string> uuids, int ancestor, bool is_alone,
                           std::function<void(std::int64_t bytes)> done) {
    ask([this, uuids = std::move(uuids), ancestor, is_alone, done = std::move(done)] {
        std::int64_t most = 0;
        for (const std::string& uuid : uuids)
            most = std::max(most, memory_of(uuid, ancestor, is_alone));
        done(most);
    });
}

std::int64_t GpuWatch::memory_of(const std::string& uuid, int ancestor, bool is_alone) const {
    const std::vector<GpuProcess> processes = nvml_.processes(uuid);
    std::int64_t bytes = 0;
    for (const GpuProcess& process : processes)
        if (descends_from(process.pid, ancestor)) bytes += process.bytes;
    if (bytes > 0 || !is_alone || processes.empty()) return bytes;
    return nvml_.read(uuid).used_bytes.value_or(0);
}

void GpuWatch::set_used(Users users, std::set<std::string> uuids) {
    const std::lock_guard lock(mutex_);
    used_[users] = std::move(uuids);
}

void GpuWatch::announce(const std::string& uuid, const std::string& fault) {
    {
        const std::lock_guard lock(mutex_);
        if (!faults_.emplace(uuid, fault).second) return;
    }
    events_.fault(uuid, fault);
}

void GpuWatch::await_events() {
    while (true) {
        {
            const std::lock_guard lock(mutex_);
            if (stopping_) return;
        }
        const std::optional<GpuEvent> event = nvml_.wait_for_event(kEventWait_ms);
        if (!event) continue;
        for (const GpuFacts& device : nvml_.devices()) {
            const bool is_it =
                device.parent == event->parent &&
                (!event->gpu_instance || *event->gpu_instance == device.gpu_instance);
            if (device.uuid == event->parent || is_it) announce(device.uuid, event->fault);
        }
    }
}

void GpuWatch::work() {
    using Time = std::chrono::steady_clock;
    Time::time_point due = Time::now() + std::chrono::milliseconds(period_ms_);
    while (true) {
        std::vector<std::function<void()>> requests;
        {
            std::unique_lock lock(mutex_);
            changed_.wait_until(lock, due, [this] { return stopping_ || !requests_.empty(); });
            if (stopping_) return;
            requests.swap(requests_);
        }
        for (const auto& request : requests) request();
        if (Time::now() < due) continue;
        look_at_all();
        due = Time::now() + std::chrono::milliseconds(period_ms_);
    }
}

void GpuWatch::look_at_all() {
    for (State& state : states_) {
        look(state);
        look_for_others(state);
    }
}

WatchedReading GpuWatch::look(State& state) {
    WatchedReading seen;
    seen.uuid = state.facts.uuid;
    seen.reading = nvml_.read(seen.uuid);
    count_energy(state, seen);
    GpuHealth health = nvml_.health(seen.uuid);
    // Errors from before are history: what they damaged is retired. New ones are not.
    if (state.errors < 0) state.errors = health.uncorrected_errors;
    const std::int64_t news = health.uncorrected_errors - state.errors;
    if (health.fault.empty() && news > 0)
        health.fault = counted(news, "uncorrectable memory error") + " (ECC) while the agent ran";
    if (!health.fault.empty()) announce(seen.uuid, health.fault);
    const std::lock_guard lock(mutex_);
    const auto known = faults_.find(seen.uuid);
    if (known != faults_.end()) seen.fault = known->second;
    return seen;
}

void GpuWatch::count_energy(State& state, WatchedReading& seen) {
    const std::int64_t now_ms = SystemClock().monotonic_ms();
    if (seen.reading.energy_mj) {
        state.has_counter = true;
        seen.energy_mj = seen.reading.energy_mj;
    } else if (!state.has_counter && seen.reading.power_watts) {
        const double watts = *seen.reading.power_watts;
        if (state.power_watts >= 0)  // watts times milliseconds are millijoules
            state.energy_mj +=
                (watts + state.power_watts) / 2 * static_cast<double>(now_ms - state.looked_ms);
        state.power_watts = watts;
        seen.energy_mj = static_cast<std::int64_t>(state.energy_mj);
    }
    state.looked_ms = now_ms;
}

void GpuWatch::look_for_others(State& state) {
    const std::string& uuid = state.facts.uuid;
    const auto is_used = [&] {
        const std::lock_guard lock(mutex_);
        return std::any_of(used_.begin(), used_.end(),
                           [&uuid](const auto& entry) { return entry.second.contains(uuid); });
    };
    if (is_used()) return;
    const std::vector<GpuProcess> processes = nvml_.processes(uuid);
    if (is_used()) return;  // a trial of ours has started meanwhile
    std::int64_t bytes = 0;
    for (const GpuProcess& process : processes) bytes += process.bytes;
    const int count = static_cast<int>(processes.size());
    if (count == state.foreign_processes) return;
    state.foreign_processes = count;
    events_.foreign(uuid, count, bytes);
}

}  // namespace tune::worker
