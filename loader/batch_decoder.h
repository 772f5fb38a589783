#pragma once
// Copies samples into the columns of a batch, whatever they are stored in. Internal to the loader.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/batch_slot.h"
#include "loader/epoch_plan.h"

namespace tune::loader {

/// Sample number -> shard and number within it.
class ShardMap {
public:
    /// Samples of each shard; at least one shard must have some.
    explicit ShardMap(std::span<const std::int64_t> shard_samples);

    struct Place {
        std::size_t shard = 0;
        std::size_t sample = 0;
    };
    /// REQUIRES: 0 <= id < number of samples. O(1) for shards of like size.
    [[nodiscard]] Place find(std::int64_t id) const;
    [[nodiscard]] std::size_t samples(std::size_t shard) const {
        return static_cast<std::size_t>(begins_[shard + 1] - begins_[shard]);
    }

private:
    static constexpr int kBucketShift = 10;
    std::vector<std::int64_t> begins_;          // of each shard, and the end
    std::vector<std::uint32_t> bucket_shards_;  // the shard of each 1,024th sample
};

/// The shards of a plan's coming samples, soonest first, each once. Looks at places a part of a
/// usual shard apart, so that the search costs little and finds every shard of which many samples
/// come.
class ShardLookout {
public:
    ShardLookout(const ShardMap& map, std::size_t shard_count, std::int64_t sample_count);
    [[nodiscard]] std::vector<std::size_t> find(const EpochPlan::Rest& upcoming,
                                                const EpochPlan::Rest& next_epoch) const;

private:
    const ShardMap& map_;
    const std::size_t shard_count_;
    const std::size_t stride_;
};

/// Parts of the time spent in fill(), over all threads.
struct DecoderTimes {
    double decompress_s = 0;
    double transform_s = 0;
};

/// Reads rows of a data set into batches. One virtual call a batch: what a format does for each
/// sample is compiled into it. Immutable to its callers; both methods may run on many threads.
class BatchDecoder {
public:
    virtual ~BatchDecoder() = default;

    /// Reads the samples `ids` into `slot`. Errors: kDataLoss when a shard is damaged or a sample
    /// does not match its columns, naming both; kInvalidParameterValue for a null that was not
    /// asked for; kResourceExhausted without memory; those of the source.
    [[nodiscard]] virtual Result<void> fill(std::span<const std::int64_t> ids,
                                            BatchSlot& slot) const = 0;

    /// Told before a batch is filled: its samples and what comes after it in their order, and the
    /// samples of the next epoch as far as they are known. A decoder may begin to work on them on
    /// threads of its own; must return at once.
    virtual void look_ahead(const EpochPlan::Rest& upcoming,
                            const EpochPlan::Rest& next_epoch) const {
        static_cast<void>(upcoming);
        static_cast<void>(next_epoch);
    }

    [[nodiscard]] virtual DecoderTimes times() const { return {}; }
};

}  // namespace tune::loader
