// The format's decoder fills what is stored into memory of our own, and each transform writes its
// column's final place. The batch's buffer and ours change places for the time of the first step,
// so that columns without a transform are copied no more often than before, and a batch always
// keeps its own memory (which may be the consumer's).

#include "loader/decode/transformed_rows.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>
#include <variant>

#include "base/text/counted.h"
#include "loader/decode/image_transform.h"
#include "loader/decode/padding.h"
#include "loader/decode/task_crew.h"

namespace tune::loader {
namespace {

/// Samples of one piece of work: enough to be worth a hand-over, few enough that a batch has work
/// for every thread.
constexpr std::size_t kSamplesPerPiece = 8;

/// What one column goes through.
struct Step {
    std::size_t column = 0;
    ColumnInfo stored = {};
    std::variant<ImageTransform, Padding> transform;
    /// Of a padding: the column of its mask.
    std::size_t mask_column = 0;

    [[nodiscard]] const ColumnInfo& result() const {
        return std::visit([](const auto& one) -> const ColumnInfo& { return one.column(); },
                          transform);
    }
};

class TransformingDecoder final : public BatchDecoder {
public:
    TransformingDecoder(std::unique_ptr<BatchDecoder> inner, std::vector<Step> steps, int threads)
        : inner_(std::move(inner)), steps_(std::move(steps)), crew_(threads) {}

    [[nodiscard]] Result<void> fill(std::span<const std::int64_t> ids,
                                    BatchSlot& slot) const override {
        Spare spare = take_spare();
        swap_columns(slot, spare);
        Result<void> filled = inner_->fill(ids, slot);
        swap_columns(slot, spare);
        const auto begin = std::chrono::steady_clock::now();
        if (filled) filled = transform(slot, spare);
        transform_ns_ += std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
        const std::lock_guard lock(mutex_);
        spares_.push_back(std::move(spare));
        return filled;
    }

    void look_ahead(const EpochPlan::Rest& upcoming,
                    const EpochPlan::Rest& next_epoch) const override {
        inner_->look_ahead(upcoming, next_epoch);
    }

    [[nodiscard]] DecoderTimes times() const override {
        DecoderTimes times = inner_->times();
        times.transform_s += static_cast<double>(transform_ns_.load()) * 1e-9;
        return times;
    }

private:
    /// What is stored of the steps' columns, in their order.
    using Spare = std::vector<BatchSlot::ColumnBuffer>;

    [[nodiscard]] Spare take_spare() const {
        const std::lock_guard lock(mutex_);
        if (spares_.empty()) return Spare(steps_.size());
        Spare spare = std::move(spares_.back());
        spares_.pop_back();
        return spare;
    }

    void swap_columns(BatchSlot& slot, Spare& spare) const {
        for (std::size_t s = 0; s < steps_.size(); ++s)
            std::swap(slot.columns[steps_[s].column], spare[s]);
    }

    [[nodiscard]] Result<void> transform(BatchSlot& slot, const Spare& spare) const {
        const std::size_t count = slot.ids.size();
        try {
            for (std::size_t s = 0; s < steps_.size(); ++s) {
                BatchSlot::ColumnBuffer& buffer = slot.columns[steps_[s].column];
                buffer.data.resize(count * steps_[s].result().sample_bytes);
                buffer.offsets.clear();
                buffer.valid = spare[s].valid;
                if (const auto* padding = std::get_if<Padding>(&steps_[s].transform))
                    slot.columns[steps_[s].mask_column].data.resize(
                        count * padding->mask_column().sample_bytes);
            }
        } catch (const std::bad_alloc&) {
            return no_memory(count);
        }
        const std::size_t pieces = (count + kSamplesPerPiece - 1) / kSamplesPerPiece;
        std::vector<std::optional<Error>> errors(pieces);
        crew_.run(pieces, [&](std::size_t piece) {
            const std::size_t begin = piece * kSamplesPerPiece;
            const std::size_t end = std::min(begin + kSamplesPerPiece, count);
            try {
                for (std::size_t i = begin; i < end && !errors[piece]; ++i)
                    if (auto done = transform_sample(slot, spare, i); !done)
                        errors[piece] = std::move(done).error();
            } catch (const std::bad_alloc&) {
                errors[piece] = no_memory(count);
            }
        });
        for (std::optional<Error>& error : errors)  // that of the first sample, on every run
            if (error) return *std::move(error);
        return {};
    }

