#pragma once
// What a read of the store sees: one commit, in SQLite and in the metric columns beside it.

#include <cstdint>

namespace tune::tracker::sqlite {
class Connection;
}

namespace tune::tracker {

class MetricColumns;

/// Not thread-safe; lives within Store::snapshot. Reads that need rows alone take the connection.
struct ReadSnapshot {
    sqlite::Connection& connection;
    /// Shared with the writer and all readers. Chunks are exact for this snapshot when they are
    /// asked for with `mark`.
    MetricColumns& columns;
    /// MetricColumns::now() from before the connection's transaction began: never later than the
    /// commit that the connection sees.
    std::uint64_t mark;

    operator sqlite::Connection&() const {
        return connection;
    }  // NOLINT(google-explicit-constructor)
};

}  // namespace tune::tracker
