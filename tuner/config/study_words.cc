// The small words of a study: goals, how metrics are taken, and the -m flag.

#include <charconv>

#include "tuner/config/study_config.h"
#include "tuner/config/study_words.h"
#include "tuner/space/error_text.h"
#include "tuner/space/node.h"

namespace tune::tuner {

std::string_view goal_name(Goal goal) {
    return goal == Goal::kMinimize ? "min" : "max";
}

std::optional<Goal> goal_from_name(std::string_view name) {
    if (name == "min" || name == "minimize") return Goal::kMinimize;
    if (name == "max" || name == "maximize") return Goal::kMaximize;
    return std::nullopt;
}

std::string aggregation_name(const MetricConfig& metric) {
    switch (metric.aggregation) {
        case Aggregation::kBest: return "best";
        case Aggregation::kLast: return "last";
        case Aggregation::kMeanLast: break;
    }
    return "mean_last_" + std::to_string(metric.take_count);
}

bool aggregation_from_name(std::string_view name, MetricConfig& metric) {
    if (name == "best" || name == "last") {
        metric.aggregation = name == "best" ? Aggregation::kBest : Aggregation::kLast;
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
    metric.aggregation = Aggregation::kMeanLast;
    metric.take_count = count;
    return true;
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
    if (const auto error = metric_name_error(name)) return invalid_parameter(*error);
    metric.name = std::string(name);
    metric.goal = goal;
    return {};
}

std::optional<std::string> metric_name_error(std::string_view name) {
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
