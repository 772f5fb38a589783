// The order of one epoch in upstream's three steps. Sampling: how many samples each stream and
// shard gives, drawn with upstream's generator and granularity. Shuffle: a permutation of the drawn
// samples (shuffle.cc). Partition: which positions this rank reads (partition.cc). Each step
// consumes the generators exactly as upstream does, so equal settings give equal orders, sample for
// sample; when every sample is read once no id list is built.

#include "loader/order/epoch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "loader/order/batching.h"
#include "loader/order/rng.h"

namespace tune::loader {
namespace {

using Ids = std::vector<std::int64_t>;

std::size_t index_of(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

std::int64_t sum_of(const Ids& values) {
    return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

Rng epoch_rng(const SamplingOptions& options, bool use_epoch) {
    return Rng(options.seed + (use_epoch ? static_cast<std::uint64_t>(options.epoch) : 0));
}

using Shares = std::vector<StreamShare>;

/// numpy's sum of doubles: eight running sums, halves beyond 128 values. The last bit of a sum
/// decides how many samples a stream gives.
double numpy_sum(std::span<const double> values) {
    if (values.size() < 8) return std::accumulate(values.begin(), values.end(), 0.0);
    if (values.size() > 128) {
        const std::size_t half = values.size() / 2 - values.size() / 2 % 8;
        return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
    }
    std::array<double, 8> sums;
    std::copy_n(values.begin(), 8, sums.begin());
    std::size_t next = 8;
    for (; next + 8 <= values.size(); next += 8)
        for (std::size_t i = 0; i < 8; ++i) sums[i] += values[next + i];
    double sum =
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; next < values.size(); ++next) sum += values[next];
    return sum;
}

Result<Shares> relative_shares(const std::vector<double>& proportions, std::int64_t epoch_size,
                               std::uint64_t seed) {
    const double total = numpy_sum(proportions);
    if (!(total > 0) || !std::isfinite(total))
        return invalid_parameter("the proportions of the streams add up to nothing");
    Shares shares;
    std::int64_t shortfall = epoch_size;
    for (const double proportion : proportions) {
        const double part = proportion / total;
        shares.push_back({static_cast<std::int64_t>(static_cast<double>(epoch_size) * part), part});
        shortfall -= shares.back().choose;
    }
    const auto count = static_cast<std::int64_t>(shares.size());
    if (shortfall < 0 || shortfall > count)
        return invalid_parameter("the proportions of the streams are too unequal to be rounded");
    Rng rng(seed);
    for (const std::int64_t stream : rng.choice(count, shortfall))
        ++shares[index_of(stream)].choose;
    return shares;
}

Result<Shares> absolute_shares(const Ids& stream_samples,
                               const std::vector<StreamWeight>& weights) {
    Ids choices;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        const StreamWeight& weight = weights[i];
        if (weight.repeat && !(*weight.repeat >= 0 && *weight.repeat < 1e9))
            return invalid_parameter("a stream's repeat must not be negative");
        if (weight.choose && *weight.choose < 0)
            return invalid_parameter("a stream's choose must not be negative");
        choices.push_back(
            weight.repeat
                ? static_cast<std::int64_t>(*weight.repeat * static_cast<double>(stream_samples[i]))
                : weight.choose.value_or(stream_samples[i]));
    }
    const auto total = static_cast<double>(sum_of(choices));
    Shares shares;
    for (const std::int64_t choice : choices)
        shares.push_back({choice, total > 0 ? static_cast<double>(choice) / total : 0});
    return shares;
}

/// Appends what one shard gives: full repeats, then a sorted draw of the rest.
void draw_shard(std::int64_t first_id, std::int64_t samples, std::int64_t choose, Rng& rng,
                Resampled& drawn) {
    for (std::int64_t repeat = 0; repeat < choose / samples; ++repeat) {
        drawn.units.push_back(samples);
        for (std::int64_t i = 0; i < samples; ++i) drawn.sample_ids.push_back(first_id + i);
    }
    const std::int64_t rest = choose % samples;
    if (rest == 0) return;
    drawn.units.push_back(rest);
    Ids chosen = rng.choice(samples, rest);
    std::sort(chosen.begin(), chosen.end());
    for (const std::int64_t i : chosen) drawn.sample_ids.push_back(first_id + i);
}

bool draws_each_once(const std::vector<Stream>& streams) {
    return std::all_of(streams.begin(), streams.end(), [](const Stream& stream) {
        return stream.choose == sum_of(stream.shard_samples);
    });
}

/// Every sample of every shard once: no draw is needed, and no id list.
Resampled each_once(const std::vector<Stream>& streams) {
    Resampled drawn;
    for (const Stream& stream : streams)
        for (const std::int64_t samples : stream.shard_samples) {
            if (samples > 0) drawn.units.push_back(samples);
            drawn.sample_count += samples;
        }
    return drawn;
}

constexpr std::array<std::pair<std::string_view, BatchingMethod>, 4> kBatchingNames = {{
    {"random", BatchingMethod::kRandom},
    {"stratified", BatchingMethod::kStratified},
    {"per_stream", BatchingMethod::kPerStream},
    {"device_per_stream", BatchingMethod::kDevicePerStream},
}};

}  // namespace

Result<Ids> stream_choices(const Ids& stream_samples, const std::vector<StreamWeight>& weights,
                           std::int64_t epoch_size, std::uint64_t seed) {
    TUNE_TRY(shares, stream_shares(stream_samples, weights, epoch_size, seed));
    Ids choices;
    for (const StreamShare& share : shares) choices.push_back(share.choose);
    return choices;
}

Result<Shares> stream_shares(const Ids& stream_samples, const std::vector<StreamWeight>& weights,
                             std::int64_t epoch_size, std::uint64_t seed) {
    if (stream_samples.empty() || stream_samples.size() != weights.size())
        return invalid_parameter("there must be one weight for each stream");
    std::size_t relative = 0;
    std::size_t absolute = 0;
    for (const StreamWeight& weight : weights) {
        const int given =
            weight.proportion.has_value() + weight.repeat.has_value() + weight.choose.has_value();
        if (given > 1)
            return invalid_parameter("a stream takes at most one of proportion, repeat and choose");
        if (weight.proportion && !(*weight.proportion >= 0))
            return invalid_parameter("a stream's proportion must not be negative");
        (weight.proportion ? relative : absolute) += static_cast<std::size_t>(given);
    }
    if (relative > 0 && relative != weights.size())
        return invalid_parameter("either every stream has a proportion or none has");
    if (absolute > 0 && epoch_size > 0)
        return invalid_parameter("an epoch size cannot be combined with repeat or choose");
    if (relative == 0 && epoch_size == 0) return absolute_shares(stream_samples, weights);
    std::vector<double> proportions;
    for (std::size_t i = 0; i < weights.size(); ++i)
        proportions.push_back(
            weights[i].proportion.value_or(static_cast<double>(stream_samples[i])));
    return relative_shares(proportions, epoch_size > 0 ? epoch_size : sum_of(stream_samples), seed);
}

Result<Ids> choose_per_shard(const Stream& stream, const SamplingOptions& options, bool use_epoch) {
    const std::int64_t samples = sum_of(stream.shard_samples);
    if (samples <= 0) return invalid_parameter("a stream has no samples");
    if (stream.choose < 0) return invalid_parameter("a stream's choice must not be negative");
    if (options.granularity <= 0)
        return invalid_parameter("the sampling granularity must be positive");
    Ids chosen;
    for (const std::int64_t count : stream.shard_samples)
        chosen.push_back(count * (stream.choose / samples));
    std::int64_t rest = stream.choose % samples;
    if (rest == 0) return chosen;

    // A pick takes `granularity` samples of one shard; a shard's last pick takes what is left.
    std::vector<std::uint32_t> shard_of_pick;
    Ids first_pick;
    for (std::size_t shard = 0; shard < stream.shard_samples.size(); ++shard) {
        first_pick.push_back(static_cast<std::int64_t>(shard_of_pick.size()));
        const std::int64_t picks =
            (stream.shard_samples[shard] + options.granularity - 1) / options.granularity;
        shard_of_pick.insert(shard_of_pick.end(), index_of(picks),
                             static_cast<std::uint32_t>(shard));
    }
    Rng rng = epoch_rng(options, use_epoch);
    for (const std::int64_t pick :
         rng.permutation(static_cast<std::int64_t>(shard_of_pick.size()))) {
        const std::size_t shard = shard_of_pick[index_of(pick)];
        const std::int64_t begin = (pick - first_pick[shard]) * options.granularity;
        const std::int64_t taken =
            std::min({rest, options.granularity, stream.shard_samples[shard] - begin});
        chosen[shard] += taken;
        rest -= taken;
        if (rest == 0) break;
    }
    return chosen;
}

Result<Resampled> resample(const std::vector<Stream>& streams, const SamplingOptions& options) {
    if (draws_each_once(streams)) return each_once(streams);
    const bool balanced = options.method == SamplingMethod::kBalanced;
    Rng rng = epoch_rng(options, balanced);
    Resampled drawn;
    std::int64_t first_id = 0;
    for (const Stream& stream : streams) {
        TUNE_TRY(chosen, choose_per_shard(stream, options, options.shuffle && balanced));
        for (std::size_t shard = 0; shard < chosen.size(); ++shard) {
            const std::int64_t samples = stream.shard_samples[shard];
            if (samples > 0) draw_shard(first_id, samples, chosen[shard], rng, drawn);
            first_id += samples;
        }
    }
    drawn.sample_count = static_cast<std::int64_t>(drawn.sample_ids.size());
    return drawn;
}

std::string_view batching_method_name(BatchingMethod method) {
    for (const auto& [name, value] : kBatchingNames)
        if (value == method) return name;
    return "unknown";
}

std::optional<BatchingMethod> batching_method_from_name(std::string_view name) {
    for (const auto& [known, value] : kBatchingNames)
        if (known == name) return value;
    return std::nullopt;
}

Result<Ids> rank_samples(const std::vector<Stream>& streams, const EpochOptions& options) {
    if (options.batching != BatchingMethod::kRandom) return batched_by_stream(streams, options);
    TUNE_TRY(drawn, resample(streams, options.sampling));
    PartitionOptions partition_options = options.partition;
    partition_options.sample_count = drawn.sample_count;
    TUNE_TRY(partition, Partition::make(partition_options));
    Ids shuffled;
    if (options.shuffle) {
        TUNE_TRY(order, shuffle_samples(drawn.units, *options.shuffle));
        shuffled = std::move(order);
    }
    Ids ids = partition.positions(options.node, options.rank_of_node);
    if (shuffled.empty() && drawn.sample_ids.empty()) return ids;
    for (std::int64_t& id : ids) {
        if (id >= 0 && !shuffled.empty()) id = shuffled[index_of(id)];
        if (id >= 0 && !drawn.sample_ids.empty()) id = drawn.sample_ids[index_of(id)];
    }
    return ids;
}

}  // namespace tune::loader
