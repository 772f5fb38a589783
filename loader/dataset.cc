// Dataset puts the parts together: it validates the options against the index, plans epochs, hands
// the order to a reader and saves or restores a position. Everything that decides the order is a
// field of the saved state or part of its digest of settings and data, so that a restored run
// continues with exactly the remaining samples or is refused.

#include "loader/dataset.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text/counted.h"
#include "loader/batch_decoder.h"
#include "loader/batch_reader.h"
#include "loader/batch_slot.h"
#include "loader/cache/remote_set.h"
#include "loader/epoch_plan.h"
#include "loader/format/compression.h"
#include "loader/format/mds/encoding.h"
#include "loader/format/mds/index.h"
#include "loader/order/epoch.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kDefaultBlockMin = 1 << 18;
constexpr std::int64_t kDefaultBlockTotal = 4'000'000;
constexpr std::int64_t kBatchesAheadDefault = 8;
constexpr std::int64_t kBatchesAheadMax = 4096;
constexpr int kThreadsMax = 256;
constexpr int kConnectionsMax = 256;

/// Where the rank stands among machines.
struct Topology {
    std::int64_t nodes = 1;
    std::int64_t ranks_per_node = 1;
    std::int64_t node = 0;
    std::int64_t rank_of_node = 0;
};

Result<Topology> topology_of(const World& world) {
    Topology topology;
    topology.ranks_per_node = world.ranks_per_node > 0 ? world.ranks_per_node : world.size;
    if (world.size <= 0 || world.rank < 0 || world.rank >= world.size || world.ranks_per_node < 0)
        return invalid_parameter("rank " + std::to_string(world.rank) + " of " +
                                 std::to_string(world.size) + " does not exist");
    if (world.size % topology.ranks_per_node != 0)
        return invalid_parameter(std::to_string(world.size) +
                                 " ranks do not divide among machines of " +
                                 std::to_string(topology.ranks_per_node));
    topology.nodes = world.size / topology.ranks_per_node;
    topology.node = world.rank / topology.ranks_per_node;
    topology.rank_of_node = world.rank % topology.ranks_per_node;
    return topology;
}

Result<void> check_options(const DatasetOptions& options) {
    if (options.batch_size <= 0 || options.batch_size > (std::int64_t{1} << 31))
        return invalid_parameter("the batch size must be at least 1, it is " +
                                 std::to_string(options.batch_size));
    if (options.threads < 0 || options.threads > kThreadsMax)
        return invalid_parameter("the number of loader threads must lie in 0..256, it is " +
                                 std::to_string(options.threads));
    if (options.num_canonical_nodes < 0 || options.shuffle_block_size < 0 ||
        options.epoch_size < 0 || options.predownload < 0)
        return invalid_parameter(
            "num_canonical_nodes, shuffle_block_size, epoch_size and predownload must not be "
            "negative");
    if (options.download_connections < 1 || options.download_connections > kConnectionsMax)
        return invalid_parameter("download_connections must lie in 1..256, it is " +
                                 std::to_string(options.download_connections));
    if (options.seed > (std::uint64_t{1} << 62))
        return invalid_parameter("the seed is larger than 2^62");
    return {};
}

/// All shards must have the columns of the first one, and be readable by this build.
Result<void> check_shards(const Index& index) {
    if (index.shards.empty() || index.sample_count() == 0)
        return invalid_parameter("the data set has no samples");
    for (const ShardInfo& shard : index.shards) {
        if (shard.column_names != index.shards.front().column_names ||
            shard.column_encodings != index.shards.front().column_encodings)
            return Error{Code::kDataLoss, "shard '" + shard.raw_data.basename +
                                              "' has other columns than the first shard"};
        if (!shard.compression.empty()) TUNE_TRY_VOID(parse_compression(shard.compression));
    }
    return {};
}

Result<ColumnInfo> column_info(const ShardInfo& shard, std::size_t position) {
    TUNE_TRY(encoding, parse_encoding(shard.column_encodings[position]));
    ColumnInfo column{.name = shard.column_names[position], .encoding = encoding.name};
    column.fixed = encoding.size.has_value();
    column.sample_bytes = encoding.size.value_or(0);
    if (column.fixed) column.dtype = *encoding.dtype;
    if (encoding.shape) column.shape = *encoding.shape;
    return column;
}

