#pragma once
// An order of our own for sets too large to hold an order of: every sample's place is computed from
// its position alone, in O(1) time and memory. It is not, and does not try to be, an order of
// mosaicml-streaming.

#include <cstdint>

#include "base/result.h"

namespace tune::loader {

struct LazyOrderOptions {
    /// Samples of an epoch, 1 .. 2^62.
    std::int64_t sample_count = 0;
    bool shuffle = true;
    std::uint64_t seed = 9176;
    std::int64_t epoch = 0;
    /// Samples that are mixed with one another; > 0.
    std::int64_t block_size = 1 << 18;
};

/// A permutation of 0 .. sample_count - 1. Runs of 1,024 neighbouring samples are permuted over the
/// whole set; then the samples of each block of runs are permuted, so a block reads from
/// block_size / 1,024 places. A set of one block is permuted sample by sample. Immutable and small:
/// copy it freely.
class LazyOrder {
public:
    /// Neighbouring samples that stay in one block.
    static constexpr std::int64_t kRunSamples = 1024;

    /// Errors: kInvalidParameterValue for options out of range.
    [[nodiscard]] static Result<LazyOrder> make(const LazyOrderOptions& options);

    /// The sample at `position`. REQUIRES: 0 <= position < sample_count. About 100 ns.
    [[nodiscard]] std::int64_t at(std::int64_t position) const;

    [[nodiscard]] std::int64_t sample_count() const { return options_.sample_count; }

private:
    LazyOrder() = default;

    LazyOrderOptions options_;
    std::uint64_t key_ = 0;
    std::int64_t block_ = 0;     // samples, a multiple of the run
    std::int64_t in_runs_ = 0;   // samples that fill whole runs
    std::int64_t rotation_ = 0;  // so that each epoch leaves other samples out of the runs
};

/// The part of a lazy order that one rank reads from a position on: global batches are the next
/// samples of the order, and each rank takes its slots of them. When the last one is not full, all
/// ranks get the same number, the ones lacking repeated from the beginning of the epoch.
class LazyRank {
public:
    struct Place {
        std::int64_t rank = 0;
        std::int64_t ranks = 1;
        std::int64_t batch_size = 1;  // of a rank
        std::int64_t drop_first = 0;  // samples of the epoch that all ranks together have had
    };
    LazyRank(LazyOrder order, Place place);

    /// Samples left to this rank.
    [[nodiscard]] std::int64_t sample_count() const { return samples_; }
    /// The rank's sample `i` from here on. REQUIRES: 0 <= i < sample_count().
    [[nodiscard]] std::int64_t at(std::int64_t i) const;
    /// Every `workers`th batch of these, from the `worker`th on.
    [[nodiscard]] LazyRank of_worker(std::int64_t worker, std::int64_t workers) const;

private:
    LazyOrder order_;
    Place place_;
    std::int64_t first_batch_ = 0;
    std::int64_t stride_ = 1;
    std::int64_t full_batches_ = 0;
    std::int64_t last_size_ = 0;  // of the batch that is not full
    std::int64_t samples_ = 0;
};

}  // namespace tune::loader
