// One GPU by LibTorch's own means: its caching allocators, streams and graphs. Nothing here calls
// the driver behind LibTorch's back, so what it knows of memory and streams stays true.

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <array>
#include <cstdio>
#include <mutex>
#include <optional>

#include "worker/train/device/cuda/nccl_backend.h"
#include "worker/train/device/library.h"

namespace tune::train {
namespace {

using c10::cuda::CUDAStream;
using c10::cuda::CUDAStreamGuard;

/// Captures a step as a CUDA graph: one launch instead of hundreds, which is what small models
/// wait for. Everything runs on one side stream, as capturing demands.
class GraphEngine final : public StepEngine {
public:
    GraphEngine(c10::DeviceIndex index, int warm_up)
        : stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)),
          index_(index),
          warm_up_(warm_up) {}

    void run(const std::function<void()>& step) override {
        const CUDAStream caller = c10::cuda::getCurrentCUDAStream(index_);
        wait_for(caller, stream_);
        {
            const CUDAStreamGuard guard(stream_);
            if (graph_)
                graph_->replay();
            else if (!why_not_.empty() || steps_ < warm_up_)
                step();
            else
                capture(step);
            ++steps_;
        }
        wait_for(stream_, caller);
    }

    void forget() override {
        graph_.reset();
        why_not_.clear();
        steps_ = 0;
    }

    bool captured() const override { return graph_.has_value(); }
    std::string why_not_captured() const override { return why_not_; }

private:
    static void wait_for(const CUDAStream& first, const CUDAStream& then) {
        at::cuda::CUDAEvent event;
        event.record(first);
        event.block(then);
    }

    /// Records the step and runs it once. A step that cannot be captured (it waits for the device,
    /// or asks for memory in a way that capturing forbids) is called as it is from here on.
    void capture(const std::function<void()>& step) {
        // One capture at a time, and one that lets other threads (trials of a pool) ask for memory
        // meanwhile: in CUDA's global mode their cudaMalloc would fail, or break the capture.
        static std::mutex one_at_a_time;
        const std::lock_guard lock(one_at_a_time);
        graph_.emplace();
        try {
            graph_->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
            step();
            graph_->capture_end();
        } catch (const std::exception& error) {
            why_not_ = error.what();
            why_not_ = why_not_.substr(0, why_not_.find('\n'));
            try {
                graph_->capture_end();
            } catch (const std::exception&) {
                // The capture is broken; what matters is that the stream is free again.
            }
            graph_.reset();
            static_cast<void>(cudaGetLastError());
            step();
            return;
        }
        graph_->replay();
    }

    const CUDAStream stream_;
    const c10::DeviceIndex index_;
    const int warm_up_;
    int steps_ = 0;
    std::optional<at::cuda::CUDAGraph> graph_;
    std::string why_not_;
};

std::string uuid_text(const cudaUUID_t& uuid) {
    std::string text = "GPU-";
    for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
        std::array<char, 3> hex{};
        std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned char>(uuid.bytes[i]));
        if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
        text += hex.data();
    }
    return text;
}

class CudaDevice final : public Device {
public:
    explicit CudaDevice(c10::DeviceIndex index)
        : index_(index), copies_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)) {
        C10_CUDA_CHECK(cudaGetDeviceProperties(&properties_, index));
        c10::cuda::set_device(index);
    }

    at::Device torch_device() const override { return {at::kCUDA, index_}; }
    std::string name() const override { return properties_.name; }
    std::string uuid() const override { return uuid_text(properties_.uuid); }

    at::Tensor upload(const at::Tensor& host) override {
        // Pinned memory comes from LibTorch's cache, which does not give a block out again before
        // the copy from it has ended.
        const at::Tensor staged = at::empty(host.sizes(), host.options().pinned_memory(true));
        staged.copy_(host);
        at::Tensor copy;
        at::cuda::CUDAEvent copied;
        {
            const CUDAStreamGuard guard(copies_);
            copy = staged.to(torch_device(), /*non_blocking=*/true);
            copied.record(copies_);
        }
        const CUDAStream current = c10::cuda::getCurrentCUDAStream(index_);
        copied.block(current);
        copy.record_stream(current.unwrap());
        return copy;
    }

    void use_own_stream() override {
        c10::cuda::set_device(index_);
        c10::cuda::setCurrentCUDAStream(
            c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index_));
    }

    void synchronize() override {
        const c10::cuda::CUDAGuard guard(index_);
        c10::cuda::device_synchronize();
    }

    DeviceMemory memory() const override {
        namespace allocator = c10::cuda::CUDACachingAllocator;
        constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
        const auto stats = allocator::getDeviceStats(index_);
        const c10::cuda::CUDAGuard guard(index_);
        std::size_t free = 0;
        std::size_t total = 0;
        C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
        return {.allocated = stats.allocated_bytes[kAll].current,
                .reserved = stats.reserved_bytes[kAll].current,
                .peak = stats.allocated_bytes[kAll].peak,
                .reserved_peak = stats.reserved_bytes[kAll].peak,
                .free = static_cast<std::int64_t>(free),
                .total = static_cast<std::int64_t>(total)};
    }

    void reset_peak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index_); }
    void release_cached() override { c10::cuda::CUDACachingAllocator::emptyCache(); }
    void limit_memory(double fraction) override {
        c10::cuda::CUDACachingAllocator::setMemoryFraction(fraction, index_);
    }

    /// Tensor cores, which want it, came with compute capability 7.0.
    bool prefers_channels_last() const override { return properties_.major >= 7; }

    std::unique_ptr<StepEngine> step_engine(int warm_up) override {
        return std::make_unique<GraphEngine>(index_, warm_up);
    }

    c10::intrusive_ptr<c10d::Backend> gradient_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                       int rank, int size,
                                                       std::chrono::milliseconds timeout) override {
        return nccl_backend(store, rank, size, timeout);
    }

private:
    const c10::DeviceIndex index_;
    const CUDAStream copies_;
    cudaDeviceProp properties_{};
};

OpenedDevice open(int index) {
    OpenedDevice opened;
    opened.library_version = kDeviceLibraryVersion;
    try {
        const int count = c10::cuda::device_count();
        if (count == 0) {
            opened.error = "CUDA shows no GPU (CUDA_VISIBLE_DEVICES, driver)";
            opened.is_absent = true;
        } else if (index >= count) {
            opened.error = "this is local rank " + std::to_string(index) + ", but CUDA shows " +
                           std::to_string(count) + " GPU" + (count == 1 ? "" : "s");
        } else if (const std::string reason = nccl_mismatch(); !reason.empty()) {
            opened.error = reason;
        } else {
            opened.device = std::make_unique<CudaDevice>(static_cast<c10::DeviceIndex>(index));
        }
    } catch (const std::exception& error) {
        opened.error = error.what();
        opened.error = opened.error.substr(0, opened.error.find('\n'));
    }
    return opened;
}

}  // namespace
}  // namespace tune::train

// The result is a C++ object: both sides are of one build (kDeviceLibraryVersion).
#pragma GCC visibility push(default)
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming)
tune::train::OpenedDevice tune_train_open_cuda_device(int index) {
    return tune::train::open(index);
}
}
#pragma GCC visibility pop
