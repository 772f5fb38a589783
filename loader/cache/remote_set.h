#pragma once
// A data set that lies elsewhere, ready to be read through a cache. Internal to the loader.

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "loader/cache/shard_supply.h"
#include "loader/dataset.h"
#include "loader/format/mds/index.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

struct RemoteSet {
    Index index;
    std::shared_ptr<ShardStore> store;
    std::shared_ptr<ShardSupply> supply;
};

/// Whether `options` name data that is read through a cache. A `remote` on this machine is, only
/// when a `local` is given.
[[nodiscard]] bool is_cached(const DatasetOptions& options);

/// The directory that `options` name when the data is not cached: directory, local or remote.
[[nodiscard]] std::filesystem::path plain_directory(const DatasetOptions& options);

/// Reads the index, opens the cache and starts the supply. Without a `local` the cache is a folder
/// named for the URL in $TUNE_CACHE_DIR, or in tune/data of $XDG_CACHE_HOME or ~/.cache. When the
/// remote does not answer, the index of an earlier run serves. Errors: those of the source, of
/// read_index and of DiskCache::open.
[[nodiscard]] Result<RemoteSet> open_remote(const DatasetOptions& options);

}  // namespace tune::loader