    [[nodiscard]] Result<void> transform_sample(BatchSlot& slot, const Spare& spare,
                                                std::size_t i) const {
        thread_local ImageMemory memory;
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            const Step& step = steps_[s];
            BatchSlot::ColumnBuffer& buffer = slot.columns[step.column];
            const std::size_t bytes = step.result().sample_bytes;
            std::byte* to = buffer.data.data() + i * bytes;
            const bool is_null = !buffer.valid.empty() && buffer.valid[i] == 0;
            const std::span<const std::byte> stored =
                is_null ? std::span<const std::byte>() : payload(step.stored, spare[s], i);
            Result<void> done = {};
            if (const auto* padding = std::get_if<Padding>(&step.transform)) {
                std::byte* mask = slot.columns[step.mask_column].data.data() +
                                  i * padding->mask_column().sample_bytes;
                done = padding->apply(stored, to, mask);
            } else if (is_null) {
                std::fill_n(to, bytes, std::byte{0});
            } else {
                done = std::get<ImageTransform>(step.transform)
                           .apply(stored, slot.epoch, slot.ids[i], to, memory);
            }
            if (done) continue;
            Error error = std::move(done).error();
            error.message = "sample " + std::to_string(slot.ids[i]) + ", column '" +
                            step.stored.name + "': " + error.message;
            return error;
        }
        return {};
    }

    static std::span<const std::byte> payload(const ColumnInfo& column,
                                              const BatchSlot::ColumnBuffer& buffer,
                                              std::size_t i) {
        const std::byte* data = buffer.data.data();
        if (column.fixed) return {data + i * column.sample_bytes, column.sample_bytes};
        return {data + buffer.offsets[i],
                static_cast<std::size_t>(buffer.offsets[i + 1] - buffer.offsets[i])};
    }

    static Error no_memory(std::size_t count) {
        return Error{
            Code::kResourceExhausted,
            "no memory for a batch of " + counted(static_cast<std::int64_t>(count), "sample")};
    }

    const std::unique_ptr<BatchDecoder> inner_;
    const std::vector<Step> steps_;
    mutable TaskCrew crew_;
    mutable std::atomic<std::int64_t> transform_ns_ = 0;
    mutable std::mutex mutex_;
    mutable std::vector<Spare> spares_;  // guarded by mutex_
};

}  // namespace

Result<RowSet> with_transforms(const DatasetOptions& options, RowSet rows) {
    std::vector<Step> steps;
    std::vector<ColumnInfo>& columns = rows.catalogue.columns;
    const std::size_t stored_count = columns.size();
    for (std::size_t c = 0; c < stored_count; ++c) {
        const ColumnOptions wanted = options_of(options, columns[c].name);
        if (wanted.image && wanted.pad)
            return invalid_parameter("column '" + columns[c].name +
                                     "' cannot be an image and padded");
        if (wanted.image) {
            TUNE_TRY(image, ImageTransform::make(*wanted.image, columns[c], options.seed));
            if (!options.decoded_cache.empty() && image.decodes_files()) {
                TUNE_TRY(shared, SharedPixels::open(
                                     options.decoded_cache,
                                     digest_of(rows.catalogue.digest + " " + image.decoding()),
                                     rows.catalogue.sample_count(), options.decoded_cache_limit));
                image.share(std::move(shared));
            }
            steps.push_back({c, columns[c], std::move(image)});
        } else if (wanted.pad) {
            TUNE_TRY(padding, Padding::make(*wanted.pad, columns[c]));
            columns.push_back(padding.mask_column());
            steps.push_back({c, columns[c], std::move(padding), columns.size() - 1});
        } else {
            continue;
        }
        columns[c] = steps.back().result();
    }
    for (std::size_t c = stored_count; c < columns.size(); ++c)
        for (std::size_t other = 0; other < c; ++other)
            if (columns[other].name == columns[c].name)
                return invalid_parameter("the mask of a padded column is called '" +
                                         columns[c].name + "', as another column is");
    if (!steps.empty())
        rows.decoder = std::make_unique<TransformingDecoder>(std::move(rows.decoder),
                                                             std::move(steps), options.threads);
    return rows;
}

}  // namespace tune::loader
