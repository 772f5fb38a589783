#pragma once
// What pruners keep: the reports of one trial, and values in order. Private to tuner/pruner.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace tune::tuner {

/// The reports of one trial by step. The first value of a step counts.
class Reports {
public:
    struct Report {
        std::int64_t step;
        double value;
    };

    /// False if the step was reported before. O(1) for growing steps, O(log n + moves) otherwise.
    bool add(std::int64_t step, double value) {
        if (reports_.empty() || reports_.back().step < step) {
            reports_.push_back({step, value});
            return true;
        }
        const auto at =
            std::lower_bound(reports_.begin(), reports_.end(), step,
                             [](const Report& r, std::int64_t s) { return r.step < s; });
        if (at->step == step) return false;
        reports_.insert(at, {step, value});
        return true;
    }

    void clear() { std::vector<Report>().swap(reports_); }
    [[nodiscard]] std::span<const Report> all() const { return reports_; }
    [[nodiscard]] bool empty() const { return reports_.empty(); }

    /// The report of the highest step. REQUIRES: !empty().
    [[nodiscard]] const Report& last() const { return reports_.back(); }

    /// The second-highest step, -1 if there is none.
    [[nodiscard]] std::int64_t step_before_last() const {
        return reports_.size() < 2 ? -1 : reports_[reports_.size() - 2].step;
    }

    /// True if the highest step is past the warm-up and the first report of its interval; the rule
    /// of Optuna's pruners.
    [[nodiscard]] bool is_check_due(std::int64_t warmup, std::int64_t interval) const {
        const std::int64_t step = last().step;
        if (step < warmup) return false;
        return step_before_last() < (step - warmup) / interval * interval + warmup;
    }

private:
    std::vector<Report> reports_;  // ascending steps
};

/// Numbers in ascending order; NaN is not one. A sorted array: finding a place is O(log n), making
/// room moves at most 8 n bytes, which for any number of trials that fits a study is microseconds.
class SortedValues {
public:
    void insert(double value) {
        values_.insert(std::upper_bound(values_.begin(), values_.end(), value), value);
    }
    void erase(double value) {
        const auto at = std::lower_bound(values_.begin(), values_.end(), value);
        if (at != values_.end() && *at == value) values_.erase(at);
    }
    [[nodiscard]] std::size_t size() const { return values_.size(); }
    [[nodiscard]] std::size_t count_below(double value) const {
        return static_cast<std::size_t>(std::lower_bound(values_.begin(), values_.end(), value) -
                                        values_.begin());
    }
    [[nodiscard]] double operator[](std::size_t index) const { return values_[index]; }

    /// The percentile by linear interpolation between neighbours, as numpy.percentile; NaN if
    /// empty.
    [[nodiscard]] double percentile(double percent) const {
        if (values_.empty()) return std::numeric_limits<double>::quiet_NaN();
        const double at = percent / 100 * static_cast<double>(values_.size() - 1);
        const auto below = static_cast<std::size_t>(at);
        const double share = at - static_cast<double>(below);
        const double low = values_[below];
        if (share == 0 || below + 1 == values_.size()) return low;
        const double high = values_[below + 1];
        if (low == high) return low;
        return share < 0.5 ? low + (high - low) * share : high - (high - low) * (1 - share);
    }

private:
    std::vector<double> values_;
};

}  // namespace tune::tuner
