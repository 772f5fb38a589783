#include "tuner/study/trial/trial_results.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tuner/study/trial/trial.h"

namespace tune::tuner {

ResultMetrics::ResultMetrics(const StudyConfig& config)
    : objective_count_(1 + config.more_metrics.size()) {
    followed_.push_back({config.metric.name, Objective(config.metric)});
    for (const MetricConfig& metric : config.more_metrics)
        followed_.push_back({metric.name, Objective(metric)});
    for (const ConstraintConfig& constraint : config.constraints)
        followed_.push_back({constraint.metric.name, Objective(constraint.metric)});
}

Objective::Forgotten ResultMetrics::roll_back(std::string_view metric, std::int64_t step,
                                              int attempt) {
    Objective::Forgotten forgotten = Objective::Forgotten::kNothing;
    for (Followed& followed : followed_) {
        if (followed.metric != metric || followed.attempt >= attempt) continue;
        followed.attempt = attempt;
        forgotten = followed.objective.forget_from(step);
    }
    return forgotten;
}

void ResultMetrics::go_on(std::string_view metric, int attempt) {
    for (Followed& followed : followed_)
        if (followed.metric == metric) followed.attempt = attempt;
}

bool ResultMetrics::add(std::string_view metric, const Objective::Row& row) {
    bool is_measured = false;
    for (Followed& followed : followed_) {
        if (followed.metric != metric) continue;
        followed.objective.add(row);
        is_measured = true;
    }
    return is_measured;
}

std::optional<Objective::Row> ResultMetrics::last(std::string_view metric) const {
    for (const Followed& followed : followed_)
        if (followed.metric == metric) return followed.objective.last();
    return std::nullopt;
}

ResultMetrics::Outcome ResultMetrics::outcome(const std::vector<std::optional<double>>& given,
                                              int failed_attempt) const {
    TrialResult result;
    for (std::size_t i = 0; i < followed_.size(); ++i) {
        const bool is_given = i < given.size() && given[i];
        const std::optional<double> value = is_given ? given[i] : followed_[i].objective.value();
        const bool is_of_failed = !is_given && value && followed_[i].attempt <= failed_attempt;
        if (is_of_failed) return {.bad_metric = followed_[i].metric, .is_of_failed = true};
        if (!value || std::isnan(*value))
            return {.bad_metric = followed_[i].metric, .is_nan = value.has_value()};
        if (i == 0)
            result.value = *value;
        else if (i < objective_count_)
            result.more_values.push_back(*value);
        else
            result.constraint_values.push_back(*value);
    }
    return {.result = std::move(result)};
}

std::vector<std::string> measured_metrics(const StudyConfig& config) {
    std::vector<std::string> names;
    for (const MetricConfig& metric : metrics_of(config)) names.push_back(metric.name);
    for (const ConstraintConfig& constraint : config.constraints)
        if (std::find(names.begin(), names.end(), constraint.metric.name) == names.end())
            names.push_back(constraint.metric.name);
    return names;
}

bool dominates(const Trial& a, const Trial& b, const StudyConfig& config) {
    if (is_better(*b.value, *a.value, config.metric.goal)) return false;
    bool is_better_once = is_better(*a.value, *b.value, config.metric.goal);
    for (std::size_t i = 0; i < config.more_metrics.size(); ++i) {
        const Goal goal = config.more_metrics[i].goal;
        if (is_better(b.more_values[i], a.more_values[i], goal)) return false;
        is_better_once = is_better_once || is_better(a.more_values[i], b.more_values[i], goal);
    }
    return is_better_once;
}

double violation_of(const Trial& trial, const StudyConfig& config) {
    return violation_of(config.constraints, trial.constraint_values);
}

}  // namespace tune::tuner