Result<ColumnSelection> select_columns(const ShardInfo& shard,
                                       const std::vector<std::string>& wanted) {
    const std::vector<std::string>& names = shard.column_names;
    for (const std::string& name : wanted) {
        if (std::find(names.begin(), names.end(), name) != names.end()) continue;
        std::string message = "there is no column '" + name + "'; the data set has";
        for (const std::string& known : names) message += " " + known;
        return invalid_parameter(message);
    }
    ColumnSelection selection;
    for (std::size_t position = 0; position < names.size(); ++position) {
        if (!wanted.empty() &&
            std::find(wanted.begin(), wanted.end(), names[position]) == wanted.end())
            continue;
        TUNE_TRY(column, column_info(shard, position));
        selection.columns.push_back(std::move(column));
        selection.positions.push_back(position);
    }
    return selection;
}

std::filesystem::path data_directory(const DatasetOptions& options) {
    const std::filesystem::path directory = plain_directory(options);
    return options.split.empty() ? directory : directory / options.split;
}

std::int64_t batches_ahead(const DatasetOptions& options) {
    if (options.predownload == 0) return kBatchesAheadDefault;
    const std::int64_t batches =
        (options.predownload + options.batch_size - 1) / options.batch_size;
    return std::clamp<std::int64_t>(batches, 1, kBatchesAheadMax);
}

}  // namespace

/// What decides the order of samples, apart from the position.
struct OrderSettings {
    std::int64_t num_canonical_nodes = 1;
    std::uint64_t seed = 9176;
    std::int64_t initial_physical_nodes = 0;
};

class Dataset::Impl {
public:
    /// `remote`: what the index was read with, when the data is cached.
    Impl(DatasetOptions options, Topology topology, Index index, ColumnSelection selection,
         RemoteSet remote)
        : options_(std::move(options)),
          topology_(topology),
          index_digest_(tune::loader::index_digest(index)),
          sample_count_(index.sample_count()),
          streams_({Stream{{}, options_.epoch_size > 0 ? options_.epoch_size : sample_count_}}),
          pool_(std::make_shared<SlotPool>(selection.columns,
                                           static_cast<std::size_t>(batches_ahead(options_) + 1))) {
        for (const ShardInfo& shard : index.shards)
            streams_.front().shard_samples.push_back(shard.samples);
        supply_ = std::move(remote.supply);
        std::shared_ptr<ShardStore> store = std::move(remote.store);
        if (!store)
            store = std::make_shared<ShardStore>(data_directory(options_), std::move(index),
                                                 options_.verify == Verify::kHashes,
                                                 options_.decompressed_bytes_max);
        decoder_ = std::make_unique<BatchDecoder>(std::move(store), std::move(selection));
        settings_ = {default_canonical_nodes(), options_.seed, topology_.nodes};
    }

    [[nodiscard]] Result<void> start() {
        TUNE_TRY(partition, checked_partition(settings_, 0));
        const std::int64_t samples = partition.samples_per_rank();
        batches_per_epoch_ = options_.drop_last
                                 ? samples / options_.batch_size
                                 : (samples + options_.batch_size - 1) / options_.batch_size;
        if (batches_per_epoch_ == 0)
            return invalid_parameter("a rank is given " + counted(samples, "sample") +
                                     " per epoch, less than one batch of " +
                                     std::to_string(options_.batch_size) + "; keep the last one");
        restart();
        return {};
    }

    [[nodiscard]] Result<bool> next(Batch& batch) {
        batch.reset();
        // Only now, so that what the caller repaired after an error is read anew.
        if (std::exchange(has_failed_, false)) reader_->seek(position_);
        Result<std::shared_ptr<BatchSlot>> slot = reader_->next();
        if (!slot) {
            has_failed_ = true;
            return std::move(slot).error();
        }
        if (!*slot) {
            position_ = {position_.epoch + 1, 0};
            return false;
        }
        fill_batch(*std::move(slot), batch);
        position_.sample_in_epoch += static_cast<std::int64_t>(batch.count) * options_.world.size;
        return true;
    }

    [[nodiscard]] const std::vector<ColumnInfo>& columns() const { return pool_->columns(); }
    [[nodiscard]] std::int64_t sample_count() const { return sample_count_; }
    [[nodiscard]] std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
    [[nodiscard]] std::int64_t epoch() const { return position_.epoch; }
    [[nodiscard]] FetchFigures fetch_figures() const {
        return supply_ ? supply_->figures() : FetchFigures{};
    }

