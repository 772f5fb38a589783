#pragma once
// Measures batch sizes before training begins.

#include <cstdint>

#include "base/result.h"
#include "worker/train/collective/collective.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

/// The batch size that config.find_batch_size asks for, from config.batch_size upwards. Each size
/// is tried in a child process with made-up samples, so that neither fragments nor a failure reach
/// the run; with `talks` a line for each goes to stderr. A collective: each rank tries its part of
/// a size, and the slowest and the fullest one count. Errors: kResourceExhausted when one sample
/// does not fit, kNotImplemented on a GPU, kInternalError when a child cannot be started or fails
/// otherwise. Cost: a second or so for each size.
[[nodiscard]] Result<std::int64_t> probe_batch_size(const TrainConfig& config, const Inputs& inputs,
                                                    Collective& collective, bool talks);

}  // namespace tune::train
