#pragma once
// The parts of a training step, as tensors: forward and loss, gradients, update. Learner puts them
// together; code that computes elsewhere (on a device, over several ranks, in a captured graph)
// takes them apart. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>
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
    /// float32 or uint8 [rows, row elements], or tokens; int64 where the parameters are, before
    /// that perhaps as they are stored.
    at::Tensor x;
    at::Tensor target;  ///< as Task::loss wants it; of a language as `x`
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
    /// With `true`, the next step keeps the squared norm of each part's gradients as they come, or,
    /// with measures_ranks(), that of all of this rank's.
    virtual void measure_parts(bool wanted) = 0;
    /// The squared norms of the last step's parts, scalars.
    [[nodiscard]] virtual std::vector<at::Tensor> part_squares() const = 0;
    /// Whether a step's parts, for the noise, are the ranks' shares of it.
    [[nodiscard]] virtual bool measures_ranks() const { return false; }
    /// Forgets what there is of a step that failed; false when it cannot be done again, since other
    /// ranks already have a part of it.
    [[nodiscard]] virtual bool start_anew() = 0;
};

/// The squared norms of a step's gradients, on the device; see NoiseSample.
struct NoiseTensors {
    std::vector<at::Tensor> parts;        ///< of the gradients of the means of the parts
    std::vector<std::int64_t> part_rows;  ///< samples of each part
    at::Tensor whole;
};

/// How one step is done.
struct StepOptions {
    double lr = 0.0;
    std::int64_t parts = 1;  ///< into which the whole step's batch is cut
    Share share = {};        ///< of the ranks' batch; alone, nothing need be set
    bool measures_noise = false;
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
    /// The model's outputs, float32, or double in a model of double precision.
    [[nodiscard]] at::Tensor output(const BatchTensors& batch, const Pass& pass) const;
    /// By default the one described at BackwardPass.
    void set_backward(std::unique_ptr<BackwardPass> backward);
    /// What normalisation over the rows of all ranks needs.
    void set_rank_sums(std::unique_ptr<RankSums> sums) { rank_sums_ = std::move(sums); }
    /// Whether a forward pass is a collective: some layer looks at the rows of all ranks.
    [[nodiscard]] bool forward_is_shared() const;
    [[nodiscard]] BackwardPass& backward() { return *backward_; }

    /// The whole of a step: loss, gradients, update. Returns the loss before the update, a scalar
    /// on the device of the parameters; nobody waits for it. When it fails before the update,
    /// parameters and optimizer are what they were (running statistics of BatchNorm may not be). On
    /// a GPU, batches of one shape are captured as a graph after a few steps, unless ranks share
    /// gradients or the batch is cut.
    [[nodiscard]] Result<at::Tensor> step(const BatchTensors& batch, const Pass& pass,
                                          const StepOptions& options);
    /// Of the last step that measured it.
    [[nodiscard]] std::optional<NoiseTensors> take_noise();

    /// Which parameters are trained in epoch number `epoch` (the first is 0), which begins with
    /// step epoch * steps_per_epoch, and at which part of the rate. Returns whether that changed.
    bool begin_epoch(std::int64_t epoch, std::int64_t steps_per_epoch);

    /// The scale of fp16 and its count of good steps, for checkpoints; otherwise nothing.
    [[nodiscard]] std::vector<NamedTensor> scaler_state() const;

private:
    Training(const TrainConfig& config, const Inputs& inputs, std::unique_ptr<Model> model,
             Device* device);
    Result<at::Tensor> gradients_of(const BatchTensors& batch, const Pass& pass, double weight,
                                    std::vector<at::Tensor>& gradients);
    Result<at::Tensor> captured_gradients_of(const BatchTensors& batch, const Pass& pass,
                                             std::vector<at::Tensor>& gradients);
    /// Part by part.
    Result<at::Tensor> summed_gradients_of(const BatchTensors& batch, const Pass& pass,
                                           const StepOptions& options, std::int64_t parts,
                                           std::vector<at::Tensor>& gradients);
    void keep_noise(const std::vector<at::Tensor>& gradients, const StepOptions& options,
                    std::int64_t rows);
    void set_groups(std::vector<ParameterGroup> groups);
    Pass own_pass(const Pass& pass, const StepOptions& options, at::Device device);

    const TrainConfig config_;
    const Inputs inputs_;
    const at::ScalarType type_;  ///< of weights, outputs and losses
    std::unique_ptr<Model> model_;
    std::unique_ptr<Task> task_;
    std::unique_ptr<Optimizer> optimizer_;
    std::unique_ptr<BackwardPass> backward_;
    std::vector<at::Tensor> leaves_;
    Device* const device_;  ///< null: the CPU
    std::optional<GradScaler> scaler_;

    std::unique_ptr<RankSums> rank_sums_;
    at::Tensor step_on_device_;  ///< of a device that is not the CPU

    // Steps that are captured: what they read and what they give.
    std::unique_ptr<StepEngine> engine_;  ///< null: none are
    BatchTensors static_batch_;
    at::Tensor static_loss_;
    std::vector<at::Tensor> static_gradients_;
    bool groups_are_set_ = false;
    std::vector<std::int64_t> part_rows_;
    std::optional<NoiseTensors> noise_;
};

}  // namespace tune::train