    [[nodiscard]] DatasetState state() const {
        DatasetState state;
        state.epoch = position_.epoch;
        state.sample_in_epoch = position_.sample_in_epoch;
        state.num_canonical_nodes = settings_.num_canonical_nodes;
        state.shuffle_seed = settings_.seed;
        state.initial_physical_nodes = settings_.initial_physical_nodes;
        state.order = order_text(settings_);
        state.index_digest = index_digest_;
        return state;
    }

    [[nodiscard]] Result<void> load_state(const DatasetState& state) {
        if (state.epoch < 0 || state.sample_in_epoch < 0 || state.num_canonical_nodes < 1)
            return invalid_parameter("the loader state holds a negative number");
        const OrderSettings settings{state.num_canonical_nodes, state.shuffle_seed,
                                     state.initial_physical_nodes};
        if (!state.index_digest.empty() && state.index_digest != index_digest_)
            return invalid_parameter("the loader state was saved for other data (index digest " +
                                     state.index_digest + ", this data set has " + index_digest_ +
                                     ")");
        if (const std::string order = order_text(settings);
            !state.order.empty() && state.order != order)
            return invalid_parameter("the loader state was saved with the order '" + state.order +
                                     "', this data set is read with '" + order + "'");
        TUNE_TRY_VOID(checked_partition(settings, state.sample_in_epoch));
        settings_ = settings;
        position_ = {state.epoch, state.sample_in_epoch};
        restart();
        return {};
    }

    void start_epoch(std::int64_t epoch) {
        TUNE_CHECK(epoch >= 0, "epochs count from 0");
        position_ = {epoch, 0};
        has_failed_ = false;
        reader_->seek(position_);
    }

private:
    [[nodiscard]] std::int64_t default_canonical_nodes() const {
        if (options_.num_canonical_nodes > 0) return options_.num_canonical_nodes;
        const bool is_simple = options_.shuffle_algo == ShuffleAlgo::kPy1s ||
                               options_.shuffle_algo == ShuffleAlgo::kPy2s;
        return options_.shuffle && is_simple ? 64 * topology_.nodes : topology_.nodes;
    }

    [[nodiscard]] std::int64_t block_size(const OrderSettings& settings) const {
        if (options_.shuffle_block_size > 0) return options_.shuffle_block_size;
        return std::max(kDefaultBlockTotal / settings.num_canonical_nodes, kDefaultBlockMin);
    }

    [[nodiscard]] ShuffleOptions shuffle_options(const OrderSettings& settings,
                                                 std::int64_t epoch) const {
        return {options_.shuffle_algo, settings.seed, epoch, settings.num_canonical_nodes,
                block_size(settings)};
    }

    [[nodiscard]] PartitionOptions partition_options(const OrderSettings& settings,
                                                     std::int64_t drop_first) const {
        return {.sample_count = streams_.front().choose,
                .num_canonical_nodes = settings.num_canonical_nodes,
                .physical_nodes = topology_.nodes,
                .ranks_per_node = topology_.ranks_per_node,
                .batch_size = options_.batch_size,
                .drop_first = drop_first,
                .initial_physical_nodes = settings.initial_physical_nodes};
    }

    [[nodiscard]] Result<Partition> checked_partition(const OrderSettings& settings,
                                                      std::int64_t drop_first) const {
        // A shuffle that cannot work is an error here, not of some later batch.
        if (options_.shuffle)
            TUNE_TRY_VOID(check_shuffle(streams_.front().choose, shuffle_options(settings, 0)));
        return Partition::make(partition_options(settings, drop_first));
    }

    /// Everything that decides the order and is not a field of the state.
    [[nodiscard]] std::string order_text(const OrderSettings& settings) const {
        std::string text = "mosaic-v1 epoch_size=" + std::to_string(streams_.front().choose);
        if (!options_.shuffle) return text + " shuffle=off";
        text += " shuffle=" + std::string(shuffle_algo_name(options_.shuffle_algo));
        const bool has_blocks = options_.shuffle_algo == ShuffleAlgo::kPy1br ||
                                options_.shuffle_algo == ShuffleAlgo::kPy1e;
        if (has_blocks) text += " block=" + std::to_string(block_size(settings));
        return text;
    }

