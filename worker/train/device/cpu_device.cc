#include <unistd.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "worker/train/device/device.h"

namespace tune::train {
namespace {

class EagerEngine final : public StepEngine {
public:
    void run(const std::function<void()>& step) override { step(); }
    void forget() override {}
};

class CpuDevice final : public Device {
public:
    at::Device torch_device() const override { return at::kCPU; }
    std::string name() const override { return "CPU"; }
    at::Tensor upload(const at::Tensor& host) override { return host; }
    DeviceMemory memory() const override {
        const std::int64_t page = sysconf(_SC_PAGESIZE);
        return {.free = sysconf(_SC_AVPHYS_PAGES) * page, .total = sysconf(_SC_PHYS_PAGES) * page};
    }
    std::unique_ptr<StepEngine> step_engine(int /*warm_up*/) override {
        return std::make_unique<EagerEngine>();
    }
    c10::intrusive_ptr<c10d::Backend> gradient_backend(
        const c10::intrusive_ptr<c10d::Store>& /*store*/, int /*rank*/, int /*size*/,
        std::chrono::milliseconds /*timeout*/) override {
        return {};
    }
};

}  // namespace

std::unique_ptr<Device> cpu_device() {
    return std::make_unique<CpuDevice>();
}

}  // namespace tune::train
