#pragma once
// A model with its optimizer: one step, one evaluation, its tensors. This header is all that the
// rest of the trainer sees of LibTorch.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/checkpoint/safetensors.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

/// Sums over samples, to be divided by how many there were.
struct Evaluation {
    double loss = 0.0;
    std::int64_t correct = 0;     ///< classification
    double absolute_error = 0.0;  ///< values, in the label's own unit
    std::int64_t count = 0;
};

/// Not thread-safe: one training thread. Every method that computes answers kResourceExhausted
/// when memory runs out and kInternalError with LibTorch's text for anything else it reports.
class Learner {
public:
    /// Weights are drawn from (config.seed), as torch.nn does it (uniform, 1 / sqrt(fan in)).
    /// Also sets LibTorch's number of threads. Errors: kInvalidParameterValue when the model
    /// cannot read samples of this shape.
    [[nodiscard]] static Result<std::unique_ptr<Learner>> make(const TrainConfig& config,
                                                               const Inputs& inputs);
    ~Learner();

    /// Optimizer step number `step` (0 is the first) at rate `lr`; dropout is drawn from (seed,
    /// step). Returns the mean loss of the batch before the update: cross entropy, or the squared
    /// error of standardised values.
    [[nodiscard]] Result<float> train(const Samples& samples, std::int64_t step, double lr);

    /// Adds the batch to `sums`; no dropout, nothing changes.
    [[nodiscard]] Result<void> evaluate(const Samples& samples, Evaluation& sums);

    /// The weights by the names of `python_source()`'s state_dict. Views: valid until the next
    /// step, save() or load().
    [[nodiscard]] std::vector<TensorBytes> weights() const;
    /// Weights ("model.NAME") and optimizer state ("optimizer.NAME.KIND").
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

private:
    class Impl;
    explicit Learner(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tune::train
