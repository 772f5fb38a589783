#pragma once
// The most GPU memory that each attempt had on one device, from which the server learns how many
// such trials a GPU takes.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "worker/agent/devices/gpu_watch.h"
#include "worker/agent/loop.h"
#include "worker/agent/output/metric_lines.h"

namespace tune::worker {

/// After an attempt's end the driver has forgotten what it had: so it is looked at while it runs,
/// first soon and then once a second. One look at a time, however slow the driver is. A trial that
/// knows better says so by a metric. Loop thread only.
class GpuMemoryPeaks {
public:
    /// The parts outlive it. `watch`: nullptr where there is no GPU.
    GpuMemoryPeaks(Loop& loop, GpuWatch* watch) : loop_(loop), watch_(watch) {}

    struct Watched {
        std::vector<std::string> gpus;
        int supervisor_pid = -1;
        bool is_alone = true;  ///< no other attempt has these GPUs
    };
    /// It runs.
    void watch(std::uint64_t serial, Watched watched);
    /// What lines of its output say of it.
    void note(std::uint64_t serial, const LineFindings& findings);
    /// Its processes are gone.
    void stop(std::uint64_t serial);
    void forget(std::uint64_t serial);

    /// Bytes; 0: unknown.
    [[nodiscard]] std::int64_t peak_bytes(std::uint64_t serial) const;

private:
    struct Peak {
        Watched watched = {};
        std::int64_t bytes = 0;
        int look_ms = 0;  // until the next look
        bool is_running = false;
        Loop::TimerId timer = Loop::kNoTimer;
    };

    void schedule(std::uint64_t serial, Peak& peak);
    void look(std::uint64_t serial);
    void on_look(std::uint64_t serial, std::int64_t bytes);

    Loop& loop_;
    GpuWatch* const watch_;
    std::map<std::uint64_t, Peak> peaks_;
};

}  // namespace tune::worker
