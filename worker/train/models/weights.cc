#include "worker/train/models/weights.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "worker/train/philox.h"

namespace tune::train {

at::Tensor Weights::uniform(std::string name, const std::vector<std::int64_t>& shape,
                            double bound) {
    at::Tensor tensor = at::empty(shape, at::kFloat);
    const auto high = static_cast<float>(bound);
    const Stream stream{.seed = seed_, .purpose = static_cast<std::uint32_t>(parameters_.size())};
    fill_uniform(tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()), stream,
                 -high, high);
    add_parameter(std::move(name), tensor);
    return tensor;
}

at::Tensor Weights::normal(std::string name, const std::vector<std::int64_t>& shape,
                           double deviation) {
    at::Tensor tensor = at::empty(shape, at::kFloat);
    const Stream stream{.seed = seed_, .purpose = static_cast<std::uint32_t>(parameters_.size())};
    fill_normal(tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel()), stream,
                static_cast<float>(deviation));
    add_parameter(std::move(name), tensor);
    return tensor;
}

at::Tensor Weights::constant(std::string name, const std::vector<std::int64_t>& shape,
                             double value) {
    at::Tensor tensor = at::full(shape, value, at::kFloat);
    add_parameter(std::move(name), tensor);
    return tensor;
}

at::Tensor Weights::buffer(std::string name, const std::vector<std::int64_t>& shape, double value) {
    buffers_.push_back({std::move(name), at::full(shape, value, at::kFloat)});
    return buffers_.back().tensor;
}

at::Tensor Weights::counter(std::string name) {
    buffers_.push_back({std::move(name), at::zeros({}, at::kLong)});
    return buffers_.back().tensor;
}

void Weights::add_parameter(std::string name, at::Tensor tensor) {
    tensor.requires_grad_();
    parameters_.push_back({std::move(name), std::move(tensor)});
}

void Weights::add_buffer(std::string name, at::Tensor tensor) {
    buffers_.push_back({std::move(name), std::move(tensor)});
}

}  // namespace tune::train
