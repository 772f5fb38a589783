#include "tuner/study/trial/objective.h"

#include <algorithm>
#include <cmath>

namespace tune::tuner {

Objective::Objective(const MetricConfig& metric)
    : aggregation_(metric.aggregation),
      goal_(metric.goal),
      taken_max_(metric.aggregation == Aggregation::kMeanLast
                     ? static_cast<std::size_t>(std::max(metric.take_count, 1))
                     : 1),
      kept_max_(std::max(taken_max_, kRowsKept)) {}

void Objective::add(const Row& row) {
    consider(row.value);
    auto place = kept_.end();
    while (place != kept_.begin()) {
        const Row& kept = *std::prev(place);
        const bool is_later =
            kept.step != row.step ? kept.step > row.step : kept.timestamp_ms > row.timestamp_ms;
        if (!is_later) break;
        --place;
    }
    if (kept_.size() == kept_max_ && place == kept_.begin()) return add_record(row);
    kept_.insert(place, row);
    if (kept_.size() <= kept_max_) return;
    add_record(kept_.front());
    kept_.erase(kept_.begin());
}

Objective::Forgotten Objective::forget_from(std::int64_t step) {
    const auto is_gone = [step](const Row& row) { return row.step >= step; };
    const std::size_t gone = std::erase_if(kept_, is_gone) + std::erase_if(records_, is_gone);
    if (gone == 0) return Forgotten::kNothing;
    best_.reset();
    if (!records_.empty()) best_ = records_.back().value;
    for (const Row& row : kept_) consider(row.value);
    return best_ ? Forgotten::kSome : Forgotten::kAll;
}

void Objective::consider(double value) {
    if (!best_ || is_better(value, *best_, goal_)) best_ = value;
}

/// A row that is kept no longer, if it was the best up to its step.
void Objective::add_record(const Row& row) {
    auto place =
        std::upper_bound(records_.begin(), records_.end(), row.step,
                         [](std::int64_t step, const Row& record) { return step < record.step; });
    if (place != records_.begin() && !is_better(row.value, std::prev(place)->value, goal_)) return;
    auto beaten = place;
    while (beaten != records_.end() && !is_better(beaten->value, row.value, goal_)) ++beaten;
    place = records_.erase(place, beaten);
    records_.insert(place, row);
    if (records_.size() <= kRecordsMax) return;
    // Every second one goes, the best stays.
    for (std::size_t i = 0; 2 * i + 1 < records_.size(); ++i) records_[i] = records_[2 * i + 1];
    if (records_.size() % 2 == 1) records_[records_.size() / 2] = records_.back();
    records_.resize((records_.size() + 1) / 2);
}

std::optional<double> Objective::value() const {
    if (kept_.empty()) return std::nullopt;
    switch (aggregation_) {
        case Aggregation::kBest: return best_;
        case Aggregation::kLast: return kept_.back().value;
        case Aggregation::kMeanLast: break;
    }
    const std::size_t taken = std::min(taken_max_, kept_.size());
    double sum = 0;
    for (std::size_t i = kept_.size() - taken; i < kept_.size(); ++i) sum += kept_[i].value;
    return sum / static_cast<double>(taken);
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
