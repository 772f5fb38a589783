#pragma once
// What one epoch holds and in which order one rank reads it: sampling, shuffle and partition put
// together as mosaicml-streaming 0.13.0 does. batching.h holds its other ways to make batches.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/order/partition.h"
#include "loader/order/shuffle.h"

namespace tune::loader {

/// How often a stream's samples come in an epoch: at most one of the three is given; none means
/// every sample once (or, with an epoch size, in proportion to the stream's samples).
struct StreamWeight {
    std::optional<double> proportion = {};  ///< relative to the other streams
    std::optional<double> repeat = {};      ///< times
    std::optional<std::int64_t> choose = {};
};

/// Samples to draw from each stream, for the whole run. `epoch_size` 0: the sum of all samples;
/// only allowed with relative weights or none. Errors: kInvalidParameterValue for weights of both
/// kinds, negative ones, or streams without samples.
[[nodiscard]] Result<std::vector<std::int64_t>> stream_choices(
    const std::vector<std::int64_t>& stream_samples, const std::vector<StreamWeight>& weights,
    std::int64_t epoch_size, std::uint64_t seed);

/// What an epoch takes of a stream.
struct StreamShare {
    std::int64_t choose = 0;
    /// Of the epoch, 0..1: as given when streams have proportions, else choose / epoch.
    double proportion = 1;
};

/// As stream_choices, with each stream's part of the epoch.
[[nodiscard]] Result<std::vector<StreamShare>> stream_shares(
    const std::vector<std::int64_t>& stream_samples, const std::vector<StreamWeight>& weights,
    std::int64_t epoch_size, std::uint64_t seed);

/// balanced: other samples each epoch; fixed: the same ones each epoch.
enum class SamplingMethod { kBalanced, kFixed };

/// How a global batch is made of streams. random: samples of all streams mixed. stratified: each
/// global batch holds the same numbers of each stream. per_stream: each global batch is of one
/// stream. device_per_stream: each rank's batch is of one stream.
enum class BatchingMethod { kRandom, kStratified, kPerStream, kDevicePerStream };

/// "random", "stratified", "per_stream", "device_per_stream".
[[nodiscard]] std::string_view batching_method_name(BatchingMethod method);
[[nodiscard]] std::optional<BatchingMethod> batching_method_from_name(std::string_view name);

/// Shards that are sampled together.
struct Stream {
    std::vector<std::int64_t> shard_samples;
    std::int64_t choose = 0;
    /// As in StreamShare; only the batching methods beside random look at it.
    double proportion = 1;
};

struct SamplingOptions {
    SamplingMethod method = SamplingMethod::kBalanced;
    /// Samples drawn from a shard at a time.
    std::int64_t granularity = 1;
    std::uint64_t seed = 9176;
    std::int64_t epoch = 0;
    bool shuffle = false;
};

/// Samples to draw from each shard, `choose` in all (get_sampling upstream; `use_epoch`: the choice
/// differs from epoch to epoch). Cost: O(samples / granularity).
[[nodiscard]] Result<std::vector<std::int64_t>> choose_per_shard(const Stream& stream,
                                                                 const SamplingOptions& options,
                                                                 bool use_epoch);

/// The samples of an epoch before shuffling.
struct Resampled {
    /// Samples of each shuffle unit: a shard, or the part of one that is drawn.
    std::vector<std::int64_t> units;
    /// Stored sample of each drawn one; empty when every sample is drawn once, in order.
    std::vector<std::int64_t> sample_ids;
    std::int64_t sample_count = 0;
};

[[nodiscard]] Result<Resampled> resample(const std::vector<Stream>& streams,
                                         const SamplingOptions& options);

struct EpochOptions {
    BatchingMethod batching = BatchingMethod::kRandom;
    SamplingOptions sampling = {};
    /// nothing: the order of the shards.
    std::optional<ShuffleOptions> shuffle = {};
    /// sample_count is filled in.
    PartitionOptions partition = {};
    std::int64_t node = 0;
    std::int64_t rank_of_node = 0;
};

/// The stored samples that the rank reads, in order; batch b is [b * batch_size, (b + 1) *
/// batch_size) without its gaps (-1). Deterministic. Memory: 8 bytes a sample of the rank for the
/// result; while it works, 8 to 32 bytes a sample of the epoch. Errors: those of the parts.
[[nodiscard]] Result<std::vector<std::int64_t>> rank_samples(const std::vector<Stream>& streams,
                                                             const EpochOptions& options);

}  // namespace tune::loader
