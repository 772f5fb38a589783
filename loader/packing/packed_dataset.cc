// A state names a place in the data set from which reading gives the same windows again, and how
// far the first of them was taken: no token that waits has to be kept in it.

#include "loader/packing/packed_dataset.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace tune::loader {
namespace {

constexpr std::int64_t kPackedLengthMax = std::int64_t{1} << 24;
constexpr std::int64_t kBatchTokensMax = std::int64_t{1} << 31;
constexpr std::int64_t kWindowMax = std::int64_t{1} << 20;

template <class F>
bool with_integer(Dtype dtype, F f) {
    switch (dtype) {
        case Dtype::kUint8: f(std::uint8_t{}); return true;
        case Dtype::kInt8: f(std::int8_t{}); return true;
        case Dtype::kUint16: f(std::uint16_t{}); return true;
        case Dtype::kInt16: f(std::int16_t{}); return true;
        case Dtype::kUint32: f(std::uint32_t{}); return true;
        case Dtype::kInt32: f(std::int32_t{}); return true;
        case Dtype::kUint64: f(std::uint64_t{}); return true;
        case Dtype::kInt64: f(std::int64_t{}); return true;
        default: return false;
    }
}

Result<void> check_options(const TokenPackOptions& options) {
    const auto check = [](const char* name, std::int64_t value, std::int64_t max) -> Result<void> {
        if (value >= 1 && value <= max) return {};
        return invalid_parameter(std::string("packing: ") + name + " must lie in 1.." +
                                 std::to_string(max) + ", it is " + std::to_string(value));
    };
    TUNE_TRY_VOID(check("length", options.length, kPackedLengthMax));
    TUNE_TRY_VOID(check("batch_size", options.batch_size, kBatchTokensMax / options.length));
    TUNE_TRY_VOID(check("window", options.window, kWindowMax));
    if (options.column.empty()) return invalid_parameter("packing: name the column of tokens");
    return {};
}

std::string signature_of(const TokenPackOptions& options, const World& world) {
    std::string text = options.packing == Packing::kConcat ? "concat" : "best_fit";
    text += " column=" + options.column + " length=" + std::to_string(options.length) +
            " window=" + std::to_string(options.window) + " rank=" + std::to_string(world.rank) +
            "/" + std::to_string(world.size) + " end_token=";
    return text + (options.end_token ? std::to_string(*options.end_token) : "none");
}

}  // namespace

Json PackedState::to_json() const {
    return {{"dataset", dataset.to_json()},
            {"documents", documents},
            {"sequences", sequences},
            {"offset", offset},
            {"packing", packing}};
}

Result<PackedState> PackedState::from_json(const Json& json) {
    if (!json.is_object() || !json.contains("dataset"))
        return invalid_parameter("a packing state must be a JSON object with 'dataset'");
    PackedState state;
    TUNE_TRY(dataset, DatasetState::from_json(json.at("dataset")));
    state.dataset = std::move(dataset);
    for (const auto& [name, field] :
         {std::pair("documents", &state.documents), std::pair("sequences", &state.sequences),
          std::pair("offset", &state.offset)}) {
        const auto found = json.find(name);
        if (found == json.end() || !found->is_number_integer() || *found < 0 ||
            *found > (std::int64_t{1} << 62))
            return invalid_parameter(std::string("the packing state has no whole number '") + name +
                                     "' from 0 on");
        *field = found->get<std::int64_t>();
    }
    const auto packing = json.find("packing");
    if (packing == json.end() || !packing->is_string())
        return invalid_parameter("the packing state has no text 'packing'");
    state.packing = packing->get<std::string>();
    return state;
}

