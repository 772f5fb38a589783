#pragma once
// Work that waits for a network more than it computes. Internal to the loader.

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace tune::loader {

/// Runs work(i) for i < count on several threads, enough to hide the latency of an object store;
/// the error of the smallest i wins, and what was not begun by then is left out.
[[nodiscard]] Result<void> for_each_parallel(std::size_t count,
                                             const std::function<Result<void>(std::size_t)>& work);

}  // namespace tune::loader
