// Layers are numbered as in a torch.nn.Sequential, dropout included, so that the weights load in
// Python by name.

#include <ATen/ops/relu.h>

#include "worker/train/models/model.h"

namespace tune::train {
namespace {

class Mlp final : public Model {
public:
    Mlp(const TrainConfig& config, const Inputs& inputs) : Model(config), dropout_(config.dropout) {
        std::int64_t in = inputs.row_elements();
        std::string source;
        const std::string dropout = "nn.Dropout(" + find_parameter("dropout")->get(config) + "), ";
        for (int i = 0; i < config.depth; ++i) {
            layers_.push_back(linear_layer(weights_, std::to_string(3 * i), in, config.width));
            source += "nn.Linear(" + std::to_string(in) + ", " + std::to_string(config.width) +
                      "), nn.ReLU(), " + dropout;
            in = config.width;
        }
        layers_.push_back(
            linear_layer(weights_, std::to_string(3 * config.depth), in, inputs.outputs()));
        python_source_ = "nn.Sequential(" + source + "nn.Linear(" + std::to_string(in) + ", " +
                         std::to_string(inputs.outputs()) + "))";
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        at::Tensor h = x;
        for (std::size_t i = 0; i + 1 < layers_.size(); ++i)
            h = dropped(at::relu(layers_[i](h)), dropout_, pass, i);
        return layers_.back()(h);
    }

private:
    double dropout_;
    std::vector<Linear> layers_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_mlp(const TrainConfig& config, const Inputs& inputs) {
    return std::unique_ptr<Model>(std::make_unique<Mlp>(config, inputs));
}

}  // namespace tune::train
