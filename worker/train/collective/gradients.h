#pragma once
// Gradients of one model over all ranks. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "worker/train/collective/collective.h"
#include "worker/train/models/shared_norm.h"
#include "worker/train/training.h"

namespace tune::train {

/// Thrown out of a forward or backward pass in which another rank is gone: kTemporarilyUnavailable.
class RankLost : public std::runtime_error {
public:
    explicit RankLost(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
    [[nodiscard]] const Error& error() const { return error_; }

private:
    Error error_;
};

/// Sums over the ranks of `collective`, which outlives the result. Errors: kInvalidState when
/// meet() did not make it. Its sum() throws RankLost.
[[nodiscard]] Result<std::unique_ptr<RankSums>> make_rank_sums(Collective& collective);

/// The backward pass of a model whose copies train on several ranks: gradients are averaged over
/// them. While the layers near the input still compute theirs, those of the layers near the output
/// are on their way. Buckets never change but by set_leaves(), so every step, also the first after
/// a resume, adds numbers up in the same order. Every method but accumulate() is a collective.
///
/// `parameters` are leaves that require gradients, the same ones on every rank; `names` are for
/// error messages. `collective` was made by meet() and outlives the result. Errors:
/// kInvalidParameterValue when the ranks have other parameters than rank 0; of backward()
/// kTemporarilyUnavailable as in Collective.
[[nodiscard]] Result<std::unique_ptr<BackwardPass>> make_gradients(
    Collective& collective, const std::vector<at::Tensor>& parameters,
    const std::vector<std::string>& names);

}  // namespace tune::train
