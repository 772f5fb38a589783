#pragma once
// What a network is to the rest of the trainer. LibTorch inside: included by few files.

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "worker/train/config/config.h"
#include "worker/train/inputs.h"
#include "worker/train/models/layers.h"
#include "worker/train/models/weights.h"

namespace tune::train {

/// A network with its weights, whose names are those of the same network in Python: a state_dict
/// goes both ways.
class Model {
public:
    virtual ~Model() = default;

    /// `x` is [batch, row elements] float32, or [batch, places] int64 for tokens. The result is
    /// [batch, outputs], or [batch, places, vocabulary] for the next token of each place. Sizes of
    /// the batch are -1 in views and not read from `x`, so that a trace of it takes any batch.
    [[nodiscard]] virtual at::Tensor forward(const at::Tensor& x, const Pass& pass) const = 0;

    /// Before a training pass, and outside of what is captured: what the model draws from
    /// LibTorch's own generators follows from (seed, step) from here on.
    virtual void before_pass(const Pass& /*pass*/, at::Device /*device*/) const {}

    /// Leaf tensors that require gradients unless frozen, in the order of the layers.
    [[nodiscard]] const std::vector<NamedTensor>& parameters() const {
        return weights_.parameters();
    }
    /// What else belongs to a state_dict, e.g. the running statistics of BatchNorm.
    [[nodiscard]] const std::vector<NamedTensor>& buffers() const { return weights_.buffers(); }

    /// The same model as a Python expression, and the classes it needs beyond torch.nn and
    /// torchvision (empty: none).
    [[nodiscard]] const std::string& python_source() const { return python_source_; }
    [[nodiscard]] const std::string& python_definitions() const { return python_definitions_; }

protected:
    explicit Model(const TrainConfig& config) : weights_(static_cast<std::uint64_t>(config.seed)) {}

    Weights weights_;
    std::string python_source_;
    std::string python_definitions_;
};

/// Errors: kInvalidParameterValue when the kind of model cannot read samples of this shape.
[[nodiscard]] Result<std::unique_ptr<Model>> make_model(const TrainConfig& config,
                                                        const Inputs& inputs);

/// Parameters and buffers of a TorchScript file by name, on the CPU. Errors: kInvalidParameterValue
/// when it is none.
[[nodiscard]] Result<std::vector<NamedTensor>> read_torchscript(const std::string& path);

/// Height, width and channels of an image as it is stored.
struct ImageShape {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 1;
    bool channels_last = false;

    /// `x` [batch, row elements] as [batch, channels, height, width]: a view.
    [[nodiscard]] at::Tensor view(const at::Tensor& x) const;
};

/// Errors: kInvalidParameterValue when samples are no images.
[[nodiscard]] Result<ImageShape> image_shape(const TrainConfig& config, const Inputs& inputs);

}  // namespace tune::train
