#pragma once
// What a study optimizes, in words, and what looks like a mistake about it.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/config/study_config.h"

namespace tune::cli {

/// "minimize loss; a trial counts with its best value (take: best)"; all objectives, if there are
/// several.
[[nodiscard]] std::string goal_text(const tuner::StudyConfig& config);

/// A sentence for each objective whose name says the opposite of its goal ("val_acc" with min).
/// Only whole words of a name count: "glossary" holds no loss.
[[nodiscard]] std::vector<std::string> goal_warnings(const tuner::StudyConfig& config);

/// Notices that a program does not use its parameters: the first three complete trials with
/// different ones have the same objectives, to the last bit.
class AlikeTrials {
public:
    /// `trial`: one that has ended, as the REST API gives it. True once, with the third such trial.
    [[nodiscard]] bool add(const Json& trial);

private:
    std::optional<std::string> values_;
    std::set<std::string> points_;
    bool is_over_ = false;
};

/// What to do about it, for a command that passes no parameter.
[[nodiscard]] std::string unused_parameters_text(const tuner::StudyConfig& config);

}  // namespace tune::cli
