#pragma once
// What happens to gradients between the backward pass and the update. Everything stays on the
// device; nobody waits for a number. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <vector>

namespace tune::train {

/// Sum of the squares of all gradients, a float32 scalar on their device.
[[nodiscard]] at::Tensor squared_norm(const std::vector<at::Tensor>& gradients);

/// torch.nn.utils.clip_grad_norm_: scaled by min(1, limit / (norm + 1e-6)).
[[nodiscard]] std::vector<at::Tensor> clipped_by_norm(const std::vector<at::Tensor>& gradients,
                                                      double limit);
/// torch.nn.utils.clip_grad_value_: each number in [-limit, limit].
[[nodiscard]] std::vector<at::Tensor> clipped_by_value(const std::vector<at::Tensor>& gradients,
                                                       double limit);

}  // namespace tune::train
