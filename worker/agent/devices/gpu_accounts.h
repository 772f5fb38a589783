#pragma once
// What attempts had of their GPUs, by readings at their beginning and at their end: joules, and
// whether a device failed meanwhile. The driver is asked on the watch's threads; what it says comes
// back to the loop.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/devices/gpu_watch.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// What an attempt has of the agent's GPUs.
struct GpuUse {
    std::vector<std::string> gpus;  ///< UUIDs; empty: none
    double share = 1;               ///< Assignment::gpu_share
    std::vector<tuner::GrantedGpu> granted = {};
    int attempt = 1;  ///< step of its metric
};

struct GpuAccountEvents {
    std::function<void(std::uint64_t serial, std::vector<tuner::ReportedMetric>)> report;
    /// Once an attempt for which end() found something to ask: is_settled() is true now.
    std::function<void(std::uint64_t serial)> settled;
};

/// Each attempt is open from open() to forget(); its devices count as used until end(). A driver
/// that does not answer holds up no end: after a while the account is settled without its word.
/// Loop thread only.
class GpuAccounts {
public:
    /// The parts outlive it. `watch`: nullptr where there is no GPU. `facts`: of the agent's.
    GpuAccounts(Loop& loop, GpuWatch* watch, std::vector<GpuFacts> facts, GpuAccountEvents events);

    /// Before its processes start: they are not foreign ones.
    void open(std::uint64_t serial, GpuUse use);
    /// It runs. Reads the counters of energy at its beginning; those of an adopted attempt are in
    /// its folder.
    void begin(std::uint64_t serial, const AttemptFiles& files);
    /// A device of it has failed.
    void set_fault(std::uint64_t serial, const std::string& fault);
    /// Its processes are gone.
    void end(std::uint64_t serial);
    void forget(std::uint64_t serial);

    /// Nothing is being asked for its end.
    [[nodiscard]] bool is_settled(std::uint64_t serial) const;
    /// Of one of its GPUs while it had it; empty: none.
    [[nodiscard]] std::string fault(std::uint64_t serial) const;

private:
    struct Account {
        GpuUse use;
        std::map<std::string, std::int64_t> begin_mj = {};  // by GPU
        std::string fault = {};
        bool has_ended = false;
        bool is_settled = true;
        Loop::TimerId timer = Loop::kNoTimer;
    };

    void read(const Account& account, std::function<void(const GpuWatch::Readings&)> done);
    void on_first_reading(std::uint64_t serial, const AttemptFiles& files,
                          const GpuWatch::Readings& readings);
    void on_last_reading(std::uint64_t serial, const GpuWatch::Readings& readings);
    [[nodiscard]] double energy_share(const GpuUse& use) const;
    void mark_used();

    Loop& loop_;
    GpuWatch* const watch_;
    const std::vector<GpuFacts> facts_;
    const GpuAccountEvents events_;
    std::map<std::uint64_t, Account> accounts_;  // of attempts that have GPUs
};

}  // namespace tune::worker
