#pragma once
// Dropout masks where the activations are. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "worker/train/models/layers.h"

namespace tune::train {

/// What fill_dropout_mask() draws for a tensor of these sizes, bit for bit, computed by tensor
/// operations on `device`: float32, 0 or 1 / (1 - drop). Row i is row `first_row + i * row_stride`
/// of the step's batch. The step is read from pass.step_on_device where that is defined, on the
/// device, so that a graph that was captured in one step draws anew in each. `purpose`: which
/// layer. Cost: about 70 passes over an eighth of the elements as int64.
[[nodiscard]] at::Tensor drawn_mask(at::IntArrayRef sizes, at::Device device, double drop,
                                    const Pass& pass, std::uint32_t purpose);

}  // namespace tune::train
