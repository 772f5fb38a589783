#pragma once
// The first runs of an order by metrics, out of many that are offered one by one: a bounded
// selection in memory. The order is that of search/order_by_ties.h.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/search/order_by.h"
#include "tracker/search/order_by_ties.h"
#include "tracker/store/metrics/metric_columns.h"

namespace tune::tracker {

/// Runs whose ids may be looked up one by one to break ties; beyond it SQL lists them in order.
inline constexpr std::size_t kIdLookupsMax = 4'096;

/// A run in the order of the page: by its values, then by search::kRunTies.
struct Candidate {
    std::int64_t run_row = 0;
    std::int64_t start_time_ms = 0;
    std::size_t place = 0;  // in the order of addition
    std::size_t slot = 0;   // in the list of values
};

using LoadRunId = std::function<Result<std::string>(std::int64_t run_row)>;

/// The rank of a value of a column.
[[nodiscard]] inline search::ValueRank rank_of(double value) {
    if (value == kNoMetric) return search::ValueRank::kMissing;
    return std::isnan(value) ? search::ValueRank::kNan : search::ValueRank::kNumber;
}

/// Order of two start times, and of two run ids.
[[nodiscard]] constexpr int compare_start_times(std::int64_t a, std::int64_t b) {
    static_assert(search::kRunTies.size() == 2 && search::kRunTies[0].attribute == "start_time");
    return search::compare_values(a, b, search::kRunTies[0].is_ascending);
}
[[nodiscard]] inline int compare_run_ids(const std::string& a, const std::string& b) {
    static_assert(search::kRunTies[1].attribute == "run_id");
    return search::compare_values(a, b, search::kRunTies[1].is_ascending);
}

/// Not thread-safe. Memory: up to 4 * count + 1,024 candidates, and all that tie for the last
/// place.
class RunRanking {
public:
    /// Of a page of `count` runs. `keys` outlives this.
    RunRanking(const std::vector<search::OrderKey>& keys, std::size_t count)
        : keys_(keys), count_(count), prune_size_(4 * count + 1'024) {}

    /// `values`: one per key. `place` and `slot` are set here. Cost: amortised O(1).
    void add(Candidate candidate, std::span<const double> values);
    void clear();

    /// Leaves the first `count` of the page in order. Runs with the same values and start time
    /// follow their ids; without `load` they were added in that order. False: so many ids would
    /// decide that SQL should list the runs.
    [[nodiscard]] Result<bool> cut(const LoadRunId& load);

    /// Negative, 0, positive: values `a` come before, with or after `b`.
    [[nodiscard]] int compare(std::span<const double> a, std::span<const double> b) const {
        for (std::size_t i = 0; i < keys_.size(); ++i) {
            const int order = search::compare_ranked(rank_of(a[i]), a[i], rank_of(b[i]), b[i],
                                                     keys_[i].is_ascending);
            if (order != 0) return order;
        }
        return 0;
    }

    [[nodiscard]] std::span<const double> values_of(const Candidate& candidate) const {
        return std::span(values_).subspan(candidate.slot * keys_.size(), keys_.size());
    }
    [[nodiscard]] const std::vector<Candidate>& candidates() const { return candidates_; }

private:
    [[nodiscard]] int compare_without_ids(const Candidate& a, const Candidate& b) const;
    [[nodiscard]] bool is_before(const Candidate& a, const Candidate& b) const;
    Candidate drop_those_behind();
    void prune();
    [[nodiscard]] Result<bool> sort_ties(const LoadRunId& load);

    const std::vector<search::OrderKey>& keys_;
    const std::size_t count_;
    std::size_t prune_size_;
    std::size_t added_ = 0;
    std::vector<Candidate> candidates_;
    std::vector<double> values_;
    bool is_bound_ = false;  // whether `count` come before what is behind bound_values_
    std::vector<double> bound_values_;
};

}  // namespace tune::tracker
