#pragma once
// The networks. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/train/config/config.h"
#include "worker/train/inputs.h"

namespace tune::train {

struct NamedTensor {
    std::string name;
    at::Tensor tensor;
};

/// What a forward pass is for. Dropout happens when training, drawn from (seed, step).
struct Pass {
    bool training = false;
    std::uint64_t seed = 0;
    std::int64_t step = 0;
};

/// A feed-forward network: layers one after the other, numbered as in a torch.nn.Sequential, so
/// that its weights load there by name ("0.weight", "3.bias", ...).
class Model {
public:
    virtual ~Model() = default;

    /// `x` [batch, row elements] float32 -> [batch, outputs].
    [[nodiscard]] virtual at::Tensor forward(const at::Tensor& x, const Pass& pass) const = 0;

    /// Leaf tensors that require gradients, in the order of the layers.
    [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
    [[nodiscard]] const std::string& python_source() const { return python_source_; }

protected:
    /// Adds "LAYER.weight" of `shape` and "LAYER.bias" [shape[0]], drawn from (seed, position).
    void add_layer(int layer, std::vector<std::int64_t> shape, std::uint64_t seed);
    [[nodiscard]] const at::Tensor& weight(std::size_t layer) const {
        return parameters_[2 * layer].tensor;
    }
    [[nodiscard]] const at::Tensor& bias(std::size_t layer) const {
        return parameters_[2 * layer + 1].tensor;
    }
    /// `x` with a part of its elements dropped; `layer` tells the draws of one step apart.
    [[nodiscard]] static at::Tensor dropped(const at::Tensor& x, double drop, const Pass& pass,
                                            std::size_t layer);

    std::vector<NamedTensor> parameters_;
    std::string python_source_;
};

/// Errors: kInvalidParameterValue when the kind of model cannot read samples of this shape.
[[nodiscard]] Result<std::unique_ptr<Model>> make_model(const TrainConfig& config,
                                                        const Inputs& inputs);

}  // namespace tune::train
