#pragma once
// Samples of a data set of any format in the order in which they are stored.

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "loader/rows/row_set.h"

namespace tune::loader {

/// Some samples: columns as in a Batch, valid until the visitor returns.
struct RowBatch {
    std::int64_t first_id = 0;
    std::size_t count = 0;
    std::vector<Column> columns;
};

/// A batch size of read_rows() that keeps memory small and threads busy.
inline constexpr std::int64_t kRowsAtOnce = 512;

/// Calls `visit` with the samples begin..end-1, at most `batch_size` at a time. Errors: those of
/// the decoder and of `visit`. Thread-safe for one RowSet.
[[nodiscard]] Result<void> read_rows(const RowSet& rows, std::int64_t begin, std::int64_t end,
                                     std::int64_t batch_size,
                                     const std::function<Result<void>(const RowBatch&)>& visit);

/// Whether a value is there.
[[nodiscard]] inline bool is_valid(const Column& column, std::size_t row) {
    return !column.valid || column.valid[row] != 0;
}

/// The first sample of each shard, and the number of samples.
[[nodiscard]] std::vector<std::int64_t> shard_begins(const Catalogue& catalogue);

}  // namespace tune::loader
