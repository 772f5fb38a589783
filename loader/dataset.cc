// Dataset puts the parts together: it validates the options against the index, plans epochs, hands
// the order to a reader and saves or restores a position. Everything that decides the order is a
// field of the saved state or part of its digest of settings and data, so that a restored run
// continues with exactly the remaining samples or is refused.

#include "loader/dataset.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/text/counted.h"
#include "loader/batch_decoder.h"
#include "loader/batch_reader.h"
#include "loader/batch_slot.h"
#include "loader/decode/transformed_rows.h"
#include "loader/order_planner.h"
#include "loader/rows/row_set.h"
#include "loader/sample_access.h"

namespace tune::loader {
namespace {

constexpr std::int64_t kBatchesAheadDefault = 8;
constexpr std::int64_t kBatchesAheadMax = 4096;
constexpr int kThreadsMax = 256;
constexpr int kConnectionsMax = 256;

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
    if (options.sampling_granularity <= 0)
        return invalid_parameter("the sampling granularity must be positive");
    if (options.download_connections < 1 || options.download_connections > kConnectionsMax)
        return invalid_parameter("download_connections must lie in 1..256, it is " +
                                 std::to_string(options.download_connections));
    if (options.seed > (std::uint64_t{1} << 62))
        return invalid_parameter("the seed is larger than 2^62");
    return {};
}

std::int64_t batches_ahead(const DatasetOptions& options) {
    // Fewer slots than threads would leave threads without work.
    if (options.predownload == 0)
        return std::min<std::int64_t>(
            std::max<std::int64_t>(kBatchesAheadDefault, options.threads + 1), kBatchesAheadMax);
    const std::int64_t batches =
        (options.predownload + options.batch_size - 1) / options.batch_size;
    return std::clamp<std::int64_t>(batches, 1, kBatchesAheadMax);
}

}  // namespace

class Dataset::Impl {
public:
    Impl(DatasetOptions options, Topology topology, RowSet rows)
        : options_(std::move(options)),
          index_digest_(std::move(rows.catalogue.digest)),
          sample_count_(rows.catalogue.sample_count()),
          planner_(options_, topology, std::move(rows.streams), rows.catalogue.block_samples_max),
          pool_(std::make_shared<SlotPool>(std::move(rows.catalogue.columns),
                                           static_cast<std::size_t>(batches_ahead(options_) + 1),
                                           options_.adds_batches, options_.memory)),
          decoder_(std::move(rows.decoder)),
          supply_(std::move(rows.supply)),
          samples_(*decoder_, supply_.get()),
          settings_(planner_.default_settings()) {}

    [[nodiscard]] Result<void> start() {
        TUNE_TRY_VOID(planner_.check(settings_, 0));
        // Of the other batching methods an epoch's order would have to be worked out first.
        if (options_.batching == BatchingMethod::kRandom)
            TUNE_TRY_VOID(planner_.batches_per_epoch(settings_));
        restart();
        return {};
    }

    [[nodiscard]] bool wait_next(std::chrono::milliseconds time) {
        return has_failed_ || reader_->wait(time);
    }

    [[nodiscard]] Result<void> read(std::span<const std::int64_t> ids, Batch& batch) const {
        batch.reset();
        for (const std::int64_t id : ids)
            if (id < 0 || id >= sample_count_)
                return invalid_parameter("there is no sample " + std::to_string(id) +
                                         "; the data set has " + counted(sample_count_, "sample"));
        auto slot = std::make_shared<BatchSlot>(pool_->columns().size(), options_.memory);
        slot->epoch = position_.epoch;
        TUNE_TRY_VOID(take_supply());
        TUNE_TRY_VOID(samples_.read(ids, *slot));
        fill_batch(std::move(slot), batch);
        return {};
    }

    void expect_reads(std::vector<std::int64_t> ids) {
        if (take_supply()) samples_.expect(std::move(ids));
    }

    [[nodiscard]] Result<std::vector<std::int64_t>> remaining_ids(std::int64_t worker,
                                                                  std::int64_t workers) const {
        TUNE_TRY(plan, planner_.plan(settings_, position_, worker, workers));
        std::vector<std::int64_t> ids;
        std::vector<std::int64_t> scratch;
        for (std::size_t b = 0; b < plan->batch_count(); ++b) {
            const std::span<const std::int64_t> batch = plan->batch(b, scratch);
            ids.insert(ids.end(), batch.begin(), batch.end());
        }
        return ids;
    }

    [[nodiscard]] Result<bool> next(Batch& batch) {
        if (clock_.first_ns == 0) clock_.first_ns = now_ns();
        Result<bool> more = read_next(batch);
        clock_.last_ns = now_ns();
        clock_.samples += static_cast<std::int64_t>(batch.count);
        return more;
    }

    [[nodiscard]] const std::vector<ColumnInfo>& columns() const { return pool_->columns(); }
    [[nodiscard]] std::int64_t sample_count() const { return sample_count_; }
    [[nodiscard]] std::int64_t epoch_size() const { return planner_.epoch_size(); }
    [[nodiscard]] std::int64_t batches_per_epoch() const {
        return planner_.batches_per_epoch(settings_).value_or(0);
    }
    [[nodiscard]] std::int64_t epoch() const { return position_.epoch; }
    [[nodiscard]] FetchStats fetch_stats() const {
        return supply_ ? supply_->stats() : FetchStats{};
    }

