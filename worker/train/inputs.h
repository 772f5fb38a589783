#pragma once
// From columns of a data set to what a model reads: float32 features, standardised, or bytes of an
// image as they are stored, or tokens; and a label.

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loader/dataset.h"
#include "worker/train/collective/shared_batches.h"
#include "worker/train/config/config.h"

namespace tune::train {

/// Samples that are looked at, in random order, to count classes and to measure the mean and
/// deviation of each column. Data sets up to this size are measured exactly.
inline constexpr std::int64_t kMeasuredSamplesMax = 65'536;

/// One column of features: `elements` numbers of a sample, placed at `offset` of its row.
struct InputColumn {
    std::string name;
    std::int64_t elements = 1;
    std::int64_t offset = 0;
    double mean = 0.0;  ///< (value - mean) * scale is what the model sees
    double scale = 1.0;
};

/// How samples become tensors. A value; kept in checkpoints, so that a model is never used with
/// other numbers than those it was trained with.
struct Inputs {
    std::vector<InputColumn> columns;
    std::vector<std::int64_t> shape;  ///< of one sample; its product is row_elements()
    std::string label;                ///< empty: the label of a token is the next one
    std::int64_t classes = 0;         ///< 0: the label is a value, not a class
    double label_mean = 0.0;          ///< values only
    double label_scale = 1.0;
    std::int64_t vocabulary = 0;  ///< above 0: features are tokens below this
    /// Samples hold features as they are stored, for a device that makes numbers of them itself:
    /// one uint8 column, standardised there, or tokens in their own width. Not part of a
    /// checkpoint; see keep_stored().
    bool keeps_bytes = false;
    loader::Dtype stored = loader::Dtype::kUint8;  ///< of those

    [[nodiscard]] std::int64_t row_elements() const;
    [[nodiscard]] bool is_classification() const { return classes > 0; }
    [[nodiscard]] bool is_tokens() const { return vocabulary > 0; }
    [[nodiscard]] bool is_language() const { return label.empty(); }
    /// Tokens of a sample that a model reads: of n stored ones the last is only predicted.
    [[nodiscard]] std::int64_t places() const { return row_elements() - (is_language() ? 1 : 0); }
    /// Outputs of a model: the classes, one value, or a score for each token.
    [[nodiscard]] std::int64_t outputs() const {
        return classes > 0 ? classes : is_language() ? vocabulary : 1;
    }
    /// What one sample counts in sums over a batch: itself, or its tokens.
    [[nodiscard]] std::int64_t targets_of_sample() const { return is_language() ? places() : 1; }
    /// Columns to read from the data set.
    [[nodiscard]] std::vector<std::string> column_names() const;

    [[nodiscard]] Json to_json() const;
    /// Errors: kInvalidParameterValue.
    [[nodiscard]] static Result<Inputs> from_json(const Json& json);
};

/// Chooses label and features by the configuration, or by name and type. `classes` is 1 for a class
/// label whose classes are not counted yet, `vocabulary` 1 for tokens that are not. Errors:
/// kInvalidParameterValue that lists the columns.
[[nodiscard]] Result<Inputs> choose_inputs(const TrainConfig& config,
                                           const std::vector<loader::ColumnInfo>& columns);

/// Sets keeps_bytes where both splits hold the features in one column of a type that a device reads
/// as it is: less to copy there, and less to do for the host.
void keep_stored(const std::vector<loader::ColumnInfo>& train,
                 const std::vector<loader::ColumnInfo>& val, Inputs& inputs);

/// Reads up to kMeasuredSamplesMax samples of `dataset` (columns of `inputs`, from the beginning of
/// an epoch) and fills in means, scales and the numbers of classes and tokens. Errors: those of the
/// loader, kInvalidParameterValue for values that are not finite and for labels below 0.
[[nodiscard]] Result<void> measure_inputs(const TrainConfig& config, loader::Dataset& dataset,
                                          Inputs& inputs);

/// Memory at multiples of 64 bytes. Vectorised sums group numbers by their place in a cache line,
/// so without it the last bit of a result would depend on where the heap happened to put a batch.
template <class T>
struct CacheLineAllocator {
    using value_type = T;
    CacheLineAllocator() = default;
    template <class U>
    CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT: implicit by design
    T* allocate(std::size_t count) {
        return static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64}));
    }
    void deallocate(T* place, std::size_t) { ::operator delete (place, std::align_val_t{64}); }
    bool operator==(const CacheLineAllocator&) const = default;
};
template <class T>
using CacheLineVector = std::vector<T, CacheLineAllocator<T>>;

/// One batch as plain memory; the buffers are reused. Classes or values, never both, and neither
/// for a language.
struct Samples {
    std::int64_t count = 0;
    CacheLineVector<float> features = {};        ///< [count, row_elements], row-major; or
    CacheLineVector<std::uint8_t> bytes = {};    ///< the same as stored, numbers or tokens; or
    CacheLineVector<std::int64_t> tokens = {};   ///< each in [0, vocabulary)
    CacheLineVector<std::int64_t> classes = {};  ///< [count]
    CacheLineVector<float> values = {};          ///< [count], standardised
    /// Of the step's batch, where several ranks train; alone, all of it.
    Share share = {};
};

/// Errors: kInvalidParameterValue for a class outside of [0, inputs.classes), a token outside of
/// [0, inputs.vocabulary) or a label that is not finite, naming the sample.
[[nodiscard]] Result<void> read_samples(const Inputs& inputs, const loader::Batch& batch,
                                        Samples& samples);

}  // namespace tune::train
