// The small words of a study: durations, goals, names of kinds, and the -m flag.

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "tuner/config/study_config.h"
#include "tuner/config/study_words.h"
#include "tuner/space/node.h"
#include "tuner/space/wording.h"

namespace tune::tuner {
namespace {

struct Unit {
    std::string_view name;
    std::int64_t ms;
};

constexpr std::array<Unit, 5> kUnits = {
    Unit{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};

constexpr double kTotalMax_ms = 3650.0 * 86'400'000.0;

Error bad_duration(std::string_view text) {
    return invalid_parameter("expected a duration such as 90s, 1h30m, 250ms or 2d, found " +
                             in_quotes(text));
}

}  // namespace

Result<std::int64_t> parse_duration_ms(std::string_view text) {
    const char* at = text.data();
    const char* const end = at + text.size();
    double total_ms = 0;
    bool bare = false;
    if (at == end) return bad_duration(text);
    while (at != end) {
        double amount = 0;
        const auto [stop, ec] = std::from_chars(at, end, amount, std::chars_format::fixed);
        if (ec != std::errc() || !(amount >= 0) || bare) return bad_duration(text);
        const char* unit_end = stop;
        while (unit_end != end && *unit_end >= 'a' && *unit_end <= 'z') ++unit_end;
        const std::string_view unit(stop, static_cast<std::size_t>(unit_end - stop));
        double unit_ms = 0;
        for (const Unit& known : kUnits)
            if (known.name == unit) unit_ms = static_cast<double>(known.ms);
        if (unit.empty()) {
            bare = true;
            unit_ms = 1000;
        }
        if (unit_ms == 0 || (bare && total_ms > 0)) return bad_duration(text);
        total_ms += amount * unit_ms;
        at = unit_end;
    }
    if (total_ms > kTotalMax_ms) return invalid_parameter("a duration is at most 3650 days");
    return static_cast<std::int64_t>(std::llround(total_ms));
}

std::string duration_text(std::int64_t duration_ms) {
    if (duration_ms == 0) return "0s";
    std::string text;
    for (const Unit& unit : kUnits) {
        if (const std::int64_t amount = duration_ms / unit.ms; amount > 0) {
            text += std::to_string(amount) + std::string(unit.name);
            duration_ms -= amount * unit.ms;
        }
    }
    return text;
}

std::string_view goal_name(Goal goal) {
    return goal == Goal::kMinimize ? "min" : "max";
}

std::optional<Goal> goal_from_name(std::string_view name) {
    if (name == "min" || name == "minimize") return Goal::kMinimize;
    if (name == "max" || name == "maximize") return Goal::kMaximize;
    return std::nullopt;
}

std::string take_name(const MetricConfig& metric) {
    switch (metric.take) {
        case Take::kBest: return "best";
        case Take::kLast: return "last";
        case Take::kMeanLast: break;
    }
    return "mean_last_" + std::to_string(metric.take_count);
}

bool take_from_name(std::string_view name, MetricConfig& metric) {
    if (name == "best" || name == "last") {
        metric.take = name == "best" ? Take::kBest : Take::kLast;
        metric.take_count = 1;
        return true;
    }
    constexpr std::string_view kPrefix = "mean_last_";
    if (!name.starts_with(kPrefix)) return false;
    name.remove_prefix(kPrefix.size());
    int count = 0;
    const auto [stop, ec] = std::from_chars(name.data(), name.data() + name.size(), count);
    if (ec != std::errc() || stop != name.data() + name.size() || count < 1 || count > 1000)
        return false;
    metric.take = Take::kMeanLast;
    metric.take_count = count;
    return true;
}

std::string_view sampler_name(SamplerType type) {
    switch (type) {
        case SamplerType::kRandom: return "random";
        case SamplerType::kGrid: return "grid";
        case SamplerType::kQmc: return "qmc";
        case SamplerType::kTpe: return "tpe";
        case SamplerType::kGp: return "gp";
        case SamplerType::kCmaes: return "cmaes";
        case SamplerType::kAuto: return "auto";
        case SamplerType::kNsga2: return "nsga2";
        case SamplerType::kNsga3: return "nsga3";
        case SamplerType::kPbt: return "pbt";
    }
    return "?";
}

std::string_view preset_name(TpePreset preset) {
    switch (preset) {
        case TpePreset::kTune: return "tune";
        case TpePreset::kOptuna5: return "optuna5";
        case TpePreset::kOptuna4: return "optuna4";
        case TpePreset::kHyperopt: return "hyperopt";
        case TpePreset::kWatanabe: return "watanabe";
    }
    return "?";
}

std::string_view constraint_rule_name(ConstraintRule rule) {
    return rule == ConstraintRule::kJoint ? "joint" : "each";
}

std::string_view crossover_name(Crossover crossover) {
    switch (crossover) {
        case Crossover::kUniform: return "uniform";
        case Crossover::kBlxAlpha: return "blx_alpha";
        case Crossover::kSbx: return "sbx";
    }
    return "?";
}

std::string_view duplicates_name(Duplicates duplicates) {
    switch (duplicates) {
        case Duplicates::kResample: return "resample";
        case Duplicates::kAllow: return "allow";
        case Duplicates::kReuse: return "reuse";
    }
    return "?";
}

std::string_view pruner_name(PrunerType type) {
    switch (type) {
        case PrunerType::kNone: return "none";
        case PrunerType::kMedian: return "median";
        case PrunerType::kPercentile: return "percentile";
        case PrunerType::kRunningPercentile: return "running_percentile";
        case PrunerType::kAsha: return "asha";
        case PrunerType::kHyperband: return "hyperband";
        case PrunerType::kThreshold: return "threshold";
        case PrunerType::kWilcoxon: return "wilcoxon";
        case PrunerType::kPatience: return "patience";
        case PrunerType::kAny: return "any";
        case PrunerType::kAll: return "all";
    }
    return "?";
}

std::string_view retry_name(RetryOn end) {
    switch (end) {
        case RetryOn::kPreempted: return "preempted";
        case RetryOn::kOom: return "oom";
        case RetryOn::kFailed: return "failed";
        case RetryOn::kTimeout: return "timeout";
    }
    return "?";
}

Result<void> parse_metric_flag(std::string_view text, MetricConfig& metric) {
    const std::size_t colon = text.rfind(':');
    const std::string_view name = text.substr(0, colon);
    Goal goal = Goal::kMinimize;
    if (colon != std::string_view::npos) {
        const std::optional<Goal> parsed = goal_from_name(text.substr(colon + 1));
        if (!parsed)
            return invalid_parameter("expected NAME:min or NAME:max, found " + in_quotes(text) +
                                     did_you_mean(text.substr(colon + 1), {"min", "max"}));
        goal = *parsed;
    }
    if (const auto fault = metric_name_fault(name)) return invalid_parameter(*fault);
    metric.name = std::string(name);
    metric.goal = goal;
    return {};
}

std::optional<std::string> metric_name_fault(std::string_view name) {
    if (name.empty()) return "the metric needs a name, such as val_loss:min";
    if (name.size() > 250) return "the metric's name is longer than 250 characters";
    for (const char c : name) {
        const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') ||
                        std::string_view("_-. :/").find(c) != std::string_view::npos;
        if (!ok)
            return "the metric's name " + in_quotes(name) +
                   " is not usable; expected letters, digits, '_', '-', '.', ' ', ':' or '/'";
    }
    return std::nullopt;
}

}  // namespace tune::tuner
