#pragma once
// One data set read by all ranks: which rows of each step's batch are this rank's.

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "loader/dataset.h"

namespace tune::train {

/// A rank's part of the batch of one step. The loader deals samples out in turn: row i of this
/// rank is row `first + i * stride` of the batch that one rank alone would read.
struct Share {
    std::int64_t first = 0;
    std::int64_t stride = 1;
    std::int64_t rows = 0;       ///< of this rank, without the repeats that even ranks out
    std::int64_t step_rows = 0;  ///< of all ranks

    /// What the mean over this rank's rows counts for in the mean over the ranks' means, which is
    /// then the mean over all rows of the step.
    [[nodiscard]] double weight() const {
        if (stride == 1) return 1.0;  // alone
        return static_cast<double>(rows * stride) / static_cast<double>(step_rows);
    }
};

/// A data set that a group of ranks reads. One thread.
class SharedBatches {
public:
    SharedBatches() = default;
    /// `options.batch_size` is that of all ranks together and divides among them. Errors: those of
    /// Dataset::open.
    [[nodiscard]] static Result<SharedBatches> open(loader::DatasetOptions options,
                                                    std::int64_t rank, std::int64_t ranks);

    /// The next batch of this rank and its share; false at the end of the epoch. A rank for which
    /// no row is left gets a repeated one, and a share of 0 rows. Errors: those of Dataset::next.
    [[nodiscard]] Result<bool> next(loader::Batch& batch, Share& share);
    /// As Dataset's.
    [[nodiscard]] Result<void> load_state(const loader::DatasetState& state);
    void start_epoch(std::int64_t epoch);

    [[nodiscard]] const loader::Dataset& dataset() const { return *dataset_; }

private:
    std::unique_ptr<loader::Dataset> dataset_;
    std::int64_t rank_ = 0;
    std::int64_t ranks_ = 1;
    std::int64_t step_rows_max_ = 0;
    std::int64_t position_ = 0;  ///< samples of the epoch that all ranks together were given
};

}  // namespace tune::train
