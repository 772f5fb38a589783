// Sentences on what is optimized. A name speaks for a direction only by whole words ("val_loss",
// not "glossary"), and one that speaks for both directions is left alone: a warning is not to be
// wrong.

#include "tuner/cli/terminal/objective_text.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text/text.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"

namespace tune::cli {
namespace {

using tuner::Aggregation;
using tuner::Goal;
using tuner::MetricConfig;

constexpr std::size_t kAlikeMin = 3;

constexpr std::array<std::string_view, 8> kMoreIsBetter = {
    "acc", "accuracy", "auc", "f1", "r2", "score", "precision", "recall"};
constexpr std::array<std::string_view, 5> kLessIsBetter = {"loss", "error", "rmse", "mae", "mse"};
/// scikit-learn's "neg_mean_squared_error" is to be maximized.
constexpr std::array<std::string_view, 3> kTurnsAround = {"neg", "negative", "minus"};

bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}

bool is_word_character(char c) {
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// "val_loss", "valLoss" and "val/loss" as {"val", "loss"}.
std::vector<std::string> words_of(std::string_view name) {
    std::vector<std::string> words;
    bool is_inside = false;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool begins_hump = i > 0 && is_upper(name[i]) && !is_upper(name[i - 1]);
        if (!is_word_character(name[i])) {
            is_inside = false;
            continue;
        }
        if (!is_inside || begins_hump) words.emplace_back();
        is_inside = true;
        words.back() += name[i];
    }
    for (std::string& word : words) word = lower_ascii(word);
    return words;
}

template <std::size_t N>
bool has_any(const std::vector<std::string>& words, const std::array<std::string_view, N>& wanted) {
    return std::find_first_of(words.begin(), words.end(), wanted.begin(), wanted.end()) !=
           words.end();
}

/// What the name says; nothing where it says neither or both.
std::optional<Goal> goal_of_name(std::string_view name) {
    const std::vector<std::string> words = words_of(name);
    const bool is_more = has_any(words, kMoreIsBetter);
    if (is_more == has_any(words, kLessIsBetter)) return std::nullopt;
    return is_more != has_any(words, kTurnsAround) ? Goal::kMaximize : Goal::kMinimize;
}

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
    for (const MetricConfig& metric : tuner::metrics_of(config)) {
        const std::optional<Goal> meant = goal_of_name(metric.name);
        if (!meant || *meant == metric.goal) continue;
        const bool is_max = *meant == Goal::kMaximize;
        const std::string name = printable(metric.name);
        warnings.push_back("'" + name + "' is " + (is_max ? "minimized" : "maximized") +
                           ", though its name suggests that " + (is_max ? "more" : "less") +
                           " is better; if so, give -m " +
                           shell_word(name + ":" + std::string(tuner::goal_name(*meant))));
    }
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
