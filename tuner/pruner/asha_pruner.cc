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

#include <cmath>

#include "tuner/options/fields.h"

namespace tune::tuner {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

OptionTable asha_options() {
    TableOf<AshaOptions> table;
    table
        .integer("min", &AshaOptions::min, 1, kStepMax,
                 "step of the first rung; auto: a hundredth of the longest complete trial")
        .or_word("auto");
    table
        .integer("max", &AshaOptions::max, 1, kStepMax,
                 "last step of a trial: no rung at or above it")
        .brief()
        .defaults_to("no end");
    table.integer("eta", &AshaOptions::eta, 2, 1000,
                  "each rung keeps the best 1/eta of its trials");
    table.integer("rate", &AshaOptions::rate, 0, 50,
                  "early stopping rate: the first rung is at min * eta^rate");
    table.integer("bootstrap", &AshaOptions::bootstrap, 0, kCountMax,
                  "values a rung needs before it promotes");
    table.check([](const Fields& fields, AshaOptions& options) -> Result<void> {
        if (options.bootstrap > 0 && options.min == 0)
            return error_at(fields.node().place, fields.path(),
                            "'bootstrap' needs a fixed 'min', not auto");
        return check_rungs(fields, options.min, options.max);
    });
    return table;
}

std::unique_ptr<Pruner> make_asha(const PrunerConfig& config, const PrunerContext& context) {
    return std::make_unique<AshaPruner>(config.get<AshaOptions>(), context.goal);
}

std::vector<Rung> asha_rungs(const PrunerConfig& config, double trials) {
    std::vector<Rung> rungs;
    const auto& options = config.get<AshaOptions>();
    if (options.min == 0 || options.max == 0) return rungs;
    const double first = static_cast<double>(options.min) * std::pow(options.eta, options.rate);
    add_rungs(rungs, options, first, trials, std::nullopt);
    return rungs;
}

}  // namespace

const PrunerKind& asha_pruner() {
    static const OptionTable kOptions = asha_options();
    static const PrunerKind kKind{
        {"asha", "it is not among the best 1/eta of the trials at a rung", kOptions},
        make_asha,
        asha_rungs,
        {"asha,eta=4", "asha,min=1,eta=3"}};
    return kKind;
}

void add_rungs(std::vector<Rung>& rungs, const AshaOptions& options, double first, double trials,
               std::optional<int> bracket) {
    for (double step = first; step < static_cast<double>(options.max); step *= options.eta) {
        rungs.push_back({static_cast<std::int64_t>(step), trials, bracket});
        trials /= options.eta;
    }
    rungs.push_back({options.max, trials, bracket});
}

Result<void> check_rungs(const Fields& fields, std::int64_t min, std::int64_t max) {
    if (max == 0 || max > min) return {};
    return error_at(fields.find("max")->place, fields.path_of("max"),
                    "max " + std::to_string(max) + " is not above min " + std::to_string(min) +
                        ", so there would be no rung");
}

AshaPruner::AshaPruner(const AshaOptions& options, Goal goal)
    : options_(options), sign_(goal == Goal::kMinimize ? 1 : -1), min_(options.min) {}

void AshaPruner::note(std::uint64_t number, std::int64_t step, double value) {
    Trial& trial = trials_[number];
    if (!trial.has_ended) trial.reports.add(step, sign_ * value);
}

bool AshaPruner::should_prune(std::uint64_t number) {
    Trial& trial = trials_[number];
    if (trial.reports.empty()) return false;
    if (min_ == 0) {
        if (longest_complete_ < 0) return false;
        min_ = std::max<std::int64_t>(longest_complete_ / 100, 1);
    }
    const Reports::Report last = trial.reports.last();
    while (last.step >= rung_step(trial.rungs)) {
        if (std::isnan(last.value)) return true;
        const std::size_t rung = trial.rungs++;
        if (rung == rungs_.size()) rungs_.emplace_back();
        rungs_[rung].insert(last.value);
        if (!promotes(rungs_[rung], last.value)) return true;
    }
    return false;
}

/// The step of a rung; kNever where there is none.
std::int64_t AshaPruner::rung_step(std::size_t rung) const {
    std::int64_t step = min_;
    for (std::size_t i = 0; i < rung + static_cast<std::size_t>(options_.rate); ++i) {
        if (step > kNever / options_.eta) return kNever;
        step *= options_.eta;
    }
    return options_.max != 0 && step >= options_.max ? kNever : step;
}

/// `rung` holds `value` already.
bool AshaPruner::promotes(const SortedValues& rung, double value) const {
    if (rung.size() <= static_cast<std::size_t>(options_.bootstrap)) return false;
    const std::size_t kept =
        std::max<std::size_t>(rung.size() / static_cast<std::size_t>(options_.eta), 1);
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
