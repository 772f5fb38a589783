#include "worker/train/device/cuda/nccl_backend.h"

#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

namespace tune::train {
namespace {

std::string version_text(std::uint64_t major, std::uint64_t minor, std::uint64_t patch) {
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> nccl_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                               int rank, int size,
                                               std::chrono::milliseconds timeout) {
    auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
    options->timeout = timeout;
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank, size, options);
}

std::string nccl_mismatch() {
    // LibTorch packs its version as major << 32 | minor << 16 | patch.
    const std::uint64_t loaded = torch::cuda::nccl::version();
    const std::string has = version_text(loaded >> 32, loaded >> 16 & 0xffff, loaded & 0xffff);
    const std::string wants = version_text(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH);
    if (has == wants) return {};
    return "LibTorch has NCCL " + has + ", this was compiled with the header of " + wants +
           "; build with the nccl.h of that LibTorch";
}

}  // namespace tune::train
