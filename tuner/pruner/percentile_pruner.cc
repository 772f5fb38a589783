// The median stopping rule (Golovin et al., "Google Vizier", 2017, section 3.2.2) with the
// semantics of Optuna 5.0.0 (optuna/pruners/_percentile.py).
//
// The idea. A trial whose best value so far is worse than what the better half of the complete
// trials had at this very step is not going to win. Checked at the first report in each interval
// after the warm-up, once enough trials are complete. Equal survives.
//
// Values are negated when the goal is to maximise, so lower is better inside. The percentile of
// complete trials is read from a sorted array a step, extended when a trial completes: a report
// costs no look at other trials.
//
// NaN: a trial that has reported nothing but NaN is pruned; NaN of complete trials counts towards
// `min_trials` but not towards the percentile; if nothing but NaN is known at a step, all are kept.

#include "tuner/pruner/percentile_pruner.h"

namespace tune::tuner {
namespace {

/// `has_percentile`: else it is the median, and no option.
OptionTable percentile_options(bool has_percentile) {
    TableOf<PercentileOptions> table;
    if (has_percentile)
        table
            .number("percentile", &PercentileOptions::percentile, 0, 100,
                    "share of the complete trials that it may lie among, in percent")
            .must_be_given("the share of trials to keep, 0 to 100");
    table.integer("startup", &PercentileOptions::startup, 0, kCountMax,
                  "complete trials before anything is pruned");
    table.integer("warmup", &PercentileOptions::warmup, 0, kStepMax,
                  "no trial is pruned at a step below this");
    table.integer("interval", &PercentileOptions::interval, 1, kStepMax,
                  "steps between two checks");
    table.integer("min_trials", &PercentileOptions::min_trials, 1, kCountMax,
                  "values at a step below which nothing is pruned there");
    return table;
}

std::unique_ptr<Pruner> make_percentile(const PrunerConfig& config, const PrunerContext& context) {
    return std::make_unique<PercentilePruner>(config.get<PercentileOptions>(), context.goal);
}

}  // namespace

const PrunerKind& median_pruner() {
    static const OptionTable kOptions = percentile_options(false);
    static const PrunerKind kKind{
        {"median", "its best value is worse than that of half the complete trials at this step",
         kOptions},
        make_percentile,
        nullptr,
        {"median"}};
    return kKind;
}

const PrunerKind& percentile_pruner() {
    static const OptionTable kOptions = percentile_options(true);
    static const PrunerKind kKind{
        {"percentile", "as median, with another share of the complete trials", kOptions},
        make_percentile,
        nullptr,
        {"percentile,percentile=25"}};
    return kKind;
}

PercentilePruner::PercentilePruner(const PercentileOptions& options, Goal goal)
    : options_(options), sign_(goal == Goal::kMinimize ? 1 : -1) {}

void PercentilePruner::note(std::uint64_t number, std::int64_t step, double value) {
    Trial& trial = trials_[number];
    if (trial.has_ended) return;
    const double signed_value = sign_ * value;
    const bool is_first = trial.reports.empty();
    if (trial.reports.add(step, signed_value)) {
        // fmin takes the number where one of the two is NaN.
        trial.best = is_first ? signed_value : std::fmin(trial.best, signed_value);
    }
}

bool PercentilePruner::should_prune(std::uint64_t number) {
    const Trial& trial = trials_[number];
    if (trial.reports.empty()) return false;
    if (complete_ == 0 || complete_ < static_cast<std::size_t>(options_.startup)) return false;
    if (!trial.reports.is_check_due(options_.warmup, options_.interval)) return false;
    if (std::isnan(trial.best)) return true;
    const auto at = steps_.find(trial.reports.last().step);
    if (at == steps_.end() || at->second.count < static_cast<std::size_t>(options_.min_trials))
        return false;
    // False for NaN, that is: when the others have no number here.
    return trial.best > at->second.values.percentile(options_.percentile);
}

void PercentilePruner::finish(std::uint64_t number, End end, double) {
    Trial& trial = trials_[number];
    if (trial.has_ended) return;
    trial.has_ended = true;
    if (end == End::kComplete) {
        ++complete_;
        for (const Reports::Report& report : trial.reports.all()) {
            AtStep& at = steps_[report.step];
            ++at.count;
            if (!std::isnan(report.value)) at.values.insert(report.value);
        }
    }
    trial.reports.clear();
}

}  // namespace tune::tuner
