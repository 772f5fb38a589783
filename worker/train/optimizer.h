#pragma once
// AdamW and SGD, each as LibTorch's fused kernel over all parameters. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "worker/train/config/config.h"
#include "worker/train/models/weights.h"

namespace tune::train {

/// Float32, one number for each parameter.
inline constexpr const char* kSkippedSteps = "skipped_steps";

/// Parameters that are updated alike.
struct ParameterGroup {
    std::vector<std::size_t> members = {};  ///< places among the parameters
    double lr_factor = 1.0;                 ///< of the step's rate
    std::int64_t first_step = 0;            ///< since when they are updated
};

/// Updates parameters in place. Same arithmetic as torch.optim.AdamW and torch.optim.SGD with
/// fused=True.
class Optimizer {
public:
    virtual ~Optimizer() = default;

    /// Who is updated from here on; at first all parameters as one group. A parameter in no group
    /// stays as it is, and what is remembered of it too.
    virtual void set_groups(std::vector<ParameterGroup> groups) = 0;
    [[nodiscard]] virtual const std::vector<ParameterGroup>& groups() const = 0;

    /// Sets what changes from step to step, for the next apply(). Step 0 is the first.
    virtual void prepare(std::int64_t step, double lr) = 0;
    /// One update. `gradients`, contiguous, in the order of the groups and their members. Where
    /// `found_inf` is defined and not 0 nothing changes (a float32 scalar on the parameters'
    /// device, so that nobody waits for it).
    virtual void apply(const std::vector<at::Tensor>& gradients, const at::Tensor& found_inf) = 0;

    void step(const std::vector<at::Tensor>& gradients, std::int64_t step, double lr) {
        prepare(step, lr);
        apply(gradients, {});
    }

    /// What it remembers between steps: "PARAMETER.exp_avg", "PARAMETER.exp_avg_sq" or
    /// "PARAMETER.momentum_buffer"; of AdamW in fp16 kSkippedSteps, too, since steps that are left
    /// out do not count for its corrections.
    [[nodiscard]] virtual std::vector<NamedTensor> state() const = 0;
};

/// The state lies where the parameters do.
[[nodiscard]] std::unique_ptr<Optimizer> make_optimizer(const TrainConfig& config,
                                                        const std::vector<NamedTensor>& parameters);

}  // namespace tune::train
