#pragma once
// Batches out of any shards that can be opened as RowShard. Internal to the loader.

#include <memory>
#include <vector>

#include "loader/batch_decoder.h"
#include "loader/rows/row_set.h"
#include "loader/rows/shard_cache.h"

namespace tune::loader {

/// Rows are grouped by shard, so that a shard is asked once a batch and column. Shards are decoded
/// by `load` (any number of threads at once), kept within `bytes_max`, and with `threads_ahead` > 0
/// the next ones of the order are decoded meanwhile.
[[nodiscard]] std::unique_ptr<BatchDecoder> make_table_decoder(const Catalogue& catalogue,
                                                               std::size_t bytes_max,
                                                               int threads_ahead,
                                                               ShardCache::Load load);

}  // namespace tune::loader
