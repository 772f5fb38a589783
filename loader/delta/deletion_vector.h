#pragma once
// Deletion vectors of Delta tables (PROTOCOL.md, "Deletion Vectors"): which rows of a file are
// gone.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// What an `add` or `remove` says of its deletion vector.
struct DeletionVector {
    /// 'u': a file named by a UUID, 'p': a file by its absolute path, 'i': inline.
    char storage = 'i';
    std::string path_or_inline = {};
    std::optional<std::int64_t> offset = {};
    std::int64_t bytes = 0;
    std::int64_t cardinality = 0;

    /// Tells one vector from another: part of the key of a file in the log.
    [[nodiscard]] std::string unique_id() const;
};

/// The file of a vector of storage 'u', relative to the table. Errors: kDataLoss for a text that is
/// no Z85 of a UUID or leads out of the table; kNotImplemented for another storage.
[[nodiscard]] Result<std::string> deletion_file(const DeletionVector& vector);

/// Where the block of the vector lies in its file: its bytes with size before and checksum behind.
struct BlockRange {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};
[[nodiscard]] BlockRange deletion_block(const DeletionVector& vector);

/// The rows in a block read from a file (size, data, checksum), or inline. Ascending. Errors:
/// kDataLoss when size, checksum, magic number, order or cardinality are not as stated.
[[nodiscard]] Result<std::vector<std::uint64_t>> rows_of_block(const DeletionVector& vector,
                                                               std::span<const std::byte> block);
[[nodiscard]] Result<std::vector<std::uint64_t>> rows_inline(const DeletionVector& vector);

/// Bytes written as Z85 (ZeroMQ RFC 32). Errors: kDataLoss.
[[nodiscard]] Result<std::string> decode_z85(std::string_view text);

/// The values of a 64-bit Roaring bitmap in the portable format behind Delta's magic number; at
/// most `values_max`. Errors: kDataLoss with the byte where the damage was seen.
[[nodiscard]] Result<std::vector<std::uint64_t>> parse_roaring(std::span<const std::byte> bytes,
                                                               std::int64_t values_max);

}  // namespace tune::loader