Result<std::unique_ptr<PackedDataset>> PackedDataset::open(DatasetOptions options,
                                                           TokenPackOptions packing) {
    TUNE_TRY_VOID(check_options(packing));
    options.batch_size = packing.window;
    options.columns = {packing.column};
    options.drop_last = false;
    const std::string signature = signature_of(packing, options.world);
    TUNE_TRY(dataset, Dataset::open(std::move(options)));
    const ColumnInfo& column = dataset->columns().front();
    std::unique_ptr<PackedDataset> made(new PackedDataset(std::move(dataset), std::move(packing)));
    made->signature_ = signature;
    made->dtype_ = column.dtype;
    const auto refuse = [&](const std::string& what) {
        return invalid_parameter("packing: column '" + column.name + "' (" + column.encoding +
                                 ") " + what);
    };
    const bool is_bytes = column.encoding == "bytes" || column.encoding == "str";
    if (made->options_.bytes_as && !is_bytes) return refuse("is no bytes: bytes_as is for those");
    if (is_bytes && !made->options_.bytes_as)
        return refuse("holds bytes: say with bytes_as what they are, e.g. uint16");
    if (is_bytes) made->dtype_ = *made->options_.bytes_as;
    if (!column.fixed && column.encoding.starts_with("ndarray")) {
        TUNE_TRY(array, parse_encoding(column.encoding));
        if (!array.dtype) return refuse("states no type of its elements");
        made->dtype_ = *array.dtype;
        made->array_ = std::move(array);
    } else if (!column.fixed && !is_bytes && !column.encoding.starts_with("list:")) {
        return refuse("holds no tokens; lists and arrays of integers, and bytes, can");
    }
    if (!with_integer(made->dtype_, [](auto) {}))
        return refuse("holds no integers, which tokens are");
    made->forget_window();
    made->state_ = made->here();
    return made;
}

PackedDataset::PackedDataset(std::unique_ptr<Dataset> dataset, TokenPackOptions packing)
    : dataset_(std::move(dataset)), options_(std::move(packing)) {}

void PackedDataset::forget_window() {
    window_begin_ = dataset_->state();
    tokens_.clear();
    begins_.assign(1, 0);
    ids_.clear();
    plan_.clear();
    planned_ = 0;
    document_ = offset_ = sequence_ = 0;
    epoch_is_over_ = false;
    pending_ = {};
    filled_ = 0;
    skip_documents_ = skip_sequences_ = skip_tokens_ = 0;
}

PackedState PackedDataset::here() const {
    PackedState state;
    state.dataset = window_begin_;
    const bool is_concat = options_.packing == Packing::kConcat;
    state.documents = is_concat ? document_ : 0;
    state.sequences = is_concat ? 0 : sequence_;
    state.offset = is_concat ? offset_ : 0;
    state.packing = signature_;
    return state;
}

Result<void> PackedDataset::load_state(const PackedState& state) {
    if (state.packing != signature_)
        return invalid_parameter("the state is of the packing '" + state.packing +
                                 "', and this one is '" + signature_ + "'");
    TUNE_TRY_VOID(dataset_->load_state(state.dataset));
    forget_window();
    skip_documents_ = state.documents;
    skip_sequences_ = state.sequences;
    skip_tokens_ = state.offset;
    state_ = state;
    return {};
}

void PackedDataset::start_epoch(std::int64_t epoch) {
    dataset_->start_epoch(epoch);
    forget_window();
    state_ = here();
}

Result<bool> PackedDataset::next(PackedBatch& batch) {
    while (true) {
        TUNE_TRY(step, next_within(batch, std::chrono::hours(1)));
        if (step != Step::kWaiting) return step == Step::kBatch;
    }
}

Result<PackedDataset::Step> PackedDataset::next_within(PackedBatch& batch,
                                                       std::chrono::milliseconds time) {
    while (true) {
        if (is_full()) return finish_batch(batch, false);
        if (!is_window_done()) {
            if (options_.packing == Packing::kConcat)
                take_concat();
            else
                take_best_fit();
            continue;
        }
        if (epoch_is_over_) {
            if (pending_.count > 0 && !options_.drop_last) return finish_batch(batch, true);
            forget_window();
            state_ = here();
            return Step::kEndOfEpoch;
        }
        TUNE_TRY(step, read_window(time));
        if (step == Step::kWaiting) return step;
        epoch_is_over_ = step == Step::kEndOfEpoch;
    }
}

