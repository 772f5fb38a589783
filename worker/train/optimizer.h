#pragma once
// AdamW and SGD, each as LibTorch's fused kernel over all parameters. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "worker/train/config/config.h"
#include "worker/train/model.h"

namespace tune::train {

/// Updates parameters in place. Same arithmetic as torch.optim.AdamW and torch.optim.SGD with
/// fused=True.
class Optimizer {
public:
    virtual ~Optimizer() = default;

    /// Step number `step` (0 is the first). `gradients` in the order of the parameters, contiguous.
    virtual void step(at::TensorList gradients, std::int64_t step, double lr) = 0;

    /// What it remembers between steps: "PARAMETER.exp_avg", "PARAMETER.exp_avg_sq" or
    /// "PARAMETER.momentum_buffer".
    [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
};

[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config,
                                                        const std::vector<NamedTensor>& parameters);

}  // namespace tune::train
