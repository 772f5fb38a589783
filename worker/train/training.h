#pragma once
// The parts of a training step, as tensors: forward and loss, gradients, update. Learner puts them
// together; code that computes elsewhere (on a device, over several ranks, in a captured graph)
// takes them apart. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "worker/train/config/config.h"
#include "worker/train/device/device.h"
#include "worker/train/device/precision.h"
#include "worker/train/inputs.h"
#include "worker/train/models/model.h"
#include "worker/train/optimizer.h"
#include "worker/train/tasks/task.h"

namespace tune::train {

/// One batch as the model and the task read it.
struct BatchTensors {
    at::Tensor x;       ///< float32 or uint8 [rows, row elements], or int64 tokens
    at::Tensor target;  ///< as Task::loss wants it
    std::int64_t rows = 0;

    /// Rows [first, first + count), as views.
    [[nodiscard]] BatchTensors slice(std::int64_t first, std::int64_t count) const;
};

/// The gradients of one step, from the losses of its parts. What is there unless ranks share them:
/// torch.autograd.grad, which hands gradients over instead of adding them to .grad.
class BackwardPass {
public:
    virtual ~BackwardPass() = default;
    /// Gradients of `loss` and of all that was accumulated, in the order of Training::leaves().
    /// Errors: those of a transport; LibTorch's own are thrown.
    [[nodiscard]] virtual Result<std::vector<at::Tensor>> backward(const at::Tensor& loss) = 0;
    /// The same for an earlier part of a step: adds to what the next backward() gives.
    virtual void accumulate(const at::Tensor& loss) = 0;
    /// Other parameters are trained from here on.
    virtual void set_leaves(const std::vector<at::Tensor>& leaves) = 0;
};

/// A model, its task and its optimizer. Throws what LibTorch throws; Learner turns that into
/// errors. One thread.
class Training {
public:
    /// `device` outlives the result; null: the CPU. Errors: kInvalidParameterValue when the model
    /// cannot read samples of this shape.
    [[nodiscard]] static Result<std::unique_ptr<Training>> make(const TrainConfig& config,
                                                                const Inputs& inputs,
                                                                Device* device = nullptr);

    [[nodiscard]] Model& model() { return *model_; }
    [[nodiscard]] const Model& model() const { return *model_; }
    [[nodiscard]] Optimizer& optimizer() { return *optimizer_; }
    [[nodiscard]] const Optimizer& optimizer() const { return *optimizer_; }
    [[nodiscard]] const Task& task() const { return *task_; }
    [[nodiscard]] const Inputs& inputs() const { return inputs_; }
    /// The parameters that are trained, in the order in which gradients are wanted.
    [[nodiscard]] const std::vector<at::Tensor>& leaves() const { return leaves_; }

    /// Views of the batch's memory on the CPU; valid while `samples` is not changed.
    [[nodiscard]] BatchTensors view(const Samples& samples) const;

    /// The batch where the parameters are.
    [[nodiscard]] BatchTensors placed(const BatchTensors& batch) const;

    /// Mean loss of the batch, recorded for a backward pass when gradients are on.
    [[nodiscard]] at::Tensor loss(const BatchTensors& batch, const Pass& pass) const;
    /// The model's outputs, float32.
    [[nodiscard]] at::Tensor output(const BatchTensors& batch, const Pass& pass) const;
    /// By default the one described at BackwardPass.
    void set_backward(std::unique_ptr<BackwardPass> backward);
    [[nodiscard]] BackwardPass& backward() { return *backward_; }

    /// The whole of a step: loss, gradients, update. Returns the loss before the update, a scalar
    /// on the device of the parameters; nobody waits for it. `weight`: what the batch counts among
    /// those of several ranks (Share::weight). On a GPU, batches of one shape are captured as a
    /// graph after a few steps, unless ranks share gradients.
    [[nodiscard]] Result<at::Tensor> step(const BatchTensors& batch, const Pass& pass, double lr,
                                          double weight = 1.0);

    /// The scale of fp16 and its count of good steps, for checkpoints; otherwise nothing.
    [[nodiscard]] std::vector<NamedTensor> scaler_state() const;

private:
    Training(const TrainConfig& config, const Inputs& inputs, std::unique_ptr<Model> model,
             Device* device);
    Result<at::Tensor> gradients_of(const BatchTensors& batch, const Pass& pass, double weight,
                                    std::vector<at::Tensor>& gradients);
    Result<at::Tensor> captured_gradients_of(const BatchTensors& batch, const Pass& pass,
                                             std::vector<at::Tensor>& gradients);

    const TrainConfig config_;
    const Inputs inputs_;
    std::unique_ptr<Model> model_;
    std::unique_ptr<Task> task_;
    std::unique_ptr<Optimizer> optimizer_;
    std::unique_ptr<BackwardPass> backward_;
    std::vector<at::Tensor> leaves_;
    Device* const device_;  ///< null: the CPU
    std::optional<GradScaler> scaler_;

    // Steps that are captured: what they read and what they give.
    std::unique_ptr<StepEngine> engine_;  ///< null: none are
    BatchTensors static_batch_;
    at::Tensor static_loss_;
    std::vector<at::Tensor> static_gradients_;
};

}  // namespace tune::train
