// Prunes a trial whose latest value lies outside [lower, upper] or is NaN: an exploded loss needs
// no comparison with other trials. Semantics of Optuna 5.0.0 (optuna/pruners/_threshold.py). Bounds
// are as the user sees values, whatever the goal.

#include "tuner/pruner/threshold_pruner.h"

namespace tune::tuner {

void ThresholdPruner::note(std::uint64_t number, std::int64_t step, double value) {
    reports_[number].add(step, value);
}

Verdict ThresholdPruner::judge(std::uint64_t number) {
    const auto at = reports_.find(number);
    if (at == reports_.end() || !at->second.is_check_due(config_.warmup, config_.interval))
        return Verdict::kKeep;
    const double value = at->second.last().value;
    const bool is_outside = std::isnan(value) || (config_.lower && value < *config_.lower) ||
                            (config_.upper && value > *config_.upper);
    return is_outside ? Verdict::kPrune : Verdict::kKeep;
}

void ThresholdPruner::finish(std::uint64_t number, End, double) {
    reports_.erase(number);
}

}  // namespace tune::tuner
