// Sentences on what is optimized.

#include "tuner/cli/terminal/objective_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/config/doubtful_goals.h"

namespace tune::cli {
namespace {

using tuner::Aggregation;
using tuner::Goal;
using tuner::MetricConfig;

constexpr std::size_t kAlikeMin = 3;

std::string verb_of(const MetricConfig& metric) {
    return (metric.goal == Goal::kMinimize ? "minimize " : "maximize ") + printable(metric.name);
}

std::string value_text(const MetricConfig& metric, bool is_alone) {
    switch (metric.aggregation) {
        case Aggregation::kBest: return is_alone ? "its best value" : "its best values";
        case Aggregation::kLast: return is_alone ? "its last value" : "its last values";
        case Aggregation::kMeanLast: break;
    }
    const bool is_mean = metric.take_count > 1;
    return is_mean ? "the mean of its last " + std::to_string(metric.take_count) + " values"
                   : "its last value";
}

}  // namespace

std::string goal_text(const tuner::StudyConfig& config) {
    const std::vector<MetricConfig> metrics = tuner::metrics_of(config);
    const std::string take = tuner::aggregation_name(metrics.front());
    const bool are_alike = std::all_of(metrics.begin(), metrics.end(), [&](const auto& metric) {
        return tuner::aggregation_name(metric) == take;
    });
    std::string text;
    for (const MetricConfig& metric : metrics) {
        text += (text.empty() ? "" : ", ") + verb_of(metric);
        if (!are_alike) text += " (take: " + tuner::aggregation_name(metric) + ")";
    }
    if (!are_alike) return text;
    return text + "; a trial counts with " + value_text(metrics.front(), metrics.size() == 1) +
           " (take: " + take + ")";
}

std::vector<std::string> goal_warnings(const tuner::StudyConfig& config) {
    std::vector<std::string> warnings;
    for (const tuner::DoubtfulGoal& doubt : tuner::doubtful_goals(config))
        warnings.push_back(
            printable(doubt.text) + "; if so, give -m " +
            shell_word(printable(doubt.metric) + ":" + std::string(tuner::goal_name(doubt.meant))));
    return warnings;
}

bool AlikeTrials::add(const Json& trial) {
    if (is_over_ || text_of(trial, "state") != "complete") return false;
    const std::string values =
        to_text(trial.contains("values") ? trial["values"] : trial.value("value", Json()));
    if (!values_) values_ = values;
    is_over_ = values != *values_;
    if (is_over_) return false;
    points_.insert(to_text(trial.value("params", Json::object())));
    is_over_ = points_.size() >= kAlikeMin;
    return is_over_;
}

std::string unused_parameters_text(const tuner::StudyConfig& config) {
    const auto& parameters = config.space.parameters();
    const std::string name = parameters.empty() ? "NAME" : printable(parameters.front().name);
    return std::to_string(kAlikeMin) +
           " trials with different parameters had exactly the same value of the objective, so the "
           "program seems to ignore them. The command passes none: add {args} (which becomes --" +
           name + "=VALUE and so on) or {" + name +
           "}, or let the program read the JSON in its environment variable TUNE_PARAMS";
}

}  // namespace tune::cli