Result<PackedDataset::Step> PackedDataset::read_window(std::chrono::milliseconds time) {
    if (!dataset_->wait_next(time)) return Step::kWaiting;
    DatasetState begin = dataset_->state();
    Batch documents;
    TUNE_TRY(more, dataset_->next(documents));
    if (!more) return Step::kEndOfEpoch;
    tokens_.clear();
    begins_.assign(1, 0);
    const Column& column = documents.columns.front();
    for (std::size_t row = 0; row < documents.count; ++row) {
        auto added = append_document(column, row);
        if (added) continue;
        // The window is read again by the next call.
        tokens_.clear();
        begins_.assign(1, 0);
        document_ = 0;
        plan_.clear();
        TUNE_TRY_VOID(dataset_->load_state(begin));
        return Error{added.error().code, "sample " + std::to_string(documents.sample_ids[row]) +
                                             ", column '" + options_.column +
                                             "': " + added.error().message};
    }
    const auto count = static_cast<std::int64_t>(documents.count);
    ids_.assign(documents.sample_ids.begin(), documents.sample_ids.end());
    pending_.epoch = documents.epoch;
    window_begin_ = std::move(begin);
    plan_.clear();
    planned_ = 0;
    sequence_ = 0;
    document_ = count;  // nothing of it is taken where the state is refused
    if (options_.packing == Packing::kConcat) {
        TUNE_TRY_VOID(skip_concat(count));
        return Step::kBatch;
    }
    std::vector<std::int64_t> sizes(documents.count);
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = begins_[i + 1] - begins_[i];
    plan_ = pack_best_fit(sizes, options_.length);
    const std::int64_t sequences = plan_.empty() ? 0 : plan_.back().sequence + 1;
    if (skip_sequences_ > sequences)
        return invalid_parameter("the packing state lies beyond its window: " +
                                 std::to_string(std::exchange(skip_sequences_, 0)) +
                                 " sequences of " + std::to_string(sequences));
    sequence_ = std::exchange(skip_sequences_, 0);
    while (planned_ < plan_.size() && plan_[planned_].sequence < sequence_) ++planned_;
    return Step::kBatch;
}

/// Goes to where a state says that the documents of the window were taken to. Errors:
/// kInvalidParameterValue when there is no such place.
Result<void> PackedDataset::skip_concat(std::int64_t count) {
    const std::int64_t documents = std::exchange(skip_documents_, 0);
    const std::int64_t offset = std::exchange(skip_tokens_, 0);
    const auto at = static_cast<std::size_t>(std::min(documents, count));
    const std::int64_t tokens = documents < count ? begins_[at + 1] - begins_[at] : 0;
    if (documents > count || offset > tokens)
        return invalid_parameter("the packing state lies beyond its window: token " +
                                 std::to_string(offset) + " of document " +
                                 std::to_string(documents) + " of " + std::to_string(count));
    document_ = documents;
    offset_ = offset;
    return {};
}

Result<void> PackedDataset::append_document(const Column& column, std::size_t row) {
    std::span<const std::byte> bytes = column.sample(row);
    if (array_) {
        TUNE_TRY(array, decode_array(*array_, bytes));
        bytes = array.bytes;
    }
    const std::size_t element = dtype_bytes(dtype_);
    if (bytes.size() % element != 0)
        return Error{Code::kDataLoss, std::to_string(bytes.size()) +
                                          " bytes are no whole number of tokens of " +
                                          std::to_string(element) + " bytes"};
    const std::size_t count = bytes.size() / element;
    const std::size_t begin = tokens_.size();
    tokens_.resize(begin + count);
    static_cast<void>(with_integer(dtype_, [&]<class T>(T) {
        for (std::size_t i = 0; i < count; ++i) {
            T token;
            std::memcpy(&token, bytes.data() + i * sizeof token, sizeof token);
            tokens_[begin + i] = static_cast<std::int64_t>(token);
        }
    }));
    if (options_.end_token) tokens_.push_back(*options_.end_token);
    begins_.push_back(static_cast<std::int64_t>(tokens_.size()));
    return {};
}

