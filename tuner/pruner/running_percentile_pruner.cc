// Percentile pruning that does not wait for complete trials, after the early stopping strategy of
// Ax (ax/early_stopping/strategies/percentile.py): a trial is compared, at its latest step, with
// all trials that got there, running and pruned ones too.
//
// The guards, since such a comparison is weaker than one with complete trials:
//   min_trials      values needed at the step before anything is pruned there
//   warmup, until   only between these steps: early values say little, late ones cost little to
//   wait keep_best       trials among the best so many at the step go on, whatever the percentile
//   interval        as in the other percentile pruners
//
// Ax compares interpolated curves; here only trials that reported this very step count. NaN is
// worse than every number and is never among the best.

#include "tuner/pruner/running_percentile_pruner.h"

namespace tune::tuner {
namespace {

OptionTable running_percentile_options() {
    using Options = RunningPercentileOptions;
    TableOf<Options> table;
    table
        .number("percentile", &Options::percentile, 0, 100,
                "share of the trials at this step that it may lie among, in percent")
        .must_be_given("the share of trials to keep, 0 to 100");
    table.integer("min_trials", &Options::min_trials, 1, kCountMax,
                  "values at a step below which nothing is pruned there");
    table.integer("warmup", &Options::warmup, 0, kStepMax,
                  "no trial is pruned at a step below this");
    table.integer("until", &Options::until, 0, kStepMax, "no trial is pruned above this step")
        .brief()
        .defaults_to("no end");
    table.integer("interval", &Options::interval, 1, kStepMax, "steps between two checks");
    table.integer("keep_best", &Options::keep_best, 0, kCountMax,
                  "number of the best trials at a step that are never pruned there");
    return table;
}

std::unique_ptr<Pruner> make_running(const PrunerConfig& config, const PrunerContext& context) {
    return std::make_unique<RunningPercentilePruner>(config.get<RunningPercentileOptions>(),
                                                     context.goal);
}

}  // namespace

const PrunerKind& running_percentile_pruner() {
    static const OptionTable kOptions = running_percentile_options();
    static const PrunerKind kKind{
        {"running_percentile",
         "as percentile, against all trials that got to this step, running ones too (Ax)",
         kOptions},
        make_running,
        nullptr,
        {"running_percentile,percentile=50"}};
    return kKind;
}

void RunningPercentilePruner::note(std::uint64_t number, std::int64_t step, double value) {
    Trial& trial = trials_[number];
    if (trial.has_ended || !trial.reports.add(step, sign_ * value)) return;
    if (!std::isnan(value)) steps_[step].insert(sign_ * value);
}

bool RunningPercentilePruner::should_prune(std::uint64_t number) {
    const Trial& trial = trials_[number];
    if (trial.has_ended || trial.reports.empty()) return false;
    const Reports::Report last = trial.reports.last();
    if (options_.until != 0 && last.step > options_.until) return false;
    if (!trial.reports.is_check_due(options_.warmup, options_.interval)) return false;
    const auto at = steps_.find(last.step);
    if (at == steps_.end() || at->second.size() < static_cast<std::size_t>(options_.min_trials))
        return false;
    if (std::isnan(last.value)) return true;
    if (at->second.count_below(last.value) < static_cast<std::size_t>(options_.keep_best))
        return false;
    return last.value > at->second.percentile(options_.percentile);
}

void RunningPercentilePruner::remove_values(const Trial& trial) {
    for (const Reports::Report& report : trial.reports.all()) {
        const auto at = steps_.find(report.step);
        if (at != steps_.end() && !std::isnan(report.value)) at->second.erase(report.value);
    }
}

void RunningPercentilePruner::finish(std::uint64_t number, End end, double) {
    Trial& trial = trials_[number];
    if (trial.has_ended) return;
    trial.has_ended = true;
    if (end == End::kGone) remove_values(trial);
    // The values stay where they measure the others; the trial itself needs them no more.
    trial.reports.clear();
}

}  // namespace tune::tuner
