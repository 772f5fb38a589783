#pragma once
// Which checkpoints of population based training are still needed.

#include <optional>

#include "tuner/protocol.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Needed are the last complete trial of each member (a later trial may continue it, and in the end
/// it is what the study was run for), the best trial, trials that have not ended and their parents:
/// an attempt may be lost and begun anew. Nothing for a study without a population. What is not
/// needed once never is again: ended trials stay as they are, and each member's last one only
/// grows. O(members + trials that have not ended).
[[nodiscard]] std::optional<NeededCheckpoints> needed_checkpoints(const Study& study);

}  // namespace tune::tuner