bool PackedDataset::is_window_done() const {
    return options_.packing == Packing::kConcat
               ? document_ + 1 >= static_cast<std::int64_t>(begins_.size())
               : planned_ >= plan_.size();
}

bool PackedDataset::is_full() const {
    return pending_.count == options_.batch_size && filled_ == 0;
}

/// Into the sequence that is being filled, or the first piece of a new one.
void PackedDataset::add_piece(const PackedPiece& piece) {
    if (pending_.tokens.empty()) {
        const auto size = static_cast<std::size_t>(options_.batch_size * options_.length);
        pending_.tokens.assign(size, options_.pad_token);
        pending_.segments.assign(size, 0);
        pending_.positions.assign(size, 0);
    }
    if (filled_ == 0) ++pending_.count;
    const auto at = static_cast<std::size_t>((pending_.count - 1) * options_.length + filled_);
    const auto count = static_cast<std::size_t>(piece.tokens);
    const auto from =
        static_cast<std::size_t>(begins_[static_cast<std::size_t>(piece.document)] + piece.offset);
    std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(from), count,
                pending_.tokens.begin() + static_cast<std::ptrdiff_t>(at));
    const std::int32_t segment = filled_ == 0 ? 1 : pending_.segments[at - 1] + 1;
    for (std::size_t i = 0; i < count; ++i) {
        pending_.segments[at + i] = segment;
        pending_.positions[at + i] = static_cast<std::int32_t>(i);
    }
    pending_.pieces.push_back({.sequence = pending_.count - 1,
                               .begin = filled_,
                               .tokens = piece.tokens,
                               .document = ids_[static_cast<std::size_t>(piece.document)],
                               .offset = piece.offset});
    filled_ += piece.tokens;
    if (filled_ == options_.length) filled_ = 0;
}

/// To the end of the batch or of the window.
void PackedDataset::take_concat() {
    while (!is_window_done() && !is_full()) {
        const auto i = static_cast<std::size_t>(document_);
        const std::int64_t left = begins_[i + 1] - begins_[i] - offset_;
        const std::int64_t taken = std::min(left, options_.length - filled_);
        if (taken > 0) add_piece({.tokens = taken, .document = document_, .offset = offset_});
        offset_ += taken;
        if (taken < left) continue;
        ++document_;
        offset_ = 0;
    }
}

/// One sequence.
void PackedDataset::take_best_fit() {
    do {
        add_piece(plan_[planned_++]);
    } while (planned_ < plan_.size() && plan_[planned_].sequence == plan_[planned_ - 1].sequence);
    filled_ = 0;  // the rest is padding
    ++sequence_;
}

PackedDataset::Step PackedDataset::finish_batch(PackedBatch& batch, bool at_end) {
    if (at_end) {
        const auto size = static_cast<std::size_t>(pending_.count * options_.length);
        pending_.tokens.resize(size);
        pending_.segments.resize(size);
        pending_.positions.resize(size);
    }
    pending_.length = options_.length;
    std::swap(batch, pending_);
    // The memory of the batch before is used again.
    pending_.count = 0;
    pending_.epoch = batch.epoch;
    pending_.tokens.clear();
    pending_.segments.clear();
    pending_.positions.clear();
    pending_.pieces.clear();
    filled_ = 0;
    state_ = here();
    return Step::kBatch;
}

}  // namespace tune::loader
