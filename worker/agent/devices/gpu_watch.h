#pragma once
// Looks after the agent's GPUs on threads of its own, since a call to the driver of a damaged
// device may hang: faults as they come, readings when somebody asks, who else uses them, and the
// energy of those that do not count it themselves.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "worker/agent/devices/nvml.h"

namespace tune::worker {

/// Called on the watch's threads.
struct GpuEvents {
    /// The device is not to be used any more. Once a device.
    std::function<void(const std::string& uuid, const std::string& fault)> fault;
    /// Memory that processes which are none of this agent's use on a device that it holds idle, and
    /// how many they are. Once a change; 0 processes: they are gone.
    std::function<void(const std::string& uuid, int processes, std::int64_t bytes)> foreign;
};

/// A device as it is now, for the trial that uses it.
struct WatchedReading {
    std::string uuid = {};
    GpuReading reading = {};
    /// Since some moment that is the same as long as the driver is not loaded anew and, where the
    /// driver does not count energy, the agent lives. Absent: nothing is known of its power.
    std::optional<std::int64_t> energy_mj = {};
    std::string fault = {};  ///< empty: none
};

/// All methods from any thread, after start.
class GpuWatch {
public:
    using Readings = std::vector<WatchedReading>;

    /// `nvml` outlives it. `devices` are those of the agent. They are looked at every `period_ms`
    /// where nothing else says that something is wrong.
    GpuWatch(const Nvml& nvml, std::vector<GpuFacts> devices, int period_ms, GpuEvents events);
    ~GpuWatch();
    GpuWatch(const GpuWatch&) = delete;
    GpuWatch& operator=(const GpuWatch&) = delete;

    /// Looks at all devices once before it returns: what is wrong at the start is known then.
    void start();
    /// Idempotent. Waits for a call to the driver that is under way.
    void stop();

    /// Reads these devices now and calls `done` with what they say, on the watch's thread. Faults
    /// that are found are announced before. Dropped once it is stopped.
    void read(std::vector<std::string> uuids, std::function<void(Readings)> done);
    /// Calls `done` with the memory that `ancestor` and the processes that descend from it have on
    /// the one of these devices where they have the most; 0: none that is known of. Where the
    /// driver does not say which process has what (in a container it names others), that of all is
    /// taken if `is_alone`. On the watch's thread, as `read`.
    void read_memory(std::vector<std::string> uuids, int ancestor, bool is_alone,
                     std::function<void(std::int64_t bytes)> done);
    enum class Users { kAttempts, kPools };
    /// Devices that these of the agent use: processes there are theirs.
    void set_used(Users users, std::set<std::string> uuids);

private:
    /// What is known of a device between two looks.
    struct State {
        GpuFacts facts;
        std::int64_t errors = -1;  // uncorrected, at the first look; -1: none yet
        bool has_counter = false;  // of energy
        double energy_mj = 0;      // integrated, where it has none
        double power_watts = -1;   // at the last look; below 0: unknown
        std::int64_t looked_ms = 0;
        int foreign_processes = 0;
    };
    void ask(std::function<void()> task);
    void work();
    void await_events();
    void look_at_all();
    WatchedReading look(State& state);
    [[nodiscard]] std::int64_t memory_of(const std::string& uuid, int ancestor,
                                         bool is_alone) const;
    void count_energy(State& state, WatchedReading& reading);
    void look_for_others(State& state);
    void announce(const std::string& uuid, const std::string& fault);

    const Nvml& nvml_;
    const int period_ms_;
    const GpuEvents events_;
    std::vector<State> states_;  // of the worker
    std::thread worker_;
    std::thread event_thread_;

    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_:
    std::vector<std::function<void()>> requests_;
    std::map<Users, std::set<std::string>> used_;
    std::map<std::string, std::string> faults_;  // announced ones, by device
    bool stopping_ = false;
};

}  // namespace tune::worker
