#pragma once
// From the rows of the objective metric to one number, as they come in.

#include <cstdint>
#include <optional>
#include <vector>

#include "tuner/config/study_config.h"

namespace tune::tuner {

/// Follows one trial's objective. Rows may come in any order and more than once; "last" means
/// greatest step, then timestamp, then the later arrival, as MLflow's latest value.
/// Threads: none inside. Memory: the last kRowsKept rows (or take_count), and of those before them
/// the ones that were the best so far, at most kRecordsMax.
class Objective {
public:
    struct Row {
        std::int64_t step = 0;
        std::int64_t timestamp_ms = 0;
        double value = 0;
    };

    /// How far back rows can be forgotten exactly. Behind it, where there were more records than
    /// kRecordsMax, the best of what is left may be one that was beaten shortly afterwards.
    static constexpr std::size_t kRowsKept = 128;
    static constexpr std::size_t kRecordsMax = 128;

    enum class Forgotten { kNothing, kSome, kAll };

    explicit Objective(const MetricConfig& metric);

    /// Cost O(1) for a row that is the last, else O(rows kept).
    void add(const Row& row);

    /// Takes back all rows from this step on, before a row of this step is added: what measured
    /// them is gone.
    Forgotten forget_from(std::int64_t step);

    /// The trial's value if it ended now. Nothing: the metric never arrived. `best` passes over NaN
    /// unless nothing else arrived; `last` and `mean_last_k` do not.
    [[nodiscard]] std::optional<double> value() const;

    /// The last row; what a pruned trial is remembered by, and what pages show while it runs.
    [[nodiscard]] std::optional<Row> last() const;

private:
    void add_record(const Row& row);
    void consider(double value);

    Aggregation aggregation_;
    Goal goal_;
    std::size_t taken_max_;  // of kept_, by the aggregation
    std::size_t kept_max_;
    std::vector<Row> kept_;     // the last rows, oldest first, at most kept_max_
    std::vector<Row> records_;  // of those before: ascending steps, each better than the one before
    std::optional<double> best_;
};

/// Whether `value` is better than `other` for this goal. NaN is never better.
[[nodiscard]] bool is_better(double value, double other, Goal goal);

}  // namespace tune::tuner
