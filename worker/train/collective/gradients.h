#pragma once
// Gradients of one model over all ranks. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/collective/collective.h"

namespace tune::train {

/// The backward pass of a model whose copies train on several ranks: while the layers near the
/// input still compute theirs, the gradients of the layers near the output are on their way.
/// Buckets never change, so every step, also the first after a resume, adds numbers up in the same
/// order. One thread.
class Gradients {
public:
    virtual ~Gradients() = default;

    /// Gradients of `loss`, averaged over the ranks, in the order of the parameters; valid until
    /// the next call. `loss` comes from a forward pass of this step, on every rank. Errors:
    /// kTemporarilyUnavailable as in Collective; LibTorch's own errors are thrown.
    [[nodiscard]] virtual Result<std::vector<at::Tensor>> backward(const at::Tensor& loss) = 0;
    /// The same for a part of a step: adds to what the next backward() sends, sends nothing.
    virtual void accumulate(const at::Tensor& loss) = 0;
};

/// `parameters` are leaves that require gradients, the same ones on every rank; `names` are for
/// error messages. `collective` was made by meet() and outlives the result. Errors:
/// kInvalidParameterValue when the ranks have other parameters than rank 0.
[[nodiscard]] Result<std::unique_ptr<Gradients>> make_gradients(
    Collective& collective, const std::vector<at::Tensor>& parameters,
    const std::vector<std::string>& names);

}  // namespace tune::train
