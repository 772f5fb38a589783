#pragma once
// What a trial of population based training comes from.

#include <optional>
#include <vector>

#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// The steps that the trial trains from and to; nothing for a trial without an origin.
[[nodiscard]] std::optional<Steps> steps_of(const Study& study, const Trial& trial);

/// The trials whose training is in the trial's checkpoint, the oldest first, itself last; of a
/// lineage longer than `count_max` the last ones. Empty for a trial without an origin. O(length).
[[nodiscard]] std::vector<const Trial*> lineage_of(const Study& study, const Trial& trial,
                                                   std::size_t count_max);

}  // namespace tune::tuner
