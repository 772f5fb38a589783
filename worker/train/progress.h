#pragma once
// Where a training run stands between two steps. With the weights and the optimizer's state this
// is all that a checkpoint holds; what follows from here does not depend on what came before.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loader/dataset.h"
#include "worker/train/early_stopping.h"
#include "worker/train/recorder.h"
#include "worker/train/rules/noise_scale.h"

namespace tune::train {

/// An epoch (the first is 1) and the value of the metric that is watched.
struct RankedEpoch {
    std::int64_t epoch = 0;
    double value = 0.0;
};

/// Adds an epoch, later than all others, to the `count` best of them, best first; of equal ones
/// the earlier is better. `best_epoch` stays whatever its value, since rules may choose another one
/// than the values do.
void rank_epoch(std::vector<RankedEpoch>& epochs, RankedEpoch added, Mode mode, std::size_t count,
                std::int64_t best_epoch);

struct Progress {
    std::int64_t epoch = 0;      ///< whole epochs behind us, validation included
    bool epoch_trained = false;  ///< the next epoch's steps are done, its validation is not
    std::int64_t step = 0;       ///< optimizer steps; schedule and random numbers follow from it
    double loss_sum = 0.0;       ///< of the epoch so far, over samples
    std::int64_t loss_samples = 0;
    bool finite = true;  ///< no step's loss was NaN or infinite

    std::int64_t epoch_reported = 0;  ///< metrics up to here were given out
    std::int64_t step_reported = -1;
    std::vector<NamedValue> last_metrics = {};  ///< of the last epoch reported

    std::optional<double> best = {};  ///< of the metric that is watched
    std::int64_t best_epoch = 0;
    std::vector<RankedEpoch> best_epochs = {};  ///< best first; where several are kept
    StopReason stop_reason = StopReason::kNotStopped;

    std::optional<EarlyStopping::State> early_stopping = {};  ///< once it has checked
    std::int64_t parts = 0;            ///< into which a batch is cut; 0: as configured
    std::int64_t batch_size = 0;       ///< that was found; 0: as configured
    NoiseScale::State noise = {};      ///< of the gradient
    loader::DatasetState loader = {};  ///< of the train split

    [[nodiscard]] Json to_json() const;
    /// Errors: kDataLoss.
    [[nodiscard]] static Result<Progress> from_json(const Json& json);
};

}  // namespace tune::train
