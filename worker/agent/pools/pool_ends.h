#pragma once
// How the end of a trial in a pool is reported: by its own last line, or, if its process ended
// before, by what became of that. But for the tails of logs pure.

#include <string>

#include "tuner/protocol.h"
#include "worker/agent/pools/pool.h"
#include "worker/agent/pools/pool_lines.h"

namespace tune::worker {

/// The agent wanted its end, or its time was over.
[[nodiscard]] bool was_asked_to_end(const PoolTrial& trial);

/// `event`: of kind kEnded. `now_ms`: of the loop.
[[nodiscard]] tuner::FinishRequest end_by_line(const Pool& pool, const PoolTrial& trial,
                                               const PoolEvent& event, std::int64_t now_ms);

/// `words`: the end of the process's stderr.
[[nodiscard]] tuner::FinishRequest end_with_pool(const Pool& pool, const PoolTrial& trial,
                                                 const std::string& words, std::int64_t now_ms);

}  // namespace tune::worker
