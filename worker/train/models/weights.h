#pragma once
// The tensors of a model while it is built, and what its weights start as. LibTorch inside.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tune::train {

struct NamedTensor {
    std::string name;
    at::Tensor tensor;
};

/// Makes and keeps named tensors. Values are drawn from (seed, place among the parameters), never
/// from a global generator. All are float32 on the CPU.
class Weights {
public:
    explicit Weights(std::uint64_t seed) : seed_(seed) {}

    /// Parameters: leaves that require gradients. Uniform in [-bound, bound); normal with mean 0;
    /// or all the same.
    at::Tensor uniform(std::string name, const std::vector<std::int64_t>& shape, double bound);
    at::Tensor normal(std::string name, const std::vector<std::int64_t>& shape, double deviation);
    at::Tensor constant(std::string name, const std::vector<std::int64_t>& shape, double value);

    /// What a model keeps besides parameters, e.g. running statistics.
    at::Tensor buffer(std::string name, const std::vector<std::int64_t>& shape, double value);
    /// An int64 number that starts at 0.
    at::Tensor counter(std::string name);

    /// Tensors that come from elsewhere, e.g. a TorchScript module's.
    void add_parameter(std::string name, at::Tensor tensor);
    void add_buffer(std::string name, at::Tensor tensor);

    [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
    [[nodiscard]] const std::vector<NamedTensor>& buffers() const { return buffers_; }

private:
    const std::uint64_t seed_;
    std::vector<NamedTensor> parameters_;
    std::vector<NamedTensor> buffers_;
};

}  // namespace tune::train
