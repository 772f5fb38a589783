// Upstream builds, for each stream, the tensor of its partition, reshapes it to batches and cuts
// the batches of all streams together. Here a stream's partition is a formula (partition.h), so a
// rank computes only the slots of the batches that are its own. What upstream pads with -1 to fill
// its tensor is left out: it is never read.

#include "loader/order/batching.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "base/text/counted.h"
#include "loader/order/rng.h"

namespace tune::loader {
namespace {

using Ids = std::vector<std::int64_t>;

std::size_t index_of(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

/// One stream in the order in which its samples are handed to batches.
struct StreamOrder {
    Partition partition;
    Ids shuffled;            // empty: in order
    Ids drawn;               // empty: every sample once
    std::int64_t first = 0;  // of the stream's samples in the data set

    [[nodiscard]] std::int64_t at(std::int64_t node, std::int64_t rank,
                                  std::int64_t position) const {
        std::int64_t id = partition.at(node, rank, position);
        if (!shuffled.empty()) id = shuffled[index_of(id)];
        if (!drawn.empty()) id = drawn[index_of(id)];
        return first + id;
    }
};

std::string named(std::size_t stream) {
    return "stream " + std::to_string(stream);
}

/// `layout`: the partition's nodes and batch size; the rest is filled in.
Result<StreamOrder> order_stream(const Stream& stream, std::size_t number, std::int64_t first,
                                 const EpochOptions& options, PartitionOptions layout) {
    TUNE_TRY(drawn, resample({stream}, options.sampling));
    if (drawn.sample_count == 0)
        return invalid_parameter("an epoch takes no sample of " + named(number) +
                                 "; leave the stream out, or give it more weight");
    layout.sample_count = drawn.sample_count;
    layout.drop_first = 0;
    TUNE_TRY(partition, Partition::make(layout));
    Ids shuffled;
    if (options.shuffle) {
        ShuffleOptions shuffle = *options.shuffle;
        shuffle.block_size =
            static_cast<std::int64_t>(static_cast<double>(shuffle.block_size) * stream.proportion);
        TUNE_TRY(order, shuffle_samples(drawn.units, shuffle));
        shuffled = std::move(order);
    }
    return StreamOrder{std::move(partition), std::move(shuffled), std::move(drawn.sample_ids),
                       first};
}

Result<std::vector<StreamOrder>> order_streams(const std::vector<Stream>& streams,
                                               const EpochOptions& options,
                                               const PartitionOptions& layout) {
    std::vector<StreamOrder> orders;
    std::int64_t first = 0;
    for (std::size_t s = 0; s < streams.size(); ++s) {
        TUNE_TRY(order, order_stream(streams[s], s, first, options, layout));
        orders.push_back(std::move(order));
        first += std::accumulate(streams[s].shard_samples.begin(), streams[s].shard_samples.end(),
                                 std::int64_t{0});
    }
    return orders;
}

/// The ranks of the run, and where this one stands among them.
struct Slots {
    explicit Slots(const EpochOptions& options)
        : batch(options.partition.batch_size),
          ranks(options.partition.physical_nodes * options.partition.ranks_per_node),
          rank(options.node * options.partition.ranks_per_node + options.rank_of_node),
          first_batch(options.partition.drop_first / (batch * ranks)) {}

    std::int64_t batch;
    std::int64_t ranks;
    std::int64_t rank;
    std::int64_t first_batch;  // resumed at
    [[nodiscard]] std::int64_t global_batch() const { return batch * ranks; }
};

/// Samples of each stream in a global batch. Rounding leaves some out; they go to the streams that
/// were nearest to one more, the later of equal ones first.
Result<Ids> batch_portions(const std::vector<Stream>& streams, std::int64_t global_batch) {
    Ids portions;
    std::vector<double> lacking;
    for (const Stream& stream : streams) {
        const double exact = static_cast<double>(global_batch) * stream.proportion;
        portions.push_back(static_cast<std::int64_t>(exact));
        lacking.push_back(exact - static_cast<double>(portions.back()));
    }
    const std::int64_t missing =
        global_batch - std::accumulate(portions.begin(), portions.end(), std::int64_t{0});
    std::vector<std::size_t> by_lack(streams.size());
    std::iota(by_lack.begin(), by_lack.end(), std::size_t{0});
    std::stable_sort(by_lack.begin(), by_lack.end(),
                     [&](std::size_t a, std::size_t b) { return lacking[a] < lacking[b]; });
    for (std::int64_t i = 0; i < missing && index_of(i) < by_lack.size(); ++i)
        ++portions[by_lack[by_lack.size() - 1 - index_of(i)]];
    for (std::size_t s = 0; s < portions.size(); ++s)
        if (portions[s] <= 0)
            return invalid_parameter(named(s) + " is too small a part of the data for one sample " +
                                     "in each global batch of " + std::to_string(global_batch) +
                                     "; raise its proportion or the batch size");
    return portions;
}

/// Sample `i` of a stream when all ranks take turns.
std::int64_t in_turns(const StreamOrder& order, std::int64_t ranks, std::int64_t i) {
    return order.at(0, i % ranks, i / ranks);
}

Result<Ids> stratified(const std::vector<Stream>& streams, const EpochOptions& options) {
    const Slots slots(options);
    TUNE_TRY(portions, batch_portions(streams, slots.global_batch()));
    PartitionOptions layout = options.partition;
    layout.physical_nodes = 1;
    layout.batch_size = 1;
    TUNE_TRY(orders, order_streams(streams, options, layout));
    std::int64_t batches = std::numeric_limits<std::int64_t>::max();
    for (std::size_t s = 0; s < orders.size(); ++s)
        batches = std::min(
            batches, orders[s].partition.samples_per_rank() * layout.ranks_per_node / portions[s]);
    Ids ids;
    for (std::int64_t b = slots.first_batch; b < batches; ++b) {
        std::int64_t stream_begin = 0;
        for (std::size_t s = 0; s < orders.size(); ++s) {
            const std::int64_t begin = std::max(stream_begin, slots.rank * slots.batch);
            const std::int64_t end =
                std::min(stream_begin + portions[s], (slots.rank + 1) * slots.batch);
            for (std::int64_t slot = begin; slot < end; ++slot)
                ids.push_back(in_turns(orders[s], layout.ranks_per_node,
                                       b * portions[s] + slot - stream_begin));
            stream_begin += portions[s];
        }
    }
    return ids;
}

Rng origins_rng(const EpochOptions& options) {
    const SamplingOptions& sampling = options.sampling;
    const bool by_epoch = sampling.shuffle && sampling.method == SamplingMethod::kBalanced;
    return Rng(sampling.seed + (by_epoch ? static_cast<std::uint64_t>(sampling.epoch) : 0));
}

/// A batch of a stream: the `number`th one.
struct Origin {
    std::size_t stream = 0;
    std::int64_t number = 0;
};

/// `counts` batches of each stream, mixed; those of one stream stay in their order.
std::vector<Origin> mix_batches(const Ids& counts, Rng& rng) {
    std::vector<Origin> origins;
    for (std::size_t s = 0; s < counts.size(); ++s)
        origins.insert(origins.end(), index_of(counts[s]), Origin{s, 0});
    rng.shuffle(std::span(origins));
    Ids next(counts.size(), 0);
    for (Origin& origin : origins) origin.number = next[origin.stream]++;
    return origins;
}

Error too_few(std::size_t stream, std::int64_t batch) {
    return invalid_parameter(named(stream) + " has not the " + counted(batch, "sample") +
                             " of one batch; give it more weight, or use smaller batches");
}

Result<Ids> per_stream(const std::vector<Stream>& streams, const EpochOptions& options) {
    const Slots slots(options);
    TUNE_TRY(orders, order_streams(streams, options, options.partition));
    Ids counts;
    for (std::size_t s = 0; s < orders.size(); ++s) {
        counts.push_back(orders[s].partition.full_batches());
        if (counts.back() == 0) return too_few(s, slots.global_batch());
    }
    Rng rng = origins_rng(options);
    const std::vector<Origin> origins = mix_batches(counts, rng);
    Ids ids;
    for (std::size_t b = index_of(slots.first_batch); b < origins.size(); ++b)
        for (std::int64_t i = 0; i < slots.batch; ++i)
            ids.push_back(orders[origins[b].stream].at(options.node, options.rank_of_node,
                                                       origins[b].number * slots.batch + i));
    return ids;
}

/// Each machine mixes the batches of its own canonical nodes; the machines' batches are then dealt
/// to all ranks in turns, so that a rank may be given one of another machine, as upstream does.
Result<Ids> device_per_stream(const std::vector<Stream>& streams, const EpochOptions& options) {
    const Slots slots(options);
    const std::int64_t machines = options.partition.physical_nodes;
    const std::int64_t canonical = options.partition.num_canonical_nodes;
    const std::int64_t ranks = options.partition.ranks_per_node;
    if (canonical % machines != 0)
        return invalid_parameter(
            "batching device_per_stream needs a number of canonical nodes that "
            "divides by the machines: " +
            std::to_string(canonical) + " and " + std::to_string(machines) + " do not");
    PartitionOptions layout = options.partition;
    layout.physical_nodes = canonical;
    layout.batch_size = 1;
    for (std::size_t s = 0; s < streams.size(); ++s)
        if (options.shuffle &&
            static_cast<std::int64_t>(static_cast<double>(options.shuffle->block_size) *
                                      streams[s].proportion) == 0)
            return invalid_parameter(named(s) + " has no part in a shuffle block of " +
                                     counted(options.shuffle->block_size, "sample") +
                                     "; raise its proportion or shuffle_block_size");
    TUNE_TRY(orders, order_streams(streams, options, layout));
    const std::int64_t share = canonical / machines;
    Ids counts;
    for (std::size_t s = 0; s < orders.size(); ++s) {
        counts.push_back(share * ranks * orders[s].partition.samples_per_rank() / slots.batch);
        if (counts.back() == 0) return too_few(s, slots.batch);
    }
    Rng rng = origins_rng(options);
    std::vector<std::vector<Origin>> of_machine;
    for (std::int64_t machine = 0; machine < machines; ++machine)
        of_machine.push_back(mix_batches(counts, rng));
    const auto batches = static_cast<std::int64_t>(of_machine.front().size());
    const std::int64_t rounds = batches * machines / slots.ranks + 1;
    Ids ids;
    for (std::int64_t round = slots.first_batch; round < rounds; ++round) {
        const std::int64_t dealt = round * slots.ranks + slots.rank;
        const std::int64_t machine = dealt % machines;
        if (dealt / machines >= batches) {
            ids.insert(ids.end(), index_of(slots.batch), -1);
            continue;
        }
        const Origin& origin = of_machine[index_of(machine)][index_of(dealt / machines)];
        for (std::int64_t i = 0; i < slots.batch; ++i) {
            const std::int64_t of_stream = origin.number * slots.batch + i;
            ids.push_back(orders[origin.stream].at(machine * share + of_stream / ranks % share,
                                                   of_stream % ranks, of_stream / (ranks * share)));
        }
    }
    return ids;
}

}  // namespace

Result<Ids> batched_by_stream(const std::vector<Stream>& streams, const EpochOptions& options) {
    switch (options.batching) {
        case BatchingMethod::kStratified: return stratified(streams, options);
        case BatchingMethod::kPerStream: return per_stream(streams, options);
        case BatchingMethod::kDevicePerStream: return device_per_stream(streams, options);
        case BatchingMethod::kRandom: break;
    }
    return invalid_parameter("batching random takes no streams apart");
}

}  // namespace tune::loader
