// The loader gives rank r of n the samples r, r + n, r + 2n, ... of what it deals out, and repeats
// samples at the end of an epoch so that every rank has as many. From the position in the epoch
// follows which rows are repeats, without a word between the ranks.

#include "worker/train/collective/shared_batches.h"

#include <algorithm>

namespace tune::train {

Result<SharedBatches> SharedBatches::open(loader::DatasetOptions options, std::int64_t rank,
                                          std::int64_t ranks) {
    SharedBatches batches;
    batches.rank_ = rank;
    batches.ranks_ = ranks;
    batches.step_rows_max_ = options.batch_size;
    options.batch_size /= ranks;
    options.world = {.rank = rank, .size = ranks};
    TUNE_TRY(dataset, loader::Dataset::open(std::move(options)));
    batches.dataset_ = std::move(dataset);
    return batches;
}

Result<bool> SharedBatches::next(loader::Batch& batch, Share& share) {
    TUNE_TRY(more, dataset_->next(batch));
    if (!more) {
        position_ = 0;
        return false;
    }
    const std::int64_t left = dataset_->epoch_size() - position_;
    const auto count = static_cast<std::int64_t>(batch.count);
    share.first = rank_;
    share.stride = ranks_;
    share.step_rows = std::min(step_rows_max_, left);
    share.rows =
        std::clamp<std::int64_t>((share.step_rows - rank_ + ranks_ - 1) / ranks_, 0, count);
    position_ += step_rows_max_;
    return true;
}

Result<void> SharedBatches::load_state(const loader::DatasetState& state) {
    // After the last step of an epoch the repeats that evened out the ranks of then are counted,
    // too: with fewer ranks that would lie beyond the epoch.
    loader::DatasetState within = state;
    within.sample_in_epoch = std::min(state.sample_in_epoch, dataset_->epoch_size());
    TUNE_TRY_VOID(dataset_->load_state(within));
    position_ = within.sample_in_epoch;
    return {};
}

void SharedBatches::start_epoch(std::int64_t epoch) {
    dataset_->start_epoch(epoch);
    position_ = 0;
}

}  // namespace tune::train
