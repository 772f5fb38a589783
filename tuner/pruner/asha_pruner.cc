// Asynchronous successive halving (Li et al., "A System for Massively Parallel Hyperparameter
// Tuning", 2020) in the stopping form and with the semantics of Optuna 5.0.0
// (optuna/pruners/_successive_halving.py).
//
// The idea. Rungs stand at the steps min * eta^(rate + 0, 1, 2, ...). A trial that reaches a rung
// leaves its value there and goes on only if it is among the best floor(k / eta) of the k values
// left there so far, its own included. Nothing waits for anything, so the first eta - 1 trials at a
// rung can only be compared with each other: there the best goes on. Ties go on. One report may
// pass several rungs.
//
// Values stay in their rungs however a trial ends, also if it fails. With min "auto" the first rung
// is a hundredth of the longest complete trial, fixed at the first report after one is complete;
// until then nothing is pruned. `max` (ours; Optuna's rungs have no end): no rung at or beyond it,
// because stopping a trial at its last step saves nothing.
//
// NaN at a rung is pruned and leaves no value. Lower is better inside; goals to maximise are
// negated.

#include "tuner/pruner/asha_pruner.h"

namespace tune::tuner {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

AshaPruner::AshaPruner(const PrunerConfig& config, Goal goal)
    : config_(config), sign_(goal == Goal::kMinimize ? 1 : -1), min_(config.min) {}

void AshaPruner::note(std::uint64_t number, std::int64_t step, double value) {
    Trial& trial = trials_[number];
    if (!trial.has_ended) trial.reports.add(step, sign_ * value);
}

Verdict AshaPruner::judge(std::uint64_t number) {
    Trial& trial = trials_[number];
    if (trial.reports.empty()) return Verdict::kKeep;
    if (min_ == 0) {
        if (longest_complete_ < 0) return Verdict::kKeep;
        min_ = std::max<std::int64_t>(longest_complete_ / 100, 1);
    }
    const Reports::Report last = trial.reports.last();
    while (last.step >= rung_step(trial.rungs)) {
        if (std::isnan(last.value)) return Verdict::kPrune;
        const std::size_t rung = trial.rungs++;
        if (rung == rungs_.size()) rungs_.emplace_back();
        rungs_[rung].insert(last.value);
        if (!promotes(rungs_[rung], last.value)) return Verdict::kPrune;
    }
    return Verdict::kKeep;
}

/// The step of a rung; kNever where there is none.
std::int64_t AshaPruner::rung_step(std::size_t rung) const {
    std::int64_t step = min_;
    for (std::size_t i = 0; i < rung + static_cast<std::size_t>(config_.rate); ++i) {
        if (step > kNever / config_.eta) return kNever;
        step *= config_.eta;
    }
    return config_.max != 0 && step >= config_.max ? kNever : step;
}

/// `rung` holds `value` already.
bool AshaPruner::promotes(const SortedValues& rung, double value) const {
    if (rung.size() <= static_cast<std::size_t>(config_.bootstrap)) return false;
    const std::size_t kept =
        std::max<std::size_t>(rung.size() / static_cast<std::size_t>(config_.eta), 1);
    return value <= rung[kept - 1];
}

void AshaPruner::finish(std::uint64_t number, End end, double) {
    Trial& trial = trials_[number];
    if (trial.has_ended) return;
    trial.has_ended = true;
    if (end == End::kComplete && !trial.reports.empty())
        longest_complete_ = std::max(longest_complete_, trial.reports.last().step);
    trial.reports.clear();
}

}  // namespace tune::tuner
