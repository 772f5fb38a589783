// Results are new tensors: two leaves may have been handed one and the same gradient, which an
// in-place change would hit twice.

#include "worker/train/step/clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/clamp.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/stack.h>

namespace tune::train {

at::Tensor squared_norm(const std::vector<at::Tensor>& gradients) {
    const at::NoGradGuard no_grad;
    return at::stack(at::_foreach_norm(gradients)).square().sum();
}

std::vector<at::Tensor> clipped_by_norm(const std::vector<at::Tensor>& gradients, double limit) {
    const at::NoGradGuard no_grad;
    const at::Tensor norm = squared_norm(gradients).sqrt();
    const at::Tensor factor = at::clamp(at::reciprocal(norm.add(1e-6)).mul(limit), {}, 1.0);
    return at::_foreach_mul(gradients, factor);
}

std::vector<at::Tensor> clipped_by_value(const std::vector<at::Tensor>& gradients, double limit) {
    const at::NoGradGuard no_grad;
    return at::_foreach_clamp_max(at::_foreach_clamp_min(gradients, -limit), limit);
}

}  // namespace tune::train
