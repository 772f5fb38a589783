// Prunes a trial whose latest value lies outside [lower, upper] or is NaN: an exploded loss needs
// no comparison with other trials. Semantics of Optuna 5.0.0 (optuna/pruners/_threshold.py). Bounds
// are as the user sees values, whatever the goal.

#include "tuner/pruner/threshold_pruner.h"

#include "tuner/options/fields.h"

namespace tune::tuner {
namespace {

constexpr double kBoundMax = 1e300;

OptionTable threshold_options() {
    using Options = ThresholdOptions;
    TableOf<Options> table;
    table.number("lower", &Options::lower, -kBoundMax, kBoundMax, "values below are pruned");
    table.number("upper", &Options::upper, -kBoundMax, kBoundMax, "values above are pruned");
    table.integer("warmup", &Options::warmup, 0, kStepMax,
                  "no trial is pruned at a step below this");
    table.integer("interval", &Options::interval, 1, kStepMax, "steps between two checks");
    table.check([](const Fields& fields, Options& options) -> Result<void> {
        if (!options.lower && !options.upper)
            return error_at(fields.node().place, fields.path(),
                            "give 'lower', 'upper' or both: values outside are pruned");
        if (options.lower && options.upper && *options.lower > *options.upper)
            return error_at(fields.node().place, fields.path(), "'lower' is above 'upper'");
        return {};
    });
    return table;
}

std::unique_ptr<Pruner> make_threshold(const PrunerConfig& config, const PrunerContext&) {
    return std::make_unique<ThresholdPruner>(config.get<ThresholdOptions>());
}

}  // namespace

const PrunerKind& threshold_pruner() {
    static const OptionTable kOptions = threshold_options();
    static const PrunerKind kKind{
        {"threshold", "a value is NaN or outside the bounds, of which one at least is given",
         kOptions},
        make_threshold};
    return kKind;
}

void ThresholdPruner::note(std::uint64_t number, std::int64_t step, double value) {
    reports_[number].add(step, value);
}

bool ThresholdPruner::should_prune(std::uint64_t number) {
    const auto at = reports_.find(number);
    if (at == reports_.end() || !at->second.is_check_due(options_.warmup, options_.interval))
        return false;
    const double value = at->second.last().value;
    const bool is_outside = std::isnan(value) || (options_.lower && value < *options_.lower) ||
                            (options_.upper && value > *options_.upper);
    return is_outside;
}

void ThresholdPruner::finish(std::uint64_t number, End, double) {
    reports_.erase(number);
}

}  // namespace tune::tuner
