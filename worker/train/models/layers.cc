// Layers of the built-in models. The arithmetic is LibTorch's; what is ours is names, first values
// and what dropout draws: both are functions of (seed, tensor or layer, step), so a resumed run
// needs no generator state and another number of ranks draws the same.

#include "worker/train/models/layers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <cmath>

#include "worker/train/models/drawn_mask.h"
#include "worker/train/philox.h"

namespace tune::train {
at::Tensor Linear::operator()(const at::Tensor& x) const {
    return at::linear(x, weight, bias);
}

Linear linear_layer(Weights& weights, const std::string& name, std::int64_t in, std::int64_t out) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(in));
    Linear layer;
    layer.weight = weights.uniform(name + ".weight", {out, in}, bound);
    layer.bias = weights.uniform(name + ".bias", {out}, bound);
    return layer;
}

at::Tensor Convolution::operator()(const at::Tensor& x) const {
    return at::conv2d(x, weight, bias, stride, padding);
}

at::Tensor BatchNorm::operator()(const at::Tensor& x, const Pass& pass) const {
    const bool learns = pass.training && weight.requires_grad();
    if (learns) {
        const at::NoGradGuard no_grad;
        batches.add_(1);
    }
    if (learns && pass.sums != nullptr)
        return shared_batch_norm(x, {weight, bias, mean, variance},
                                 pass.rows < 0 ? x.size(0) : std::min(pass.rows, x.size(0)),
                                 *pass.sums);
    return at::batch_norm(x, weight, bias, mean, variance, learns, /*momentum=*/0.1, /*eps=*/1e-5,
                          /*cudnn_enabled=*/true);
}

BatchNorm batch_norm_layer(Weights& weights, const std::string& name, std::int64_t channels) {
    BatchNorm layer;
    layer.weight = weights.constant(name + ".weight", {channels}, 1.0);
    layer.bias = weights.constant(name + ".bias", {channels}, 0.0);
    layer.mean = weights.buffer(name + ".running_mean", {channels}, 0.0);
    layer.variance = weights.buffer(name + ".running_var", {channels}, 1.0);
    layer.batches = weights.counter(name + ".num_batches_tracked");
    return layer;
}

at::Tensor LayerNorm::operator()(const at::Tensor& x) const {
    return at::layer_norm(x, weight.sizes(), weight, bias, /*eps=*/1e-5);
}

LayerNorm layer_norm_layer(Weights& weights, const std::string& name, std::int64_t width) {
    LayerNorm layer;
    layer.weight = weights.constant(name + ".weight", {width}, 1.0);
    layer.bias = weights.constant(name + ".bias", {width}, 0.0);
    return layer;
}

at::Tensor self_attention(const at::Tensor& qkv, std::int64_t heads, bool causal) {
    const std::int64_t places = qkv.size(1);
    const std::int64_t width = qkv.size(2) / 3;
    const at::Tensor parts =
        qkv.view({-1, places, 3, heads, width / heads}).permute({2, 0, 3, 1, 4});
    const at::Tensor mixed =
        at::scaled_dot_product_attention(parts.select(0, 0), parts.select(0, 1), parts.select(0, 2),
                                         /*attn_mask=*/{}, /*dropout_p=*/0.0, causal);
    return mixed.transpose(1, 2).reshape({-1, places, width});
}

at::Tensor dropped(const at::Tensor& x, double drop, const Pass& pass, std::size_t layer) {
    if (!pass.training || drop <= 0.0) return x;
    const std::uint32_t purpose = kDropoutPurpose + static_cast<std::uint32_t>(layer);
    if (!x.is_cpu()) return at::mul(x, drawn_mask(x.sizes(), x.device(), drop, pass, purpose));
    const at::Tensor mask = at::empty(x.sizes(), at::kFloat);
    const Stream stream{
        .seed = pass.seed, .purpose = purpose, .moment = static_cast<std::uint32_t>(pass.step)};
    auto* out = mask.mutable_data_ptr<float>();
    const auto count = static_cast<std::size_t>(mask.numel());
    if (pass.row_stride == 1 && pass.first_row == 0) {
        fill_dropout_mask(out, count, stream, drop);
    } else {
        const auto rows = static_cast<std::size_t>(mask.size(0));
        const std::size_t row = count / rows;
        for (std::size_t i = 0; i < rows; ++i)
            fill_dropout_mask(out + i * row, row, stream, drop,
                              row * (static_cast<std::size_t>(pass.first_row) +
                                     i * static_cast<std::size_t>(pass.row_stride)));
    }
    return at::mul(x, mask);
}

}  // namespace tune::train
