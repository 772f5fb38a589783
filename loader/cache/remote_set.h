#pragma once
// A data set that lies elsewhere, ready to be read through a cache. Internal to the loader.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/cache/cached_source.h"
#include "loader/dataset.h"
#include "loader/format/mds/index.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

struct RemoteSet {
    /// The shards of all places, in their order, and how many are of each.
    Index index;
    std::vector<std::size_t> shard_counts;
    /// Of MDS.
    std::shared_ptr<ShardStore> store = {};
    std::shared_ptr<BatchSupply> supply = {};
    /// Of text shards, with their units.
    std::shared_ptr<CachedSource> files = {};
};

/// What a format opens a data set from.
struct DataPlace {
    std::shared_ptr<const ObjectSource> source;
    /// The same one, where data is kept in a cache; else nullptr.
    std::shared_ptr<CachedSource> cache = {};
};

/// Where caches lie without a `local`: $TUNE_CACHE_DIR, or tune/data of $XDG_CACHE_HOME or
/// ~/.cache.
[[nodiscard]] std::filesystem::path default_caches();
/// The one of a URL.
[[nodiscard]] std::filesystem::path default_cache(const std::string& url);

/// Whether `place` names data that is read through a cache. A `remote` on this machine is, only
/// when a `local` is given.
[[nodiscard]] bool is_cached(const StreamOptions& place);

/// The directory of `place` when the data is not cached: directory, local or remote, and the split.
[[nodiscard]] std::filesystem::path plain_directory(const StreamOptions& place);

/// The one place of `options` without streams.
[[nodiscard]] StreamOptions only_place(const DatasetOptions& options);

/// The place of `options`, which have no streams. Errors: those of open_source; kPermissionDenied
/// for a cache folder that cannot be made.
[[nodiscard]] Result<DataPlace> open_data(const DatasetOptions& options);

/// Reads the indexes, opens the caches and, for MDS, starts the supply. Without a `local` a cache
/// is a folder named for the URL in $TUNE_CACHE_DIR, or in tune/data of $XDG_CACHE_HOME or
/// ~/.cache. When the remote does not answer, the index of an earlier run serves. Errors: those of
/// the source, of read_index and of DiskCache::open; kInvalidParameterValue for several places of
/// text shards.
[[nodiscard]] Result<RemoteSet> open_remote(const std::vector<StreamOptions>& places,
                                            const DatasetOptions& options);

}  // namespace tune::loader
