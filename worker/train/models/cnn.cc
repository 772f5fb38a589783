// Layers are numbered as in a torch.nn.Sequential, so that the weights load in Python by name.

#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <cmath>

#include "worker/train/models/model.h"

namespace tune::train {
namespace {

std::string text(std::int64_t number) {
    return std::to_string(number);
}

class Cnn final : public Model {
public:
    Cnn(const TrainConfig& config, const Inputs& inputs, const ImageShape& image)
        : Model(config), image_(image), dropout_(config.dropout) {
        std::string source;
        std::int64_t channels = image.channels;
        std::int64_t out = config.width;
        std::int64_t height = image.height;
        std::int64_t width = image.width;
        int layer = 0;
        for (int i = 0; i < config.depth; ++i) {
            add_convolution(text(layer), channels, out);
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
        head_ = linear_layer(weights_, text(layer + 2), features_, inputs.outputs());
        python_source_ = "nn.Sequential(" + source + "nn.Flatten(), nn.Dropout(" +
                         find_parameter("dropout")->get(config) + "), nn.Linear(" +
                         text(features_) + ", " + text(inputs.outputs()) + "))";
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        at::Tensor h = image_.view(x);
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            h = at::relu(layers_[i](h));
            if (pool_after_[i]) h = at::max_pool2d(h, 2);
        }
        return head_(dropped(h.reshape({-1, features_}), dropout_, pass, 0));
    }

private:
    void add_convolution(const std::string& name, std::int64_t in, std::int64_t out) {
        const double bound = 1.0 / std::sqrt(static_cast<double>(in * 9));
        Convolution layer;
        layer.padding = 1;
        layer.weight = weights_.uniform(name + ".weight", {out, in, 3, 3}, bound);
        layer.bias = weights_.uniform(name + ".bias", {out}, bound);
        layers_.push_back(layer);
    }

    ImageShape image_;
    double dropout_;
    std::vector<Convolution> layers_;
    std::vector<bool> pool_after_;
    std::int64_t features_ = 0;
    Linear head_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_cnn(const TrainConfig& config, const Inputs& inputs) {
    TUNE_TRY(image, image_shape(config, inputs));
    return std::unique_ptr<Model>(std::make_unique<Cnn>(config, inputs, image));
}

}  // namespace tune::train
