// The defaults of mosaicml-streaming, and the steps from a position to a rank's batches. All of it
// is pure: the same options, settings and position give the same plan on every machine, so a plan
// can be made ahead of its use, made again, or made in another process.

#include "loader/order_planner.h"

#include <algorithm>
#include <utility>

#include "base/text/counted.h"
#include "loader/format/hash.h"
#include "loader/order/lazy_order.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kDefaultBlockMin = 1 << 18;
constexpr std::int64_t kDefaultBlockTotal = 4'000'000;

/// The batches of one worker: every `workers`th one.
std::vector<std::int64_t> of_worker(const std::vector<std::int64_t>& ids, std::int64_t batch_size,
                                    std::int64_t worker, std::int64_t workers) {
    std::vector<std::int64_t> taken;
    const auto count = static_cast<std::int64_t>(ids.size());
    for (std::int64_t begin = worker * batch_size; begin < count; begin += workers * batch_size)
        taken.insert(taken.end(), ids.begin() + begin,
                     ids.begin() + std::min(begin + batch_size, count));
    return taken;
}

}  // namespace

Result<Topology> topology_of(const World& world) {
    const std::int64_t per_node = world.ranks_per_node > 0 ? world.ranks_per_node : world.size;
    if (world.size <= 0 || world.rank < 0 || world.rank >= world.size || world.ranks_per_node < 0)
        return invalid_parameter("rank " + std::to_string(world.rank) + " of " +
                                 std::to_string(world.size) + " does not exist");
    if (world.size % per_node != 0)
        return invalid_parameter(std::to_string(world.size) +
                                 " ranks do not divide among machines of " +
                                 std::to_string(per_node));
    if (world.replication <= 0 || world.size % world.replication != 0)
        return invalid_parameter(std::to_string(world.size) +
                                 " ranks do not divide into groups of " +
                                 std::to_string(world.replication) + " that read the same samples");
    if (world.workers <= 0 || world.worker < 0 || world.worker >= world.workers)
        return invalid_parameter("worker " + std::to_string(world.worker) + " of " +
                                 std::to_string(world.workers) + " does not exist");
    // Groups keep a machine's number of ranks when they fill whole machines; otherwise they are
    // taken for ranks of one machine, as upstream does.
    const std::int64_t groups = world.size / world.replication;
    const std::int64_t rank = world.rank / world.replication;
    Topology topology;
    topology.nodes = groups % per_node == 0 ? groups / per_node : 1;
    topology.ranks_per_node = groups / topology.nodes;
    topology.node = rank / topology.ranks_per_node;
    topology.rank_of_node = rank % topology.ranks_per_node;
    return topology;
}

OrderPlanner::OrderPlanner(const DatasetOptions& options, Topology topology,
                           std::vector<Stream> streams, std::int64_t block_samples_max)
    : options_(options),
      topology_(topology),
      streams_(std::move(streams)),
      block_samples_max_(block_samples_max) {}

OrderSettings OrderPlanner::default_settings() const {
    std::int64_t canonical = options_.num_canonical_nodes;
    if (canonical == 0) {
        const bool is_simple = options_.shuffle_algo == ShuffleAlgo::kPy1s ||
                               options_.shuffle_algo == ShuffleAlgo::kPy2s;
        canonical = options_.shuffle && is_simple ? 64 * topology_.nodes : topology_.nodes;
    }
    return {canonical, options_.seed, topology_.nodes};
}

std::int64_t OrderPlanner::epoch_size() const {
    std::int64_t samples = 0;
    for (const Stream& stream : streams_) samples += stream.choose;
    return samples;
}

std::int64_t OrderPlanner::block_size(const OrderSettings& settings) const {
    if (options_.shuffle_block_size > 0) return options_.shuffle_block_size;
    const std::int64_t usual =
        options_.order == OrderKind::kLazy
            ? kDefaultBlockMin
            : std::max(kDefaultBlockTotal / settings.num_canonical_nodes, kDefaultBlockMin);
    return block_samples_max_ > 0 ? std::min(usual, block_samples_max_) : usual;
}

ShuffleOptions OrderPlanner::shuffle_options(const OrderSettings& settings,
                                             std::int64_t epoch) const {
    return {options_.shuffle_algo, settings.seed, epoch, settings.num_canonical_nodes,
            block_size(settings)};
}

EpochOptions OrderPlanner::epoch_options(const OrderSettings& settings, Position position) const {
    EpochOptions epoch;
    epoch.batching = options_.batching;
    epoch.sampling.method = options_.sampling;
    epoch.sampling.granularity = options_.sampling_granularity;
    epoch.sampling.seed = settings.seed;
    epoch.sampling.epoch = position.epoch;
    epoch.sampling.shuffle = options_.shuffle;
    if (options_.shuffle) epoch.shuffle = shuffle_options(settings, position.epoch);
    const bool recuts = options_.partition == PartitionAlgo::kRelaxed;
    epoch.partition = {.sample_count = epoch_size(),
                       .num_canonical_nodes = settings.num_canonical_nodes,
                       .physical_nodes = topology_.nodes,
                       .ranks_per_node = topology_.ranks_per_node,
                       .batch_size = options_.batch_size,
                       .drop_first = position.sample_in_epoch,
                       .initial_physical_nodes = recuts ? settings.initial_physical_nodes : 0};
    epoch.node = topology_.node;
    epoch.rank_of_node = topology_.rank_of_node;
    return epoch;
}

