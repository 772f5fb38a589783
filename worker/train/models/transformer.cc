// torch.nn.TransformerEncoder (norm first, GELU) over the places of a sample, the mean of its
// outputs, and a linear head. A sample of numbers [places, ...] is projected, one of tokens is
// looked up; places are told apart by learnt positions.

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>

#include <cmath>

#include "worker/train/models/model.h"

namespace tune::train {
namespace {

constexpr const char* kEncoderDefinitions = R"(import torch
from torch import nn


class Transformer(nn.Module):
    """x: [batch, places] tokens where vocabulary > 0, else [batch, places, numbers]."""

    def __init__(self, places, numbers, vocabulary, width, heads, depth, outputs, dropout):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width) if vocabulary else nn.Linear(numbers, width)
        self.position = nn.Parameter(torch.zeros(places, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout, "gelu",
                                           batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, nn.LayerNorm(width),
                                             enable_nested_tensor=False)
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x) + self.position).mean(1))
)";

struct EncoderLayer {
    LayerNorm norm1;
    Linear in;   ///< queries, keys and values
    Linear out;  ///< after attention
    LayerNorm norm2;
    Linear wide;
    Linear narrow;
};

class Transformer final : public Model {
public:
    Transformer(const TrainConfig& config, const Inputs& inputs)
        : Model(config),
          heads_(config.heads),
          dropout_(config.dropout),
          places_(inputs.shape.front()),
          numbers_(inputs.row_elements() / places_),
          is_tokens_(inputs.is_tokens()) {
        const std::int64_t width = config.width;
        if (is_tokens_)
            embed_.weight = weights_.normal("embed.weight", {inputs.vocabulary, width}, 0.02);
        else
            embed_ = linear_layer(weights_, "embed", numbers_, width);
        position_ = weights_.normal("position", {places_, width}, 0.02);
        for (int i = 0; i < config.depth; ++i)
            add_layer("encoder.layers." + std::to_string(i) + ".", width);
        norm_ = layer_norm_layer(weights_, "encoder.norm", width);
        head_ = linear_layer(weights_, "head", width, inputs.outputs());
        python_definitions_ = kEncoderDefinitions;
        python_source_ = "Transformer(";
        for (const std::int64_t number :
             {places_, numbers_, inputs.vocabulary, width, heads_, config.depth, inputs.outputs()})
            python_source_ += std::to_string(number) + ", ";
        python_source_ += find_parameter("dropout")->get(config) + ")";
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        at::Tensor h =
            is_tokens_ ? at::embedding(embed_.weight, x) : embed_(x.view({-1, places_, numbers_}));
        h = h + position_;
        std::size_t draw = 0;
        for (const EncoderLayer& layer : layers_) {
            const at::Tensor mixed = self_attention(layer.in(layer.norm1(h)), heads_, false);
            h = h + dropped(layer.out(mixed), dropout_, pass, draw++);
            const at::Tensor wide =
                dropped(at::gelu(layer.wide(layer.norm2(h))), dropout_, pass, draw++);
            h = h + dropped(layer.narrow(wide), dropout_, pass, draw++);
        }
        return head_(norm_(h).mean(1));
    }

private:
    void add_layer(const std::string& name, std::int64_t width) {
        EncoderLayer layer;
        // nn.MultiheadAttention: Xavier for the projection in, zeros for both biases.
        const double xavier = std::sqrt(6.0 / static_cast<double>(4 * width));
        layer.in.weight =
            weights_.uniform(name + "self_attn.in_proj_weight", {3 * width, width}, xavier);
        layer.in.bias = weights_.constant(name + "self_attn.in_proj_bias", {3 * width}, 0.0);
        layer.out.weight = weights_.uniform(name + "self_attn.out_proj.weight", {width, width},
                                            1.0 / std::sqrt(static_cast<double>(width)));
        layer.out.bias = weights_.constant(name + "self_attn.out_proj.bias", {width}, 0.0);
        layer.wide = linear_layer(weights_, name + "linear1", width, 4 * width);
        layer.narrow = linear_layer(weights_, name + "linear2", 4 * width, width);
        layer.norm1 = layer_norm_layer(weights_, name + "norm1", width);
        layer.norm2 = layer_norm_layer(weights_, name + "norm2", width);
        layers_.push_back(std::move(layer));
    }

    std::int64_t heads_;
    double dropout_;
    std::int64_t places_;
    std::int64_t numbers_;
    bool is_tokens_;
    Linear embed_;
    at::Tensor position_;
    std::vector<EncoderLayer> layers_;
    LayerNorm norm_;
    Linear head_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_transformer(const TrainConfig& config, const Inputs& inputs) {
    return std::unique_ptr<Model>(std::make_unique<Transformer>(config, inputs));
}

}  // namespace tune::train
