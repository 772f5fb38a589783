#pragma once
// Layers that several models share: tensors with the names, shapes and first values of torch.nn's
// modules. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "worker/train/models/shared_norm.h"
#include "worker/train/models/weights.h"

namespace tune::train {

/// Purposes of random numbers: parameters count from 0, dropout layers from here.
inline constexpr std::uint32_t kDropoutPurpose = 1u << 16;

/// What a forward pass is for. Dropout happens when training, drawn from (seed, step).
struct Pass {
    bool training = false;
    std::uint64_t seed = 0;
    std::int64_t step = 0;
    /// The same as an int64 scalar where the model computes elsewhere than on the CPU: what a
    /// captured graph reads.
    at::Tensor step_on_device = {};
    /// Row i of the batch is row `first_row + i * row_stride` of the step's: what is drawn for a
    /// sample does not depend on the number of ranks.
    std::int64_t first_row = 0;
    std::int64_t row_stride = 1;
    /// Of the batch, those that count: a rank that has fewer than the others fills in; -1: all.
    std::int64_t rows = -1;
    RankSums* sums = nullptr;  ///< where several ranks train
};

/// nn.Linear: `x` [..., in] -> [..., out].
struct Linear {
    at::Tensor weight;  ///< [out, in]
    at::Tensor bias;    ///< [out]
    [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};
/// Adds "NAME.weight" and "NAME.bias", drawn as nn.Linear does it.
[[nodiscard]] Linear linear_layer(Weights& weights, const std::string& name, std::int64_t in,
                                  std::int64_t out);

/// nn.Conv2d with a square kernel: `x` [batch, in, height, width].
struct Convolution {
    at::Tensor weight;  ///< [out, in, size, size]
    at::Tensor bias;    ///< [out], or undefined
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};

/// nn.BatchNorm2d, over the rows of all ranks. A frozen one (its weight requires no gradient) keeps
/// its statistics, also when training.
struct BatchNorm {
    at::Tensor weight;
    at::Tensor bias;
    at::Tensor mean;
    at::Tensor variance;
    at::Tensor batches;  ///< int64, how many the statistics have seen
    [[nodiscard]] at::Tensor operator()(const at::Tensor& x, const Pass& pass) const;
};
[[nodiscard]] BatchNorm batch_norm_layer(Weights& weights, const std::string& name,
                                         std::int64_t channels);

/// nn.LayerNorm over the last dimension.
struct LayerNorm {
    at::Tensor weight;
    at::Tensor bias;
    [[nodiscard]] at::Tensor operator()(const at::Tensor& x) const;
};
[[nodiscard]] LayerNorm layer_norm_layer(Weights& weights, const std::string& name,
                                         std::int64_t width);

/// Attention of each place of `qkv` [batch, places, 3 * width] to all others, or, when causal, to
/// those before it -> [batch, places, width].
[[nodiscard]] at::Tensor self_attention(const at::Tensor& qkv, std::int64_t heads, bool causal);

/// `x` [rows, ...] with a part of its elements dropped when training; `layer` tells the draws of
/// one step apart. The same elements on every device.
[[nodiscard]] at::Tensor dropped(const at::Tensor& x, double drop, const Pass& pass,
                                 std::size_t layer);

}  // namespace tune::train
