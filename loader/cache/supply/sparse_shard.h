#pragma once
// Single samples of a shard whose file has not come yet.

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "loader/format/mds/shard.h"
#include "loader/source/range_reader.h"

namespace tune::loader {

/// Memory of the shard's size, of which only the pages of fetched samples exist: the shard's header
/// and samples stand where they stand in the file, so that a reader need not know. Thread-safe.
class SparseShard : public std::enable_shared_from_this<SparseShard> {
public:
    /// Errors: kResourceExhausted when there is no address space.
    [[nodiscard]] static Result<std::shared_ptr<SparseShard>> make(const ShardInfo& info);
    ~SparseShard();
    SparseShard(const SparseShard&) = delete;
    SparseShard& operator=(const SparseShard&) = delete;

    /// Requests of the eight bytes in the offset table that say where each of `samples` lies. None
    /// where all columns are of fixed size: the places are then known. `source` must outlive them.
    [[nodiscard]] std::vector<RangeReader::Job> offset_requests(
        const ObjectSource& source, const std::vector<std::uint32_t>& samples);

    /// Requests of the samples themselves that are not there yet, each of one run of bytes; adds
    /// their bytes to `bytes`. REQUIRES: the offset requests have ended. Errors: kDataLoss for
    /// offsets that lead out of the shard.
    [[nodiscard]] Result<std::vector<RangeReader::Job>> sample_requests(
        const ObjectSource& source, std::vector<std::uint32_t> samples, std::uint64_t& bytes);

    /// The shard, of which only those samples may be read.
    [[nodiscard]] std::shared_ptr<const Shard> shard();

private:
    SparseShard(const ShardInfo& info, std::span<std::byte> memory);

    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    [[nodiscard]] Result<std::vector<Range>> places(
        const std::vector<std::uint32_t>& samples) const;
    void set_offset(std::uint64_t entry, std::uint32_t value);
    [[nodiscard]] std::uint32_t offset(std::uint64_t entry) const;

    const ShardInfo& info_;
    const ObjectInfo object_;
    const SampleLayout layout_;
    const std::span<std::byte> memory_;

    mutable std::mutex mutex_;      // readers see what was fetched before they were told
    std::vector<bool> has_offset_;  // guarded by mutex_
    std::vector<bool> has_sample_;  // guarded by mutex_
};

}  // namespace tune::loader
