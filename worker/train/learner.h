#pragma once
// A model with its optimizer: one step, one evaluation, its tensors. This header is all that the
// rest of the trainer sees of LibTorch.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/collective/collective.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"
#include "worker/train/rules/noise_scale.h"
#include "worker/train/tasks/metrics.h"

namespace tune::train {

class Device;
class Training;

/// Not thread-safe: one training thread. Every method that computes answers kResourceExhausted
/// when memory runs out and kInternalError with LibTorch's text for anything else it reports.
class Learner {
public:
    /// Weights are drawn from (config.seed), as torch.nn does it (uniform, 1 / sqrt(fan in)).
    /// Also sets LibTorch's number of threads. Errors: kInvalidParameterValue when the model
    /// cannot read samples of this shape. With a `collective` of several ranks train() is a
    /// collective: gradients are those of the whole step's batch. `device`: where everything is
    /// computed; null: on the CPU. Both outlive the learner.
    [[nodiscard]] static Result<std::unique_ptr<Learner>> make(const TrainConfig& config,
                                                               const Inputs& inputs,
                                                               Collective* collective = nullptr,
                                                               Device* device = nullptr);
    ~Learner();

    /// Optimizer step number `step` (0 is the first) at rate `lr`; dropout is drawn from (seed,
    /// step). Returns the mean loss of the batch (of this rank's rows of it) before the update:
    /// by default cross entropy, or the squared error of standardised values.
    [[nodiscard]] Result<float> train(const Samples& samples, std::int64_t step, double lr);

    /// Into how many parts a batch is cut, whose gradients are added up: config.accumulate at
    /// first. When memory runs out during a step the number is doubled and the step done again, so
    /// that the batch, the rate and what is learnt stay the same (but for BatchNorm, which looks at
    /// one part at a time); only a single sample that does not fit is an error.
    [[nodiscard]] std::int64_t parts() const;
    void set_parts(std::int64_t parts);

    /// Before the first step of epoch number `epoch` (the first is 0), and after a resume: what
    /// config.freeze, unfreeze and lr_decay say. Errors: kInvalidParameterValue when nothing is
    /// left to train.
    [[nodiscard]] Result<void> begin_epoch(std::int64_t epoch, std::int64_t steps_per_epoch);

    /// Takes over weights by name from config.init_from. The last layer stays new with
    /// config.new_head, or when the file's has another shape. Returns a sentence about what was
    /// taken. Errors: kInvalidParameterValue naming what is missing or has another shape,
    /// kResourceDoesNotExist, kDataLoss.
    [[nodiscard]] Result<std::string> start_from_file();

    /// What the steps since the last call showed of the gradient's noise, one for each that
    /// config.noise_every asked for. Waits for those steps.
    [[nodiscard]] Result<std::vector<NoiseSample>> take_noise();

    /// As train(), without waiting for the loss where that takes a wait (on a device).
    [[nodiscard]] Result<void> train_later(const Samples& samples, std::int64_t step, double lr);
    /// The losses of the steps since the last call, in order. Waits for those steps.
    [[nodiscard]] Result<std::vector<double>> take_losses();
    /// Whether take_losses() costs nothing: the losses lie in this process's own memory.
    [[nodiscard]] bool losses_are_at_hand() const;

    /// Adds the batch to `sums`; no dropout, nothing changes.
    [[nodiscard]] Result<void> evaluate(const Samples& samples, Evaluation& sums);

    /// Every rank's buffers (running statistics) become those of rank 0. A collective.
    [[nodiscard]] Result<void> share_buffers(Collective& collective);

    /// Weights and buffers by the names of `python_source()`'s state_dict. Views: valid until the
    /// next step, save() or load().
    [[nodiscard]] std::vector<TensorBytes> weights() const;
    /// Weights and buffers ("model.NAME") and optimizer state ("optimizer.NAME.KIND").
    [[nodiscard]] std::vector<TensorBytes> state() const;
    /// Takes over what state() gave. Errors: kDataLoss naming a tensor that is missing or has
    /// another shape or type.
    [[nodiscard]] Result<void> load_state(const Safetensors& file);
    /// The same from a run with other settings of the optimizer: what that one did not keep (sgd
    /// without momentum keeps nothing) stays as it is at the start.
    [[nodiscard]] Result<void> continue_from(const Safetensors& file);

    [[nodiscard]] std::int64_t parameter_count() const;
    /// The same model in Python, e.g. "nn.Sequential(nn.Linear(64, 10))".
    [[nodiscard]] const std::string& python_source() const;
    /// The classes that it needs beyond torch.nn and torchvision; empty: none.
    [[nodiscard]] const std::string& python_definitions() const;

    /// The parts, for code that includes training.h.
    [[nodiscard]] Training& training();

private:
    class Impl;
    explicit Learner(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tune::train
