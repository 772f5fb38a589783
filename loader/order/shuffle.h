#pragma once
// The sample orders of mosaicml-streaming 0.13.0, reproduced id for id.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::loader {

/// naive: one permutation of all samples (touches every shard all the time). py1s: shuffles shards,
/// then samples within each part of a shard. py2s: as py1s with the samples shuffled twice. py1br:
/// py1s with shuffle blocks of random size. py1e: each sample moves by a random distance within a
/// shuffle block; best spread for a given number of open shards.
enum class ShuffleAlgo { kNaive, kPy1s, kPy2s, kPy1br, kPy1e };

/// "naive", "py1s", "py2s", "py1br", "py1e".
[[nodiscard]] std::string_view shuffle_algo_name(ShuffleAlgo algo);
[[nodiscard]] std::optional<ShuffleAlgo> shuffle_algo_from_name(std::string_view name);

struct ShuffleOptions {
    ShuffleAlgo algo = ShuffleAlgo::kPy1e;
    std::uint64_t seed = 9176;
    std::int64_t epoch = 0;
    std::int64_t num_canonical_nodes = 1;
    /// Samples; py1br and py1e only.
    std::int64_t block_size = 1 << 18;
};

/// Whether these options can order that many samples. Errors: kInvalidParameterValue when an option
/// is out of range, or py1e is asked for more canonical nodes than samples.
[[nodiscard]] Result<void> check_shuffle(std::int64_t sample_count, const ShuffleOptions& options);

/// A permutation of 0..sum(unit_sizes)-1. `unit_sizes`: samples of each shuffle unit (a shard, or
/// the part of one that an epoch takes), all > 0. Deterministic in its arguments; independent of
/// threads and machine. Cost: O(n) time for naive, py1s, py2s, py1br, O(n log n) for py1e; 8 n
/// bytes for the result and up to 24 n while it works. Errors: those of
/// check_shuffle.
[[nodiscard]] Result<std::vector<std::int64_t>> shuffle_samples(
    const std::vector<std::int64_t>& unit_sizes, const ShuffleOptions& options);

}  // namespace tune::loader
