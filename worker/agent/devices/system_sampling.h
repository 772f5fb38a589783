#pragma once
// The system metrics of the attempts that run, read now and then: the machine's load, the trial's
// share of it, and its GPUs.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/protocol.h"
#include "worker/agent/devices/gpu_watch.h"
#include "worker/agent/devices/system_metrics.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// Loop thread only.
class SystemSampling {
public:
    using Report = std::function<void(std::uint64_t serial, std::vector<tuner::ReportedMetric>)>;

    /// The parts outlive it. `gpu_watch`: nullptr where there is no GPU. `period_ms`: between two
    /// samples of an attempt; 0: there are none.
    SystemSampling(Loop& loop, GpuWatch* gpu_watch, int period_ms, Report report);

    struct Sampled {
        int supervisor_pid = -1;
        std::int64_t started_ms = 0;  ///< of Loop::now_ms; counts the steps
        std::vector<std::string> gpus;
    };
    void watch(std::uint64_t serial, Sampled sampled);
    /// Nothing is reported of it from now on.
    void stop(std::uint64_t serial);

private:
    struct Watched {
        Sampled sampled;
        std::optional<SystemMetrics> metrics = {};  // since the base was read
        Loop::TimerId timer = Loop::kNoTimer;
    };

    void schedule(std::uint64_t serial, Watched& watched);
    void sample(std::uint64_t serial);
    void sample_gpus(std::uint64_t serial, const std::vector<std::string>& gpus);
    void report(std::uint64_t serial, std::vector<NamedValue> values);

    Loop& loop_;
    GpuWatch* const gpu_watch_;
    const int period_ms_;
    const Report report_;
    std::map<std::uint64_t, Watched> watched_;
};

}  // namespace tune::worker
