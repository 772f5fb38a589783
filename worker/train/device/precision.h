#pragma once
// Mixed precision: which operations compute in 16 bits, and the scale that keeps gradients of fp16
// from vanishing. Both work on the CPU and on a GPU. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <vector>

#include "worker/train/config/config.h"

namespace tune::train {

/// While it lives, this thread's operations on devices of this type choose their types as
/// torch.autocast does: matrix products and convolutions in 16 bits, losses in 32. Weights stay
/// float32; their copies in 16 bits live as long as the outermost guard.
class Autocast {
public:
    Autocast(at::DeviceType device, Precision precision);
    ~Autocast();
    Autocast(const Autocast&) = delete;
    Autocast& operator=(const Autocast&) = delete;

private:
    const at::DeviceType device_;
    const bool was_enabled_;
    const at::ScalarType was_type_;
};

/// The scale of fp16, as torch.amp.GradScaler: losses times the scale; where a gradient is not
/// finite the step is left out and the scale halved; doubled after 2,000 good steps. Everything
/// stays on the device, so a step waits for nothing.
class GradScaler {
public:
    explicit GradScaler(at::Device device, double scale = 65536.0);

    [[nodiscard]] at::Tensor scaled(const at::Tensor& loss) const;
    /// Divides the gradients by the scale, one that stands there twice once. Afterwards
    /// found_infinite() is 1 when one of them is not finite, else 0; the fused optimizers take it
    /// and then leave parameters as they are.
    void unscale(const std::vector<at::Tensor>& gradients);
    [[nodiscard]] const at::Tensor& found_infinite() const { return found_infinite_; }
    /// The next step's scale. After the optimizer's step.
    void update();

    /// What a checkpoint holds: [] float32 and [] int32, on the device.
    [[nodiscard]] const at::Tensor& scale() const { return scale_; }
    [[nodiscard]] const at::Tensor& good_steps() const { return good_steps_; }

private:
    at::Tensor scale_;
    at::Tensor good_steps_;
    at::Tensor found_infinite_;
};

}  // namespace tune::train