    [[nodiscard]] Result<std::shared_ptr<const EpochPlan>> plan_at(const OrderSettings& settings,
                                                                   Position position) const {
        EpochOptions epoch;
        epoch.sampling.seed = settings.seed;
        epoch.sampling.epoch = position.epoch;
        epoch.sampling.shuffle = options_.shuffle;
        if (options_.shuffle) epoch.shuffle = shuffle_options(settings, position.epoch);
        epoch.partition = partition_options(settings, position.sample_in_epoch);
        epoch.node = topology_.node;
        epoch.rank_of_node = topology_.rank_of_node;
        TUNE_TRY(ids, rank_samples(streams_, epoch));
        return std::make_shared<const EpochPlan>(position.epoch, std::move(ids),
                                                 options_.batch_size, options_.drop_last);
    }

    /// A new reader at position_, because the settings its planner holds may have changed.
    void restart() {
        reader_.reset();
        has_failed_ = false;
        Planner planner = [this, settings = settings_](Position position) {
            return plan_at(settings, position);
        };
        if (options_.threads == 0)
            reader_ =
                std::make_unique<InlineReader>(pool_, *decoder_, std::move(planner), supply_.get());
        else
            reader_ = std::make_unique<ThreadedReader>(pool_, *decoder_, std::move(planner),
                                                       options_.threads, supply_.get());
        reader_->seek(position_);
    }

    void fill_batch(std::shared_ptr<BatchSlot> slot, Batch& batch) const {
        batch.count = slot->ids.size();
        batch.sample_ids = slot->ids;
        batch.epoch = slot->epoch;
        for (std::size_t c = 0; c < slot->columns.size(); ++c) {
            const ColumnInfo& info = pool_->columns()[c];
            batch.columns.push_back({&info, slot->columns[c].data.data(),
                                     info.fixed ? nullptr : slot->columns[c].offsets.data()});
        }
        batch.slot_ = std::move(slot);
    }

    const DatasetOptions options_;
    const Topology topology_;
    const std::string index_digest_;
    const std::int64_t sample_count_;
    std::vector<Stream> streams_;
    std::int64_t batches_per_epoch_ = 0;
    std::shared_ptr<SlotPool> pool_;
    std::unique_ptr<BatchDecoder> decoder_;
    std::shared_ptr<ShardSupply> supply_;  // nullptr: the data is on this machine
    OrderSettings settings_;
    Position position_;
    bool has_failed_ = false;              // the reader must be told where to go on
    std::unique_ptr<BatchReader> reader_;  // last: its threads use the rest
};

Dataset::Dataset(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dataset::~Dataset() = default;

Result<std::unique_ptr<Dataset>> Dataset::open(DatasetOptions options) {
    TUNE_TRY_VOID(check_options(options));
    TUNE_TRY(topology, topology_of(options.world));
    RemoteSet remote;
    Index index;
    const bool is_far = is_cached(options);
    if (is_far) {
        TUNE_TRY(opened, open_remote(options));
        remote = std::move(opened);
        index = remote.index;
    } else {
        TUNE_TRY(read, read_index(data_directory(options)));
        index = std::move(read);
    }
    if (Result<void> checked = check_shards(index); !checked) {
        Error error = std::move(checked).error();
        error.context = is_far ? options.remote : (data_directory(options) / "index.json").string();
        return error;
    }
    TUNE_TRY(selection, select_columns(index.shards.front(), options.columns));
    auto impl = std::make_unique<Impl>(std::move(options), topology, std::move(index),
                                       std::move(selection), std::move(remote));
    TUNE_TRY_VOID(impl->start());
    return std::unique_ptr<Dataset>(new Dataset(std::move(impl)));
}

Result<bool> Dataset::next(Batch& batch) {
    return impl_->next(batch);
}

const std::vector<ColumnInfo>& Dataset::columns() const {
    return impl_->columns();
}

std::int64_t Dataset::sample_count() const {
    return impl_->sample_count();
}

std::int64_t Dataset::batches_per_epoch() const {
    return impl_->batches_per_epoch();
}

std::int64_t Dataset::epoch() const {
    return impl_->epoch();
}

FetchFigures Dataset::fetch_figures() const {
    return impl_->fetch_figures();
}

DatasetState Dataset::state() const {
    return impl_->state();
}

Result<void> Dataset::load_state(const DatasetState& state) {
    return impl_->load_state(state);
}

void Dataset::start_epoch(std::int64_t epoch) {
    impl_->start_epoch(epoch);
}

}  // namespace tune::loader
