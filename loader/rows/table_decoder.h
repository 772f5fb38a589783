#pragma once
// Batches out of any shards that can be opened as RowShard. Internal to the loader.

#include <functional>
#include <memory>
#include <vector>

#include "loader/batch_decoder.h"
#include "loader/cache/cached_source.h"
#include "loader/rows/row_set.h"
#include "loader/rows/shard_cache.h"

namespace tune::loader {

/// Whether a shard can be decoded now.
using IsHere = std::function<bool(std::size_t shard)>;

/// Rows are grouped by shard, so that a shard is asked once a batch and column. Shards are decoded
/// by `load` (any number of threads at once), kept within `bytes_max`, and with `threads_ahead` > 0
/// the next ones of the order that are here (nullptr: all) are decoded meanwhile.
[[nodiscard]] std::unique_ptr<BatchDecoder> make_table_decoder(const Catalogue& catalogue,
                                                               std::size_t bytes_max,
                                                               int threads_ahead,
                                                               ShardCache::Load load,
                                                               IsHere is_here = nullptr);

/// Gives `rows` a decoder of its shards and, where `cache` holds what they are decoded from, the
/// supply that brings it: shard i wants the units of group i of `needs`.
void decode_shards(const DatasetOptions& options, CachedSource* cache,
                   const std::function<UnitNeeds()>& needs, ShardCache::Load load, RowSet& rows);

}  // namespace tune::loader
