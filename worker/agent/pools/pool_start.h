#pragma once
// Starts the process of a pool: as that of a single attempt, but with an input for its trials'
// lines, with an environment that is of no one trial, and no longer than its agent.

#include <string>
#include <vector>

#include "worker/agent/attempts/attempt_parts.h"
#include "worker/agent/pools/pool.h"

namespace tune::worker {

/// What the process of the pool finds in its environment; of it, what is of one trial reaches that
/// in its line instead.
[[nodiscard]] std::vector<std::string> pool_environment(const Pool& pool,
                                                        const SharedParts& shared);

/// The supervisor, which runs. What was taken for a start that fails is given back, the pool's
/// devices too. Errors, outcome_of_failed_start says whose: kInvalidParameterValue,
/// kResourceExhausted, kInternalError.
[[nodiscard]] Result<Process> start_pool(Pool& pool, const SharedParts& shared);

}  // namespace tune::worker
