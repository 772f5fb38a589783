#pragma once
// Documents of a data set as sequences of one length, for training on tokens without padding.
//
//     TUNE_TRY(data, PackedDataset::open({.directory = "corpus", .shuffle = true},
//                                        {.column = "tokens", .length = 2048, .batch_size = 8}));
//     PackedBatch batch;
//     while (true) {
//         TUNE_TRY(more, data->next(batch));
//         if (!more) break;  // the epoch is over
//         // batch.tokens: [batch.count, 2048]
//     }

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loader/dataset.h"
#include "loader/format/mds/encoding.h"
#include "loader/packing/packing.h"

namespace tune::loader {

/// concat: documents one after the other, cut where a sequence is full. best_fit: whole documents,
/// a window of them at a time (pack_best_fit).
enum class Packing { kConcat, kBestFit };

struct TokenPackOptions {
    /// Of integers: a list, an array, a fixed column, or bytes that hold them.
    std::string column = {};
    std::int64_t length = 0;  ///< tokens of a sequence, 1 to 2^24
    Packing packing = Packing::kConcat;
    std::int64_t batch_size = 1;  ///< sequences
    /// The type of a column of bytes.
    std::optional<Dtype> bytes_as = {};
    /// Follows each document, also an empty one.
    std::optional<std::int64_t> end_token = {};
    std::int64_t pad_token = 0;
    /// Leave out what is left at the end of an epoch: of a last sequence that is not full (concat)
    /// and of a last batch.
    bool drop_last = false;
    /// Documents that are read together, and with best_fit packed together: a larger window leaves
    /// less padding. Some 10 windows are held in memory.
    std::int64_t window = 1024;
};

struct PackedBatch {
    std::int64_t count = 0;  ///< sequences
    std::int64_t length = 0;
    std::vector<std::int64_t> tokens = {};  ///< [count, length], row-major
    /// [count, length]: 1, 2, ... for the documents of a sequence, 0 for padding.
    std::vector<std::int32_t> segments = {};
    /// [count, length]: 0, 1, 2, ... within each piece of a document; 0 for padding.
    std::vector<std::int32_t> positions = {};
    /// In the order of sequences and within them; `document` is the sample's id.
    std::vector<PackedPiece> pieces = {};
    std::int64_t epoch = 0;
};

/// Exact to a token: what was given out is counted, not what was read. Of one rank; every rank
/// keeps its own.
struct PackedState {
    DatasetState dataset = {};   ///< before the documents that are not behind us
    std::int64_t documents = 0;  ///< of them that are (concat)
    std::int64_t sequences = 0;  ///< of their window that were given out (best_fit)
    std::int64_t offset = 0;     ///< tokens of the next document that were
    std::string packing = {};    ///< everything that decides the sequences

    [[nodiscard]] Json to_json() const;
    /// Errors: kInvalidParameterValue naming the field.
    [[nodiscard]] static Result<PackedState> from_json(const Json& json);
};

/// One consumer thread. The sequences are a function of the samples' order and the options, never
/// of threads or time.
class PackedDataset {
public:
    /// `options`: batch_size, columns and drop_last are not looked at. Errors: those of
    /// Dataset::open; kInvalidParameterValue for options out of range and a column that holds no
    /// tokens.
    [[nodiscard]] static Result<std::unique_ptr<PackedDataset>> open(DatasetOptions options,
                                                                     TokenPackOptions packing);

    /// The next batch, whose memory is used again; false at the end of an epoch. Errors: as
    /// Dataset::next; nothing is lost then, and the call may be made again.
    [[nodiscard]] Result<bool> next(PackedBatch& batch);

    enum class Step { kBatch, kEndOfEpoch, kWaiting };
    /// As next(), but waits for data at most `time` before it says kWaiting.
    [[nodiscard]] Result<Step> next_within(PackedBatch& batch, std::chrono::milliseconds time);

    /// After the last batch that was given out.
    [[nodiscard]] PackedState state() const { return state_; }
    /// Errors: as Dataset::load_state; kInvalidParameterValue for a state of another packing, and
    /// by the next call for one that lies beyond the documents it names.
    [[nodiscard]] Result<void> load_state(const PackedState& state);
    void start_epoch(std::int64_t epoch);

    [[nodiscard]] const Dataset& dataset() const { return *dataset_; }
    [[nodiscard]] std::int64_t epoch() const { return state_.dataset.epoch; }

private:
    PackedDataset(std::unique_ptr<Dataset> dataset, TokenPackOptions packing);
    Result<Step> read_window(std::chrono::milliseconds time);
    Result<void> append_document(const Column& column, std::size_t row);
    Result<void> skip_concat(std::int64_t count);
    void add_piece(const PackedPiece& piece);
    void take_concat();
    void take_best_fit();
    [[nodiscard]] bool is_window_done() const;
    [[nodiscard]] bool is_full() const;
    Step finish_batch(PackedBatch& batch, bool at_end);
    void forget_window();
    [[nodiscard]] PackedState here() const;

    std::unique_ptr<Dataset> dataset_;
    const TokenPackOptions options_;
    std::optional<Encoding> array_;  // of values with a header
    Dtype dtype_ = Dtype::kInt64;
    std::string signature_;

    // The window: documents one after the other, and how far they were taken.
    DatasetState window_begin_;
    std::vector<std::int64_t> tokens_;
    std::vector<std::int64_t> begins_;  // documents + 1
    std::vector<std::int64_t> ids_;
    std::vector<PackedPiece> plan_;  // best_fit
    std::size_t planned_ = 0;        // pieces of the plan that were taken
    std::int64_t document_ = 0;
    std::int64_t offset_ = 0;
    std::int64_t sequence_ = 0;
    bool epoch_is_over_ = false;

    PackedBatch pending_;
    std::int64_t filled_ = 0;  // tokens of the sequence that is being filled
    std::int64_t skip_documents_ = 0;
    std::int64_t skip_sequences_ = 0;
    std::int64_t skip_tokens_ = 0;
    PackedState state_;
};

}  // namespace tune::loader
