#pragma once
// Statistics of a running store, for /metrics.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/histogram.h"

namespace tune::tracker {

/// Commands in one transaction; the last bound is kGroupCommitMax.
inline constexpr std::array<double, 11> kGroupBounds = {1,  2,   4,   8,   16,  32,
                                                        64, 128, 256, 512, 1024};

/// Counters grow from 0 at Store::open.
struct StoreStatistics {
    std::size_t commands_waiting = 0;
    std::size_t command_bytes_waiting = 0;
    /// Commands a transaction; its count is the number of transactions.
    HistogramCounts group_commands;
    /// Seconds that COMMIT took, which is writing the log and its fsync.
    HistogramCounts commit_seconds;
    /// Commands that were refused because the queue was full.
    std::uint64_t commands_rejected = 0;
    std::size_t commits_waiting_for_observers = 0;
    std::size_t read_jobs_waiting = 0;
    std::uint64_t read_jobs_rejected = 0;
    std::size_t read_connections_open = 0;
    std::size_t read_connections_in_use = 0;
    /// Sizes of tune.db and of its write-ahead log on disk.
    std::uint64_t database_bytes = 0;
    std::uint64_t log_bytes = 0;
};

}  // namespace tune::tracker
