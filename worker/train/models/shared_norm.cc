// Forward: each rank's count, mean and sum of squared differences are merged in double precision,
// as Chan et al. 1979 merge chunks. Backward: with x' = (x - mean) / deviation and means over the
// rows of all ranks,
//     dx = weight / deviation * (dy - mean(dy) - x' * mean(dy * x'))
// Gradients of weight and bias are this rank's own; the ranks' gradients are averaged afterwards.

#include "worker/train/models/shared_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tune::train {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.1;

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Dimensions over which a channel's numbers are added up.
std::vector<std::int64_t> all_but_channels(const at::Tensor& x) {
    std::vector<std::int64_t> dimensions = {0};
    for (std::int64_t i = 2; i < x.dim(); ++i) dimensions.push_back(i);
    return dimensions;
}

/// What is computed in: float32, or double where the model is.
at::ScalarType arithmetic_of(const at::Tensor& x) {
    return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// One number a channel, as `x` wants it for arithmetic.
at::Tensor of_channels(const at::Tensor& values, const at::Tensor& x) {
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.dim()), 1);
    sizes[1] = values.numel();
    return values.to(arithmetic_of(x)).view(sizes);
}

/// Over the rows of all ranks, double precision.
struct Statistics {
    at::Tensor mean;
    at::Tensor variance;
    at::Tensor count;
};

Statistics statistics_of(const at::Tensor& x, std::int64_t rows, RankSums& sums) {
    const std::int64_t channels = x.size(1);
    const at::TensorOptions options = x.options().dtype(at::kDouble);
    at::Tensor own = at::zeros({2 * channels + 1}, options);
    if (rows > 0) {
        const at::Tensor counted = x.narrow(0, 0, rows);
        const auto dimensions = all_but_channels(x);
        const std::int64_t count = counted.numel() / channels;
        const at::Tensor mean = counted.mean(dimensions);
        const at::Tensor squares =
            (counted - of_channels(mean, x)).square_().sum(dimensions).to(at::kDouble);
        const at::Tensor wide = mean.to(at::kDouble);
        const auto number = static_cast<double>(count);
        own = at::cat(
            {at::full({1}, number, options), wide * number, squares + wide.square() * number});
    }
    const at::Tensor all = sums.sum(own);
    Statistics result;
    result.count = all.narrow(0, 0, 1);
    result.mean = all.narrow(0, 1, channels) / result.count;
    result.variance =
        (all.narrow(0, 1 + channels, channels) / result.count - result.mean.square()).clamp_min(0);
    return result;
}

struct Normalise : torch::autograd::Function<Normalise> {
    static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                              const at::Tensor& weight, const at::Tensor& bias,
                              const Statistics& statistics, std::int64_t rows, RankSums* sums) {
        const at::Tensor scale = at::rsqrt(statistics.variance + kEpsilon);
        const at::Tensor normal =
            (x.to(arithmetic_of(x)) - of_channels(statistics.mean, x)).mul_(of_channels(scale, x));
        context->save_for_backward({normal, weight, scale, statistics.count});
        context->saved_data["rows"] = rows;
        context->saved_data["sums"] = reinterpret_cast<std::int64_t>(sums);
        return (normal * of_channels(weight, x)).add_(of_channels(bias, x)).to(x.scalar_type());
    }

    static variable_list backward(AutogradContext* context, const variable_list& outputs) {
        const variable_list saved = context->get_saved_variables();
        const at::Tensor& normal = saved[0];
        auto* sums = reinterpret_cast<RankSums*>(context->saved_data["sums"].toInt());
        const std::int64_t rows = context->saved_data["rows"].toInt();
        const auto dimensions = all_but_channels(normal);
        const std::int64_t channels = normal.size(1);
        const at::Tensor from = outputs[0].to(normal.scalar_type());
        const at::Tensor of_bias = from.sum(dimensions);
        const at::Tensor of_weight = (from * normal).sum(dimensions);
        const at::Tensor means =
            sums->sum(at::cat({of_bias, of_weight}).to(at::kDouble)) / saved[3];
        at::Tensor of_x = from - of_channels(means.narrow(0, 0, channels), normal) -
                          normal * of_channels(means.narrow(0, channels, channels), normal);
        of_x.mul_(of_channels(saved[1] * saved[2].to(normal.scalar_type()), normal));
        // Rows that do not count take nothing from the others.
        if (rows < of_x.size(0)) of_x.narrow(0, rows, of_x.size(0) - rows).zero_();
        return {of_x.to(outputs[0].scalar_type()), of_weight, of_bias, {}, {}, {}};
    }
};

}  // namespace

at::Tensor shared_batch_norm(const at::Tensor& x, const NormTensors& norm, std::int64_t rows,
                             RankSums& sums) {
    Statistics statistics;
    {
        const at::NoGradGuard no_grad;
        statistics = statistics_of(x.detach().to(arithmetic_of(x)), rows, sums);
        // As torch.nn: the variance that is kept is that of a sample.
        const at::Tensor factor = statistics.count / (statistics.count - 1.0).clamp_min(1.0);
        norm.running_mean.mul_(1.0 - kMomentum)
            .add_(statistics.mean.to(norm.running_mean.scalar_type()), kMomentum);
        norm.running_variance.mul_(1.0 - kMomentum)
            .add_((statistics.variance * factor).to(norm.running_variance.scalar_type()),
                  kMomentum);
    }
    return Normalise::apply(x, norm.weight, norm.bias, statistics, rows, &sums);
}

}  // namespace tune::train
