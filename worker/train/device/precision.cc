#include "worker/train/device/precision.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/zeros.h>

#include <set>

namespace tune::train {
namespace {

constexpr double kGrowth = 2.0;
constexpr double kBackoff = 0.5;
constexpr std::int64_t kGrowthSteps = 2000;

}  // namespace

Autocast::Autocast(at::DeviceType device, Precision precision)
    : device_(device),
      was_enabled_(at::autocast::is_autocast_enabled(device)),
      was_type_(at::autocast::get_autocast_dtype(device)) {
    at::autocast::set_autocast_enabled(device, has_16_bits(precision));
    if (has_16_bits(precision))
        at::autocast::set_autocast_dtype(
            device, precision == Precision::kBfloat16 ? at::kBFloat16 : at::kHalf);
    at::autocast::increment_nesting();
}

Autocast::~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_enabled_);
    at::autocast::set_autocast_dtype(device_, was_type_);
}

GradScaler::GradScaler(at::Device device, double scale)
    : scale_(at::full({}, scale, at::TensorOptions(device).dtype(at::kFloat))),
      good_steps_(at::zeros({}, at::TensorOptions(device).dtype(at::kInt))),
      found_infinite_(at::zeros({}, at::TensorOptions(device).dtype(at::kFloat))) {}

at::Tensor GradScaler::scaled(const at::Tensor& loss) const {
    return at::mul(loss, scale_);
}

void GradScaler::unscale(const std::vector<at::Tensor>& gradients) {
    const at::NoGradGuard no_grad;
    found_infinite_.zero_();
    // Autograd hands two leaves one and the same tensor where their gradients are equal (a + b).
    std::vector<at::Tensor> distinct;
    std::set<const void*> seen;
    for (const at::Tensor& gradient : gradients)
        if (seen.insert(gradient.const_data_ptr()).second) distinct.push_back(gradient);
    at::_amp_foreach_non_finite_check_and_unscale_(distinct, found_infinite_,
                                                   at::reciprocal(scale_));
}

void GradScaler::update() {
    const at::NoGradGuard no_grad;
    at::_amp_update_scale_(scale_, good_steps_, found_infinite_, kGrowth, kBackoff, kGrowthSteps);
}

}  // namespace tune::train
