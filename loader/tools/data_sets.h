#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/format/mds/index.h"
#include "loader/source/shard_store.h"

namespace tune::loader {

/// A data set on disk, or behind a URL.
struct DataSet {
    /// Or its URL.
    std::filesystem::path directory;
    Index index;
    /// nullptr: the directory.
    std::shared_ptr<const ObjectSource> source = {};

    /// Its shards, each read when it is asked for.
    [[nodiscard]] std::unique_ptr<ShardStore> open(bool checks_hashes,
                                                   std::size_t decompressed_bytes_max) const;
};

/// The data set in `directory`, or, when it has no index.json, those in its immediate
/// subdirectories (splits), sorted by name; likewise behind a URL. Errors: kResourceDoesNotExist
/// when there is none, those of read_index and of the source.
[[nodiscard]] Result<std::vector<DataSet>> find_data_sets(const std::filesystem::path& directory);
[[nodiscard]] Result<std::vector<DataSet>> find_data_sets_at(const std::string& url);

}  // namespace tune::loader
