#pragma once
// Goals that the names of their metrics speak against: "val_acc" that is to be minimized, mostly
// because no goal was given.

#include <string>
#include <vector>

#include "tuner/config/study_config.h"

namespace tune::tuner {

struct DoubtfulGoal {
    std::string metric;
    Goal meant = Goal::kMinimize;  ///< what the name suggests
    std::string text;              ///< one sentence without a full stop
};

[[nodiscard]] std::vector<DoubtfulGoal> doubtful_goals(const StudyConfig& config);

}  // namespace tune::tuner