    [[nodiscard]] StageStats stage_stats() const {
        const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-9; };
        const DecoderTimes times = decoder_->times();
        StageStats stats;
        stats.samples = clock_.samples;
        stats.threads = options_.threads;
        stats.elapsed_s = seconds(clock_.last_ns - clock_.first_ns);
        stats.fetch_wait_s = seconds(clock_.fetch_wait_ns);
        stats.decode_wait_s = seconds(clock_.decode_wait_ns);
        stats.decompress_s = times.decompress_s;
        stats.transform_s = times.transform_s;
        stats.read_s =
            std::max(0.0, seconds(clock_.fill_ns) - stats.decompress_s - stats.transform_s);
        stats.fetched_bytes = fetch_stats().bytes;
        return stats;
    }

    [[nodiscard]] DatasetState state() const {
        DatasetState state;
        state.epoch = position_.epoch;
        state.sample_in_epoch = position_.sample_in_epoch;
        state.num_canonical_nodes = settings_.num_canonical_nodes;
        state.shuffle_seed = settings_.seed;
        state.initial_physical_nodes = settings_.initial_physical_nodes;
        state.order = planner_.order_text(settings_);
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
        if (const std::string order = planner_.order_text(settings);
            !state.order.empty() && state.order != order)
            return invalid_parameter("the loader state was saved with the order '" + state.order +
                                     "', this data set is read with '" + order + "'");
        TUNE_TRY_VOID(planner_.check(settings, state.sample_in_epoch));
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
    [[nodiscard]] Result<bool> read_next(Batch& batch) {
        batch.reset();
        if (supply_ && is_supply_taken_.exchange(false)) has_failed_ = true;
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
        position_.sample_in_epoch += static_cast<std::int64_t>(batch.count) *
                                     planner_.topology().ranks() * options_.world.workers;
        return true;
    }

    /// Samples by number use the plans of the supply, so next() has to plan anew afterwards.
    [[nodiscard]] Result<void> take_supply() const {
        if (!supply_) return {};
        if (options_.threads > 0)
            return Error{Code::kInvalidState,
                         "samples of data that is fetched are read by number only where no thread "
                         "decodes ahead; open the data set with threads = 0"};
        is_supply_taken_ = true;
        return {};
    }

    /// A new reader at position_, because the settings its planner holds may have changed.
    void restart() {
        reader_.reset();
        has_failed_ = false;
        Planner planner = [this, settings = settings_](Position position) {
            return planner_.plan(settings, position, options_.world.worker, options_.world.workers);
        };
        if (options_.threads == 0)
            reader_ = std::make_unique<InlineReader>(pool_, *decoder_, std::move(planner), clock_,
                                                     supply_.get());
        else
            reader_ = std::make_unique<ThreadedReader>(pool_, *decoder_, std::move(planner),
                                                       options_.threads, clock_, supply_.get());
        reader_->seek(position_);
    }

    void fill_batch(std::shared_ptr<BatchSlot> slot, Batch& batch) const {
        batch.count = slot->ids.size();
        batch.sample_ids = slot->ids;
        batch.epoch = slot->epoch;
        for (std::size_t c = 0; c < slot->columns.size(); ++c) {
            const ColumnInfo& info = pool_->columns()[c];
            batch.columns.push_back({&info, slot->columns[c].data.data(),
                                     info.fixed ? nullptr : slot->columns[c].offsets.data(),
                                     info.has_mask ? slot->columns[c].valid.data() : nullptr});
        }
        batch.slot_ = std::move(slot);
    }

    const DatasetOptions options_;
    const std::string index_digest_;
    const std::int64_t sample_count_;
    const OrderPlanner planner_;
    std::shared_ptr<SlotPool> pool_;
    std::unique_ptr<BatchDecoder> decoder_;
    mutable std::atomic<bool> is_supply_taken_ = false;  // by samples_
    std::shared_ptr<BatchSupply> supply_;                // nullptr: the data is on this machine
    mutable SampleAccess samples_;
    StageClock clock_;
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
    TUNE_TRY(stored, open_rows(options));
    TUNE_TRY(rows, with_transforms(options, std::move(stored)));
    auto impl = std::make_unique<Impl>(std::move(options), topology, std::move(rows));
    TUNE_TRY_VOID(impl->start());
    return std::unique_ptr<Dataset>(new Dataset(std::move(impl)));
}

Result<bool> Dataset::next(Batch& batch) {
    return impl_->next(batch);
}

bool Dataset::wait_next(std::chrono::milliseconds time) {
    return impl_->wait_next(time);
}

Result<void> Dataset::read(std::span<const std::int64_t> ids, Batch& batch) const {
    return impl_->read(ids, batch);
}

void Dataset::expect_reads(std::vector<std::int64_t> ids) {
    impl_->expect_reads(std::move(ids));
}

Result<std::vector<std::int64_t>> Dataset::remaining_ids(std::int64_t worker,
                                                         std::int64_t workers) const {
    return impl_->remaining_ids(worker, workers);
}

const std::vector<ColumnInfo>& Dataset::columns() const {
    return impl_->columns();
}

std::int64_t Dataset::sample_count() const {
    return impl_->sample_count();
}

std::int64_t Dataset::epoch_size() const {
    return impl_->epoch_size();
}

std::int64_t Dataset::batches_per_epoch() const {
    return impl_->batches_per_epoch();
}

std::int64_t Dataset::epoch() const {
    return impl_->epoch();
}

StageStats Dataset::stage_stats() const {
    return impl_->stage_stats();
}

FetchStats Dataset::fetch_stats() const {
    return impl_->fetch_stats();
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
