#pragma once
// BatchNorm over the rows of all ranks: what one rank would compute from the whole batch. LibTorch
// inside.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tune::train {

/// Adds tensors up over the ranks, wherever they lie.
class RankSums {
public:
    virtual ~RankSums() = default;
    /// The sum, on every rank the same bits. A collective, also within a backward pass. Throws what
    /// the transport throws.
    [[nodiscard]] virtual at::Tensor sum(const at::Tensor& own) = 0;
};

/// nn.BatchNorm2d in training, with its weight, bias and running statistics.
struct NormTensors {
    const at::Tensor& weight;
    const at::Tensor& bias;
    const at::Tensor& running_mean;
    const at::Tensor& running_variance;
};

/// `x` [rows, channels, ...]; only its first `rows` rows count, those behind them are fill-ins of
/// this rank, which has fewer than the others. A collective, and so is its backward pass. Cost: one
/// sum of two numbers a channel each way; the activations are kept in float32,
/// of a model in double precision as they are.
[[nodiscard]] at::Tensor shared_batch_norm(const at::Tensor& x, const NormTensors& norm,
                                           std::int64_t rows, RankSums& sums);

}  // namespace tune::train
