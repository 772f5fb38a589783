#pragma once
// The shards of all streams of a data set as one index. Internal to the loader.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/batch_supply.h"
#include "loader/cache/cached_source.h"
#include "loader/dataset.h"
#include "loader/format/mds/index.h"
#include "loader/order/epoch.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

struct StreamSet {
    /// The shards' file names are relative to it.
    std::filesystem::path directory;
    /// The shards of the first stream, then those of the second, ...
    Index index;
    /// Of the streams' contents; that of the one index when there is one stream.
    std::string digest;
    /// Each stream's shards and what an epoch takes of it.
    std::vector<Stream> streams;
    /// Of a data set that is read through a cache; else nullptr.
    std::shared_ptr<ShardStore> store;
    std::shared_ptr<BatchSupply> supply;
    /// Of text shards that are read through a cache; else nullptr.
    std::shared_ptr<CachedSource> files;
};

/// Reads the index of every stream (of `directory` alone when `streams` is empty). Errors: those of
/// Dataset::open.
[[nodiscard]] Result<StreamSet> open_streams(const DatasetOptions& options);

}  // namespace tune::loader
