#pragma once
// index.json of an MDS data set.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace tune::loader {

/// A file of a shard, raw or compressed.
struct FileInfo {
    /// Relative to the directory of the index; may hold '/', never leads out of the directory.
    std::string basename;
    std::uint64_t bytes = 0;
    /// Algorithm -> lower-case hex.
    std::map<std::string, std::string> hashes = {};
};

/// One entry of the index.
struct ShardInfo {
    std::vector<std::string> column_names;
    std::vector<std::string> column_encodings;
    /// Nothing (or 0) for columns of varying size.
    std::vector<std::optional<std::uint32_t>> column_sizes;
    /// "algorithm" or "algorithm:level"; empty when not compressed.
    std::string compression = {};
    std::vector<std::string> hashes = {};
    FileInfo raw_data = {};
    /// Present exactly when `compression` is.
    std::optional<FileInfo> zip_data = {};
    std::int64_t samples = 0;
    std::optional<std::uint64_t> size_limit = {};

    /// "mds", or one of the split formats "json", "csv", "tsv" and "xsv": text in one file, where
    /// its rows lie in another. Their columns are str, int or float and have no sizes.
    std::string format = "mds";
    std::optional<FileInfo> raw_meta = {};
    std::optional<FileInfo> zip_meta = {};
    /// What ends a row, and what stands between two fields (csv, tsv, xsv).
    std::string newline = {};
    std::string separator = {};
};

struct Index {
    std::vector<ShardInfo> shards;
    [[nodiscard]] std::int64_t sample_count() const;
};

/// Reads and checks an index: version 2, a known format, names inside the directory, sizes and
/// counts that can be true of each other. Errors: kDataLoss naming the shard and the field,
/// kNotImplemented for another format of shards.
[[nodiscard]] Result<Index> parse_index(std::string_view text);

/// index.json in `directory`. Errors: those of read_file and parse_index, with the path as context.
[[nodiscard]] Result<Index> read_index(const std::filesystem::path& directory);

/// The text of index.json, byte for byte as mosaicml-streaming writes it.
[[nodiscard]] std::string index_text(const Index& index);

/// The JSON that stands inside each shard.
[[nodiscard]] std::string shard_config(const ShardInfo& shard);

/// A digest (xxh3_128) of what the order and the contents of samples depend on: each shard's name,
/// sample count, raw size, raw hashes and columns.
[[nodiscard]] std::string index_digest(const Index& index);

/// "64mb", "100kb" (powers of 1024), "123b" or "123". Errors: kInvalidParameterValue.
[[nodiscard]] Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace tune::loader
