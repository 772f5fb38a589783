// A decoder that predicts the next token at every place (Radford et al. 2019, "GPT-2"), with the
// names of the usual small implementations: wte, wpe, h.N.attn.c_attn, ... The output layer is the
// token embedding itself.

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>

#include <cmath>

#include "worker/train/models/model.h"

namespace tune::train {
namespace {

constexpr const char* kGptDefinitions = R"(import torch
from torch import nn
from torch.nn import functional as F


class GptBlock(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads = heads
        self.drop = nn.Dropout(dropout)
        self.ln_1 = nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width),
                                   "c_proj": nn.Linear(width, width)})
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width),
                                  "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for p in self.attn["c_attn"](self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.drop(self.attn["c_proj"](y))
        y = F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.drop(self.mlp["c_proj"](y))


class Gpt(nn.Module):
    """tokens [batch, places] -> scores [batch, places, vocabulary] of the next token."""

    def __init__(self, places, vocabulary, width, heads, depth, dropout):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(places, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList(GptBlock(width, heads, dropout) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.drop(self.wte(tokens) + self.wpe.weight[:tokens.shape[1]])
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)
)";

struct GptBlock {
    LayerNorm norm1;
    Linear in;
    Linear out;
    LayerNorm norm2;
    Linear wide;
    Linear narrow;
};

class Gpt final : public Model {
public:
    Gpt(const TrainConfig& config, const Inputs& inputs)
        : Model(config), heads_(config.heads), dropout_(config.dropout) {
        const std::int64_t width = config.width;
        const std::int64_t places = inputs.places();
        tokens_ = weights_.normal("wte.weight", {inputs.vocabulary, width}, kDeviation);
        positions_ = weights_.normal("wpe.weight", {places, width}, kDeviation);
        for (int i = 0; i < config.depth; ++i)
            add_block("h." + std::to_string(i) + ".", width, config.depth);
        norm_ = layer_norm_layer(weights_, "ln_f", width);
        python_definitions_ = kGptDefinitions;
        python_source_ = "Gpt(";
        for (const std::int64_t number : {places, inputs.vocabulary, width, heads_, config.depth})
            python_source_ += std::to_string(number) + ", ";
        python_source_ += find_parameter("dropout")->get(config) + ")";
    }

    at::Tensor forward(const at::Tensor& x, const Pass& pass) const override {
        std::size_t draw = 0;
        at::Tensor h = at::embedding(tokens_, x) + positions_.slice(0, 0, x.size(1));
        h = dropped(h, dropout_, pass, draw++);
        for (const GptBlock& block : blocks_) {
            const at::Tensor mixed = self_attention(block.in(block.norm1(h)), heads_, true);
            h = h + dropped(block.out(mixed), dropout_, pass, draw++);
            const at::Tensor wide = at::gelu(block.wide(block.norm2(h)), "tanh");
            h = h + dropped(block.narrow(wide), dropout_, pass, draw++);
        }
        return at::linear(norm_(h), tokens_);
    }

private:
    static constexpr double kDeviation = 0.02;

    Linear linear(const std::string& name, std::int64_t in, std::int64_t out, double deviation) {
        Linear layer;
        layer.weight = weights_.normal(name + ".weight", {out, in}, deviation);
        layer.bias = weights_.constant(name + ".bias", {out}, 0.0);
        return layer;
    }

    void add_block(const std::string& name, std::int64_t width, std::int64_t depth) {
        // What is added to the residual stream starts smaller the more often that happens.
        const double residual = kDeviation / std::sqrt(2.0 * static_cast<double>(depth));
        GptBlock block;
        block.norm1 = layer_norm_layer(weights_, name + "ln_1", width);
        block.in = linear(name + "attn.c_attn", width, 3 * width, kDeviation);
        block.out = linear(name + "attn.c_proj", width, width, residual);
        block.norm2 = layer_norm_layer(weights_, name + "ln_2", width);
        block.wide = linear(name + "mlp.c_fc", width, 4 * width, kDeviation);
        block.narrow = linear(name + "mlp.c_proj", 4 * width, width, residual);
        blocks_.push_back(std::move(block));
    }

    std::int64_t heads_;
    double dropout_;
    at::Tensor tokens_;
    at::Tensor positions_;
    std::vector<GptBlock> blocks_;
    LayerNorm norm_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_gpt(const TrainConfig& config, const Inputs& inputs) {
    return std::unique_ptr<Model>(std::make_unique<Gpt>(config, inputs));
}

}  // namespace tune::train
