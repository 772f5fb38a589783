// Keeps a trial as long as it improves: only when the best of its last `wait` + 1 reports is not
// within `min_delta` of the best before them does the inner pruner decide. Semantics of
// Optuna 5.0.0 (optuna/pruners/_patient.py), NaN left out on both sides.
//
// A verdict reads the trial's own reports: O(reports).

#include "tuner/pruner/patience_pruner.h"

namespace tune::tuner {
namespace {

/// The least number, or NaN.
double best_of(std::span<const Reports::Report> reports) {
    double best = std::numeric_limits<double>::quiet_NaN();
    for (const Reports::Report& report : reports) best = std::fmin(best, report.value);
    return best;
}

}  // namespace

void PatiencePruner::note(std::uint64_t number, std::int64_t step, double value) {
    reports_[number].add(step, sign_ * value);
    if (inner_) inner_->note(number, step, value);
}

Verdict PatiencePruner::judge(std::uint64_t number) {
    const auto at = reports_.find(number);
    const std::size_t recent = static_cast<std::size_t>(config_.wait) + 1;
    if (at == reports_.end() || at->second.all().size() <= recent) return Verdict::kKeep;
    const std::span<const Reports::Report> all = at->second.all();
    const double before = best_of(all.first(all.size() - recent));
    // False where either is NaN.
    if (!(before + config_.min_delta < best_of(all.last(recent)))) return Verdict::kKeep;
    return inner_ ? inner_->judge(number) : Verdict::kPrune;
}

void PatiencePruner::finish(std::uint64_t number, End end, double value) {
    reports_.erase(number);
    if (inner_) inner_->finish(number, end, value);
}

}  // namespace tune::tuner
