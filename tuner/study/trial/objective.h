#pragma once
// From the rows of the objective metric to one number, as they come in.

#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/config/study_config.h"

namespace tune::tuner {

/// Follows one trial's objective. Rows may come in any order and more than once; "last" means
/// greatest step, then timestamp, then the later arrival, as MLflow's latest value.
/// Threads: none inside. Memory: O(MetricConfig::take_count).
class Objective {
public:
    struct Row {
        std::int64_t step = 0;
        std::int64_t timestamp_ms = 0;
        double value = 0;
    };

    explicit Objective(const MetricConfig& metric);

    /// Cost O(take_count).
    void add(const Row& row);

    /// The trial's value if it ended now. Nothing: the metric never arrived. `best` passes over NaN
    /// unless nothing else arrived; `last` and `mean_last_k` do not.
    [[nodiscard]] std::optional<double> value() const;

    /// The last row; what a pruned trial is remembered by, and what pages show while it runs.
    [[nodiscard]] std::optional<Row> last() const;

private:
    Aggregation aggregation_;
    Goal goal_;
    std::size_t kept_max_;
    std::vector<Row> kept_;  // the last rows, oldest first, at most kept_max_
    std::optional<double> best_;
};

/// Whether `value` is better than `other` for this goal. NaN is never better.
[[nodiscard]] bool is_better(double value, double other, Goal goal);

}  // namespace tune::tuner
