#pragma once
// What a new study takes from an earlier one: its best points as first trials, and its trials as a
// history of low weight for the sampler. Pure.

#include <string>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

struct WarmStart {
    std::vector<Point> first;  ///< to be tried first, best first; what is inactive is left open
    std::vector<std::string> notes;  ///< what did not fit, one sentence a parameter
};

/// The points of config.warm_start->trials as far as they fit the space: a value that does not is
/// left to the sampler. None twice.
[[nodiscard]] WarmStart plan_warm_start(const StudyConfig& config);

/// The history that the sampler begins with: trials that fit the space whole (parameters that are
/// new have an `init`), the best ones last, so that they weigh most. The same for the same
/// configuration.
[[nodiscard]] std::vector<Observation> warm_history(const StudyConfig& config, const Space& space);

/// Puts the trials in order, best first, and cuts off what nobody asked for. With several
/// objectives: by rank of dominance, in one rank as they came.
void rank_earlier(WarmStartConfig& warm_start, const StudyConfig& config);

}  // namespace tune::tuner
