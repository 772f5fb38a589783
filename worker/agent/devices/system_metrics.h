#pragma once
// The machine's load under the names of MLflow's system metrics, and the trial's own share of it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tune::worker {

struct NamedValue {
    std::string key;
    double value = 0;
};

/// One instance a trial. Not thread-safe. Source of names and meaning: mlflow 3.17.2,
/// mlflow/system_metrics/metrics/{cpu,disk,network}_monitor.py, which read the same from psutil.
/// The first four of sample()'s keys are of the machine; `system/trial_...` are of the trial.
class SystemMetrics {
public:
    /// `session` is the supervisor's process number: the trial is what descends from it.
    explicit SystemMetrics(int supervisor_pid);

    /// Values since the last call (the constructor counts as one). About 0.2 ms and 20 us for each
    /// process of the machine. What cannot be read is left out.
    [[nodiscard]] std::vector<NamedValue> sample();

private:
    struct CpuTimes {
        double busy = 0;
        double total = 0;
    };
    struct Traffic {
        double received_bytes = 0;
        double sent_bytes = 0;
    };
    struct TreeUse {
        double cpu_s = 0;
        double memory_bytes = 0;
    };
    [[nodiscard]] static std::optional<CpuTimes> read_cpu();
    [[nodiscard]] static std::optional<Traffic> read_traffic();
    [[nodiscard]] TreeUse read_tree() const;
    static void add_memory(std::vector<NamedValue>& values);
    static void add_disk(std::vector<NamedValue>& values);

    int supervisor_pid_;
    std::optional<CpuTimes> cpu_;
    std::optional<Traffic> first_traffic_;
    TreeUse tree_;
    std::int64_t tree_ms_;
};

}  // namespace tune::worker
