#pragma once
// Writes an MDS data set, byte for byte as mosaicml-streaming 0.13.0 does (raw shards and
// index.json; compressed files are equal in content only).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "loader/format/compression.h"
#include "loader/format/mds/encoding.h"
#include "loader/format/mds/index.h"

namespace tune::loader {

struct MdsWriterOptions {
    /// Created when missing; must be empty otherwise.
    std::filesystem::path directory = {};
    /// Name and encoding, in any order; stored sorted by name.
    std::vector<std::pair<std::string, std::string>> columns = {};
    /// "" or "algorithm[:level]", see compression.h.
    std::string compression = {};
    /// Names of hash.h; stored for raw and compressed bytes.
    std::vector<std::string> hashes = {};
    /// A shard is closed before it would grow beyond this many bytes (uncompressed); nothing: one
    /// shard. At most 4 GiB - 1.
    std::optional<std::uint64_t> size_limit = std::uint64_t{1} << 26;
    /// Upstream writes a shard without samples when the first sample alone exceeds the limit; true
    /// reproduces that.
    bool keeps_empty_shards = false;
    /// Who sends the files elsewhere may remove each before finish().
    bool files_may_leave = false;
};

/// Not thread-safe. Memory: one shard. Shards are written as they fill; index.json comes last, in
/// one step, so a data set that was not finished has none and cannot be read.
class MdsWriter {
public:
    /// Errors: kInvalidParameterValue for options that make no data set, kResourceAlreadyExists
    /// when the directory holds something, kInternalError when it cannot be made.
    [[nodiscard]] static Result<MdsWriter> open(MdsWriterOptions options);

    /// The columns in the order in which they are stored and in which write takes values.
    [[nodiscard]] const std::vector<std::string>& column_names() const {
        return info_.column_names;
    }
    [[nodiscard]] const std::vector<Encoding>& encodings() const { return encodings_; }

    /// Appends a sample: one value a column. Errors: those of encode, with the column as context;
    /// kInternalError when the disk refuses. After an error of encode nothing was appended and
    /// writing can go on.
    [[nodiscard]] Result<void> write(std::span<const Value> values);

    /// Appends a sample whose columns are encoded already; faster. Errors: kInvalidParameterValue
    /// when a fixed-size column has another size.
    [[nodiscard]] Result<void> write_encoded(std::span<const std::span<const std::byte>> payloads);

    /// Writes the last shard and the index; returns the index. No write may follow.
    [[nodiscard]] Result<Index> finish();

    [[nodiscard]] std::int64_t samples_written() const { return samples_written_; }

    /// The shards that are closed: their files are written. Until finish().
    [[nodiscard]] const std::vector<ShardInfo>& closed_shards() const { return index_.shards; }

private:
    explicit MdsWriter(MdsWriterOptions options) : options_(std::move(options)) {}

    [[nodiscard]] Result<void> add_sample(std::size_t sample_begin);
    [[nodiscard]] Result<void> flush_shard(std::string_view samples);
    [[nodiscard]] Result<FileInfo> file_info(std::string basename,
                                             std::span<const std::string_view> pieces) const;

    MdsWriterOptions options_;
    ShardInfo info_;  // what all shards share
    std::string config_;
    std::vector<Encoding> encodings_;
    std::optional<Compression> compression_;
    std::size_t variable_count_ = 0;

    std::string samples_;               // of the shard that is open
    std::vector<std::uint32_t> ends_;   // of each sample in samples_
    std::vector<std::uint32_t> sizes_;  // scratch: of a sample's variable columns
    Index index_;
    std::int64_t samples_written_ = 0;
};

}  // namespace tune::loader
