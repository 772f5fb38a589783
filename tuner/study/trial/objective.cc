#include "tuner/study/trial/objective.h"

#include <algorithm>
#include <cmath>

namespace tune::tuner {

Objective::Objective(const MetricConfig& metric)
    : aggregation_(metric.aggregation),
      goal_(metric.goal),
      kept_max_(metric.aggregation == Aggregation::kMeanLast
                    ? static_cast<std::size_t>(std::max(metric.take_count, 1))
                    : 1) {}

void Objective::add(const Row& row) {
    if (!best_ || std::isnan(*best_) || is_better(row.value, *best_, goal_)) {
        if (!best_ || !std::isnan(row.value)) best_ = row.value;
    }
    const auto later = std::find_if(kept_.begin(), kept_.end(), [&row](const Row& kept) {
        return kept.step != row.step ? kept.step > row.step : kept.timestamp_ms > row.timestamp_ms;
    });
    if (kept_.size() == kept_max_ && later == kept_.begin()) return;
    kept_.insert(later, row);
    if (kept_.size() > kept_max_) kept_.erase(kept_.begin());
}

std::optional<double> Objective::value() const {
    if (kept_.empty()) return std::nullopt;
    switch (aggregation_) {
        case Aggregation::kBest: return best_;
        case Aggregation::kLast: return kept_.back().value;
        case Aggregation::kMeanLast: break;
    }
    double sum = 0;
    for (const Row& row : kept_) sum += row.value;
    return sum / static_cast<double>(kept_.size());
}

std::optional<Objective::Row> Objective::last() const {
    if (kept_.empty()) return std::nullopt;
    return kept_.back();
}

bool is_better(double value, double other, Goal goal) {
    if (std::isnan(value)) return false;
    if (std::isnan(other)) return true;
    return goal == Goal::kMinimize ? value < other : value > other;
}

}  // namespace tune::tuner
