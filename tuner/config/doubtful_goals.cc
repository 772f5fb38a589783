// A name speaks for a direction only by whole words ("val_loss", not "glossary"), and one that
// speaks for both directions is left alone: a warning is not to be wrong.

#include "tuner/config/doubtful_goals.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/text/text.h"

namespace tune::tuner {
namespace {

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

}  // namespace

std::vector<DoubtfulGoal> doubtful_goals(const StudyConfig& config) {
    std::vector<DoubtfulGoal> doubtful;
    for (const MetricConfig& metric : metrics_of(config)) {
        const std::optional<Goal> meant = goal_of_name(metric.name);
        if (!meant || *meant == metric.goal) continue;
        const bool is_max = *meant == Goal::kMaximize;
        doubtful.push_back({metric.name, *meant,
                            "'" + metric.name + "' is " + (is_max ? "minimized" : "maximized") +
                                ", though its name suggests that " + (is_max ? "more" : "less") +
                                " is better"});
    }
    return doubtful;
}

}  // namespace tune::tuner
