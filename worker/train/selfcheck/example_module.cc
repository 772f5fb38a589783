#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/sin.h>
#include <torch/csrc/jit/api/module.h>

#include "worker/train/selfcheck/examples.h"

namespace tune::train {

Result<void> write_example_module(const std::string& path) {
    // First values that need no generator.
    const auto waves = [](std::vector<std::int64_t> shape, double pace) {
        std::int64_t count = 1;
        for (const std::int64_t size : shape) count *= size;
        return at::sin(at::arange(count, at::kFloat) * pace).mul_(0.2).reshape(shape);
    };
    try {
        torch::jit::Module module("Example");
        module.register_parameter("hidden", waves({16, 64}, 0.37), /*is_buffer=*/false);
        module.register_parameter("shift", waves({16}, 0.91), /*is_buffer=*/false);
        module.register_parameter("head", waves({10, 16}, 0.53), /*is_buffer=*/false);
        module.define(R"(
def forward(self, x):
    h = torch.tanh(torch.matmul(x.flatten(1), self.hidden.t()) + self.shift)
    return torch.matmul(h, self.head.t())
)");
        module.save(path);
    } catch (const std::exception& error) {
        const std::string text = error.what();
        return Error{Code::kInternalError,
                     "LibTorch cannot write a module: " + text.substr(0, text.find('\n')), path};
    }
    return {};
}

}  // namespace tune::train
