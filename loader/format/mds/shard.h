#pragma once
// One MDS file in memory: u32 n, u32 offsets[n + 1], JSON, samples.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/format/mds/index.h"

namespace tune::loader {

/// Where the columns of a sample lie: sizes of the variable columns (u32 each), then all payloads,
/// in the order of the columns.
class SampleLayout {
public:
    explicit SampleLayout(const std::vector<std::optional<std::uint32_t>>& column_sizes);

    /// True when every column has a fixed size: column c then lies at fixed_offset(c).
    [[nodiscard]] bool is_fixed() const { return variable_count_ == 0; }
    [[nodiscard]] std::size_t fixed_offset(std::size_t column) const { return offsets_[column]; }
    /// Bytes of a sample, not counting what the variable columns hold.
    [[nodiscard]] std::size_t bytes_min() const { return bytes_min_; }
    [[nodiscard]] std::size_t column_count() const { return sizes_.size(); }

    /// The payload of each column. `payloads` must have column_count() elements. False when the
    /// sizes do not add up to the sample's.
    [[nodiscard]] bool split(std::span<const std::byte> sample,
                             std::span<std::span<const std::byte>> payloads) const;

private:
    std::vector<std::optional<std::uint32_t>> sizes_;
    std::vector<std::size_t> offsets_;
    std::size_t variable_count_ = 0;
    std::size_t bytes_min_ = 0;
};

/// A checked view of a shard's bytes; `owner` keeps them alive. Immutable, thread-safe.
class Shard {
public:
    /// Checks the header: the sample count and size the index states, offsets that ascend from
    /// behind the header to the end of the file. Cost O(n). Errors: kDataLoss saying what is wrong.
    [[nodiscard]] static Result<Shard> make(std::span<const std::byte> file,
                                            std::shared_ptr<const void> owner,
                                            const ShardInfo& info);

    /// A view of bytes of which only some samples are there yet; nothing is checked.
    [[nodiscard]] static Shard unchecked(std::span<const std::byte> file,
                                         std::shared_ptr<const void> owner, std::size_t count);

    [[nodiscard]] std::size_t sample_count() const { return count_; }

    /// The bytes of sample `i`. REQUIRES: i < sample_count(). The offsets are compared again, so
    /// that a file which somebody rewrites in place cannot lead beyond its bytes; the result is
    /// then empty.
    [[nodiscard]] std::span<const std::byte> sample(std::size_t i) const {
        std::uint32_t range[2];
        std::memcpy(range, offset_of(i), sizeof range);
        if (range[0] > range[1] || range[1] > file_.size()) return {};
        return file_.subspan(range[0], range[1] - range[0]);
    }

    /// Where the position of sample `i` is stored; for prefetching.
    [[nodiscard]] const std::byte* offset_of(std::size_t i) const {
        return file_.data() + 4 * (i + 1);
    }

    /// The JSON inside the shard.
    [[nodiscard]] std::string_view config() const;

private:
    Shard() = default;

    std::span<const std::byte> file_;
    std::shared_ptr<const void> owner_;
    std::size_t count_ = 0;
};

}  // namespace tune::loader