Result<LazyRank> OrderPlanner::lazy_rank(const OrderSettings& settings, Position position) const {
    for (const Stream& stream : streams_) {
        std::int64_t stored = 0;
        for (const std::int64_t samples : stream.shard_samples) stored += samples;
        if (stored != stream.choose)
            return invalid_parameter(
                "the lazy order reads every sample once an epoch; leave epoch_size and the "
                "streams' weights out, or use an order of mosaicml-streaming");
    }
    if (options_.batching != BatchingMethod::kRandom)
        return invalid_parameter("the lazy order knows the batching method random only");
    TUNE_TRY(order, LazyOrder::make({.sample_count = epoch_size(),
                                     .shuffle = options_.shuffle,
                                     .seed = settings.seed,
                                     .epoch = position.epoch,
                                     .block_size = block_size(settings)}));
    if (position.sample_in_epoch > order.sample_count() + topology_.ranks())
        return invalid_parameter("sample " + std::to_string(position.sample_in_epoch) +
                                 " of the epoch was asked for, but the epoch has only " +
                                 counted(order.sample_count(), "sample"));
    return LazyRank(std::move(order), {.rank = topology_.rank(),
                                       .ranks = topology_.ranks(),
                                       .batch_size = options_.batch_size,
                                       .drop_first = position.sample_in_epoch});
}

Result<void> OrderPlanner::check(const OrderSettings& settings,
                                 std::int64_t sample_in_epoch) const {
    if (options_.order == OrderKind::kLazy) {
        TUNE_TRY_VOID(lazy_rank(settings, {0, sample_in_epoch}));
        return {};
    }
    // The other methods partition each stream on its own: only a whole plan would tell.
    if (options_.batching != BatchingMethod::kRandom) return {};
    const EpochOptions epoch = epoch_options(settings, {0, sample_in_epoch});
    // A shuffle that cannot work is an error here, not of some later batch.
    if (epoch.shuffle) TUNE_TRY_VOID(check_shuffle(epoch.partition.sample_count, *epoch.shuffle));
    TUNE_TRY_VOID(Partition::make(epoch.partition));
    return {};
}

Result<std::int64_t> OrderPlanner::batches_per_epoch(const OrderSettings& settings) const {
    const std::int64_t workers = options_.world.workers;
    std::int64_t batches = 0;
    if (options_.order == OrderKind::kMosaic && options_.batching == BatchingMethod::kRandom) {
        TUNE_TRY(partition, Partition::make(epoch_options(settings, {}).partition));
        const std::int64_t samples = partition.samples_per_rank();
        batches = options_.drop_last ? samples / options_.batch_size
                                     : (samples + options_.batch_size - 1) / options_.batch_size;
        if (batches == 0)
            return invalid_parameter("a rank is given " + counted(samples, "sample") +
                                     " per epoch, less than one batch of " +
                                     std::to_string(options_.batch_size) + "; keep the last one");
    } else {
        TUNE_TRY(all, plan(settings, {}, 0, 1));
        batches = static_cast<std::int64_t>(all->batch_count());
    }
    return (batches - options_.world.worker + workers - 1) / workers;
}

std::string OrderPlanner::order_text(const OrderSettings& settings) const {
    std::string text = options_.order == OrderKind::kLazy ? "lazy-v1" : "mosaic-v1";
    text += " epoch_size=" + std::to_string(epoch_size());
    if (streams_.size() > 1) {
        std::string shares;
        for (const Stream& stream : streams_) shares += std::to_string(stream.choose) + ",";
        auto digest = hash_hex("xxh3_64", std::as_bytes(std::span(shares)));
        text +=
            " streams=" + std::to_string(streams_.size()) + ":" + std::move(digest).value_or("");
    }
    if (options_.batching != BatchingMethod::kRandom)
        text += " batching=" + std::string(batching_method_name(options_.batching));
    if (options_.sampling == SamplingMethod::kFixed) text += " sampling=fixed";
    if (options_.sampling_granularity != 1)
        text += " granularity=" + std::to_string(options_.sampling_granularity);
    if (options_.partition == PartitionAlgo::kOrig) text += " partition=orig";
    if (!options_.shuffle) return text + " shuffle=off";
    if (options_.order == OrderKind::kLazy)
        return text + " shuffle=on block=" + std::to_string(block_size(settings));
    text += " shuffle=" + std::string(shuffle_algo_name(options_.shuffle_algo));
    const bool has_blocks =
        options_.shuffle_algo == ShuffleAlgo::kPy1br || options_.shuffle_algo == ShuffleAlgo::kPy1e;
    if (has_blocks) text += " block=" + std::to_string(block_size(settings));
    return text;
}

Result<std::shared_ptr<const EpochPlan>> OrderPlanner::plan(const OrderSettings& settings,
                                                            Position position, std::int64_t worker,
                                                            std::int64_t workers) const {
    if (options_.order == OrderKind::kLazy) {
        TUNE_TRY(rank, lazy_rank(settings, position));
        return std::make_shared<const EpochPlan>(position.epoch, rank.of_worker(worker, workers),
                                                 options_.batch_size, options_.drop_last);
    }
    TUNE_TRY(ids, rank_samples(streams_, epoch_options(settings, position)));
    if (workers > 1) ids = of_worker(ids, options_.batch_size, worker, workers);
    return std::make_shared<const EpochPlan>(position.epoch, std::move(ids), options_.batch_size,
                                             options_.drop_last);
}

}  // namespace tune::loader
