// Layers are numbered as in a torch.nn.Sequential, so that the weights load in Python by name.
// Random numbers are drawn from (seed, purpose, position) and, for dropout, from (seed, step):
// nothing depends on a global generator, and a resumed run draws what the interrupted one would
// have drawn.

#include "worker/train/model.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/relu.h>

#include <cmath>

#include "worker/train/philox.h"

namespace tune::train {
namespace {

/// Purposes of random numbers: parameters count from 0, dropout layers from here.
constexpr std::uint32_t kDropoutPurpose = 1u << 16;

std::string text(std::int64_t number) {
    return std::to_string(number);
}

class Mlp final : public Model {
public:
    Mlp(const TrainConfig& config, const Inputs& inputs) : dropout_(config.dropout) {
        const auto seed = static_cast<std::uint64_t>(config.seed);
        std::int64_t in = inputs.row_elements();
        std::string source;
        const std::string dropout = "nn.Dropout(" + find_parameter("dropout")->get(config) + "), ";
        for (int i = 0; i < config.depth; ++i) {
            add_layer(3 * i, {config.width, in}, seed);
            source +=
                "nn.Linear(" + text(in) + ", " + text(config.width) + "), nn.ReLU(), " + dropout;
            in = config.width;
        }
        add_layer(static_cast<int>(3 * config.depth), {inputs.outputs(), in}, seed);
        python_source_ = "nn.Sequential(" + source + "nn.Linear(" + text(in) + ", " +
                         text(inputs.outputs()) + "))";
        layers_ = static_cast<std::size_t>(config.depth) + 1;
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        at::Tensor h = x;
        for (std::size_t i = 0; i + 1 < layers_; ++i) {
            h = at::relu(at::linear(h, weight(i), bias(i)));
            if (pass.training && dropout_ > 0.0) h = dropped(h, dropout_, pass, i);
        }
        return at::linear(h, weight(layers_ - 1), bias(layers_ - 1));
    }

private:
    double dropout_;
    std::size_t layers_;
};

/// Height, width and channels of an image as it is stored.
struct ImageShape {
    std::int64_t height = 0;
    std::int64_t width = 0;
    std::int64_t channels = 1;
    bool channels_last = false;
};

Result<ImageShape> image_shape(const std::vector<std::int64_t>& shape) {
    const auto is_channels = [](std::int64_t n) { return n == 1 || n == 3 || n == 4; };
    if (shape.size() == 2) return ImageShape{.height = shape[0], .width = shape[1]};
    if (shape.size() == 3 && is_channels(shape[2]))
        return ImageShape{shape[0], shape[1], shape[2], true};
    if (shape.size() == 3 && is_channels(shape[0]))
        return ImageShape{shape[1], shape[2], shape[0], false};
    std::string sizes;
    for (const std::int64_t size : shape) sizes += (sizes.empty() ? "" : ",") + text(size);
    return Error{Code::kInvalidParameterValue,
                 "model cnn needs images: samples of shape H,W or H,W,C or C,H,W with 1, 3 or 4 "
                 "channels; these have shape " +
                     sizes + ". --shape H,W gives flat samples a shape; --model mlp needs none"};
}

class Cnn final : public Model {
public:
    Cnn(const TrainConfig& config, const Inputs& inputs, const ImageShape& image)
        : image_(image), dropout_(config.dropout) {
        const auto seed = static_cast<std::uint64_t>(config.seed);
        std::string source;
        std::int64_t channels = image.channels;
        std::int64_t out = config.width;
        std::int64_t height = image.height;
        std::int64_t width = image.width;
        int layer = 0;
        for (int i = 0; i < config.depth; ++i) {
            add_layer(layer, {out, channels, 3, 3}, seed);
            source +=
                "nn.Conv2d(" + text(channels) + ", " + text(out) + ", 3, padding=1), nn.ReLU(), ";
            layer += 2;
            channels = out;
            const bool pool = height >= 4 && width >= 4;
            pool_after_.push_back(pool);
            if (!pool) continue;
            source += "nn.MaxPool2d(2), ";
            layer += 1;
            height /= 2;
            width /= 2;
            out *= 2;
        }
        features_ = channels * height * width;
        add_layer(layer + 2, {inputs.outputs(), features_}, seed);
        python_source_ = "nn.Sequential(" + source + "nn.Flatten(), nn.Dropout(" +
                         find_parameter("dropout")->get(config) + "), nn.Linear(" +
                         text(features_) + ", " + text(inputs.outputs()) + "))";
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        const std::int64_t batch = x.size(0);
        at::Tensor h = image_.channels_last
                           ? x.view({batch, image_.height, image_.width, image_.channels})
                                 .permute({0, 3, 1, 2})
                           : x.view({batch, image_.channels, image_.height, image_.width});
        for (std::size_t i = 0; i < pool_after_.size(); ++i) {
            h = at::relu(at::conv2d(h, weight(i), bias(i), /*stride=*/1, /*padding=*/1));
            if (pool_after_[i]) h = at::max_pool2d(h, 2);
        }
        h = h.reshape({batch, features_});
        if (pass.training && dropout_ > 0.0) h = dropped(h, dropout_, pass, 0);
        return at::linear(h, weight(pool_after_.size()), bias(pool_after_.size()));
    }

private:
    ImageShape image_;
    double dropout_;
    std::vector<bool> pool_after_;
    std::int64_t features_ = 0;
};

}  // namespace

void Model::add_layer(int layer, std::vector<std::int64_t> shape, std::uint64_t seed) {
    std::int64_t fan_in = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
    const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in)));
    const auto add = [&](const char* kind, const std::vector<std::int64_t>& sizes) {
        at::Tensor tensor = at::empty(sizes, at::kFloat);
        const Stream stream{.seed = seed,
                            .purpose = static_cast<std::uint32_t>(parameters_.size())};
        fill_uniform(tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()),
                     stream, -bound, bound);
        tensor.requires_grad_();
        parameters_.push_back({std::to_string(layer) + "." + kind, std::move(tensor)});
    };
    add("weight", shape);
    add("bias", {shape[0]});
}

at::Tensor Model::dropped(const at::Tensor& x, double drop, const Pass& pass, std::size_t layer) {
    const at::Tensor mask = at::empty(x.sizes(), at::kFloat);
    const Stream stream{.seed = pass.seed,
                        .purpose = kDropoutPurpose + static_cast<std::uint32_t>(layer),
                        .moment = static_cast<std::uint32_t>(pass.step)};
    fill_dropout_mask(mask.mutable_data_ptr<float>(), static_cast<std::size_t>(mask.numel()),
                      stream, drop);
    return at::mul(x, mask);
}

Result<std::unique_ptr<Model>> make_model(const TrainConfig& config, const Inputs& inputs) {
    if (config.model == ModelKind::kMlp)
        return std::unique_ptr<Model>(std::make_unique<Mlp>(config, inputs));
    TUNE_TRY(image, image_shape(inputs.shape));
    return std::unique_ptr<Model>(std::make_unique<Cnn>(config, inputs, image));
}

}  // namespace tune::train
