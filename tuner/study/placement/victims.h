#pragma once
// Which trials have to end so that another fits: as few as will do. Pure.

#include <cstddef>
#include <optional>
#include <vector>

#include "tuner/study/placement/room.h"

namespace tune::tuner {

/// Indices into `parts`, ascending, of what has to be given back before so many processes fit into
/// the room; none of them can be left out. `parts`: what may be given back, first the one that is
/// to go first. Empty: they fit as it is; nothing: they do not, even without all of these. Cost:
/// O(parts) looks at the room.
[[nodiscard]] std::optional<std::vector<std::size_t>> victims_in(const Room& room,
                                                                 const TrialNeeds& needs, int nproc,
                                                                 const std::vector<Part>& parts);

}  // namespace tune::tuner
