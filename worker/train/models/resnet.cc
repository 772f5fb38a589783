// Residual networks (He et al. 2015, arXiv:1512.03385) with the layers, names and first values of
// torchvision's: stride in the 3x3 convolution of a bottleneck ("v1.5"), convolutions drawn from a
// normal distribution by fan-out. The `small` stem (3x3, no pooling) is the usual one for images of
// 32 pixels.

#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/relu.h>

#include <array>
#include <cmath>
#include <optional>

#include "worker/train/models/model.h"

namespace tune::train {
namespace {

struct Layout {
    std::array<int, 4> blocks;
    bool bottleneck;
};

Layout layout_of(ModelKind kind) {
    if (kind == ModelKind::kResnet18) return {{2, 2, 2, 2}, false};
    if (kind == ModelKind::kResnet34) return {{3, 4, 6, 3}, false};
    return {{3, 4, 6, 3}, true};
}

/// A convolution without bias, and the normalisation after it.
struct Unit {
    Convolution convolution;
    BatchNorm norm;
    at::Tensor operator()(const at::Tensor& x, const Pass& pass) const {
        return norm(convolution(x), pass);
    }
};

struct ResidualBlock {
    std::vector<Unit> units;
    std::optional<Unit> shortcut;

    at::Tensor operator()(const at::Tensor& x, const Pass& pass) const {
        at::Tensor h = x;
        for (std::size_t i = 0; i < units.size(); ++i) {
            h = units[i](h, pass);
            if (i + 1 < units.size()) h = at::relu(h);
        }
        return at::relu(h + (shortcut ? (*shortcut)(x, pass) : x));
    }
};

struct UnitShape {
    std::int64_t in;
    std::int64_t out;
    std::int64_t size;
    std::int64_t stride;
};

class Resnet final : public Model {
public:
    Resnet(const TrainConfig& config, const Inputs& inputs, const ImageShape& image)
        : Model(config),
          image_(image),
          small_stem_(config.stem == Stem::kSmall),
          dropout_(config.dropout) {
        const Layout layout = layout_of(config.model);
        stem_ = small_stem_ ? unit("conv1", "bn1", {image.channels, 64, 3, 1})
                            : unit("conv1", "bn1", {image.channels, 64, 7, 2});
        std::int64_t in = 64;
        for (int stage = 0; stage < 4; ++stage)
            for (int i = 0; i < layout.blocks[static_cast<std::size_t>(stage)]; ++i) {
                const std::string name =
                    "layer" + std::to_string(stage + 1) + "." + std::to_string(i) + ".";
                in = add_block(name, in, std::int64_t{64} << stage, stage > 0 && i == 0 ? 2 : 1,
                               layout.bottleneck);
            }
        features_ = in;
        head_ = linear_layer(weights_, "fc", in, inputs.outputs());
        describe(config, inputs);
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        at::Tensor h = at::relu(stem_(image_.view(x), pass));
        if (!small_stem_) h = at::max_pool2d(h, 3, /*stride=*/2, /*padding=*/1);
        for (const ResidualBlock& block : blocks_) h = block(h, pass);
        h = at::adaptive_avg_pool2d(h, {1, 1}).reshape({-1, features_});
        return head_(dropped(h, dropout_, pass, 0));
    }

private:
    Unit unit(const std::string& convolution, const std::string& norm, const UnitShape& shape) {
        const double deviation =
            std::sqrt(2.0 / static_cast<double>(shape.out * shape.size * shape.size));
        Unit unit;
        unit.convolution.weight = weights_.normal(
            convolution + ".weight", {shape.out, shape.in, shape.size, shape.size}, deviation);
        unit.convolution.stride = shape.stride;
        unit.convolution.padding = shape.size / 2;
        unit.norm = batch_norm_layer(weights_, norm, shape.out);
        return unit;
    }

    /// Returns the channels that come out.
    std::int64_t add_block(const std::string& name, std::int64_t in, std::int64_t width,
                           std::int64_t stride, bool bottleneck) {
        const std::int64_t out = bottleneck ? 4 * width : width;
        ResidualBlock block;
        const auto add = [&](int number, const UnitShape& shape) {
            const std::string n = std::to_string(number);
            block.units.push_back(unit(name + "conv" + n, name + "bn" + n, shape));
        };
        if (bottleneck) {
            add(1, {in, width, 1, 1});
            add(2, {width, width, 3, stride});
            add(3, {width, out, 1, 1});
        } else {
            add(1, {in, width, 3, stride});
            add(2, {width, width, 3, 1});
        }
        if (stride != 1 || in != out)
            block.shortcut =
                unit(name + "downsample.0", name + "downsample.1", {in, out, 1, stride});
        blocks_.push_back(std::move(block));
        return out;
    }

    void describe(const TrainConfig& config, const Inputs& inputs) {
        const std::string name = find_parameter("model")->get(config);
        const std::string outputs = std::to_string(inputs.outputs());
        if (image_.channels == 3 && !small_stem_) {
            python_source_ = "torchvision.models." + name + "(num_classes=" + outputs + ")";
            return;
        }
        python_source_ = name + "(" + std::to_string(image_.channels) + ", " + outputs + ")";
        const std::string channels =
            small_stem_ ? "channels, 64, 3, 1, 1" : "channels, 64, 7, 2, 3";
        python_definitions_ = "import torchvision\nfrom torch import nn\n\n\ndef " + name +
                              "(channels, outputs):\n    model = torchvision.models." + name +
                              "(num_classes=outputs)\n    model.conv1 = nn.Conv2d(" + channels +
                              ", bias=False)\n";
        if (small_stem_) python_definitions_ += "    model.maxpool = nn.Identity()\n";
        python_definitions_ += "    return model\n";
    }

    ImageShape image_;
    bool small_stem_;
    double dropout_;
    Unit stem_;
    std::vector<ResidualBlock> blocks_;
    std::int64_t features_ = 0;
    Linear head_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_resnet(const TrainConfig& config, const Inputs& inputs) {
    TUNE_TRY(image, image_shape(config, inputs));
    return std::unique_ptr<Model>(std::make_unique<Resnet>(config, inputs, image));
}

}  // namespace tune::train
