#pragma once
// Transfer learning: weights of another model, by name. LibTorch inside.

#include <string>

#include "base/result.h"
#include "worker/train/config/config.h"
#include "worker/train/models/model.h"

namespace tune::train {

/// As Learner::start_from_file(). Throws what LibTorch throws.
[[nodiscard]] Result<std::string> start_from(Model& model, const TrainConfig& config);

}  // namespace tune::train
