#pragma once
// Where a model computes. The CPU is always there; what a GPU needs is in a library of its own,
// libtune_train_cuda.so, that is loaded only when a GPU is asked for. LibTorch inside: included by
// few files.

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "worker/train/config/config.h"

namespace c10d {
class Backend;
class Store;
}  // namespace c10d

namespace tune::train {

/// Bytes. Of the CPU only `total` is known, and `free` at the moment; the rest is 0.
struct DeviceMemory {
    std::int64_t allocated = 0;      ///< of tensors
    std::int64_t reserved = 0;       ///< held by LibTorch's allocator, tensors included
    std::int64_t peak = 0;           ///< of `allocated`, since reset_peak()
    std::int64_t reserved_peak = 0;  ///< of `reserved`, likewise
    std::int64_t free = 0;
    std::int64_t total = 0;
};

/// Runs one and the same step over and over.
class StepEngine {
public:
    virtual ~StepEngine() = default;

    /// Runs `step`, which reads from and writes to the same tensors, of the same shapes, each time,
    /// and waits for nothing on the device. A step that was captured is replayed: `step` itself is
    /// then not called.
    virtual void run(const std::function<void()>& step) = 0;
    /// The next run() is the first one again: shapes or tensors are others from now on.
    virtual void forget() = 0;
    /// Whether run() replays.
    [[nodiscard]] virtual bool captured() const { return false; }
    /// Why steps are called one by one though they could have been captured; empty otherwise.
    [[nodiscard]] virtual std::string why_not_captured() const { return {}; }
};

/// One device. Any thread may call its methods; each thread's computations are its own. LibTorch's
/// exceptions pass through.
class Device {
public:
    virtual ~Device() = default;

    [[nodiscard]] virtual at::Device torch_device() const = 0;
    /// For people, e.g. "NVIDIA H100 80GB HBM3".
    [[nodiscard]] virtual std::string name() const = 0;
    /// "GPU-..." as NVML writes it; empty for the CPU.
    [[nodiscard]] virtual std::string uuid() const { return {}; }

    /// `host` on the device. The copy goes through pinned memory on a stream of its own; whatever
    /// computes next waits for it on the device, the caller does not. `host` may be changed as soon
    /// as this returns. On the CPU: `host` itself.
    [[nodiscard]] virtual at::Tensor upload(const at::Tensor& host) = 0;
    /// What the calling thread starts from here on neither waits for other threads' work nor holds
    /// it up.
    virtual void use_own_stream() {}
    /// Returns when everything that was started has ended.
    virtual void synchronize() {}

    [[nodiscard]] virtual DeviceMemory memory() const = 0;
    virtual void reset_peak() {}
    /// Gives back what the allocator holds without a tensor in it.
    virtual void release_cached() {}
    /// What this process may allocate, as a part of the device's memory; beyond it allocations
    /// fail. `fraction` in (0, 1].
    virtual void limit_memory(double /*fraction*/) {}

    /// How images lie best for convolutions there.
    [[nodiscard]] virtual bool prefers_channels_last() const { return false; }

    /// `warm_up` steps are run before one is captured. On the CPU: nothing is.
    [[nodiscard]] virtual std::unique_ptr<StepEngine> step_engine(int warm_up) = 0;

    /// What averages gradients that lie on this device over ranks; null: Gloo, as on the CPU.
    [[nodiscard]] virtual c10::intrusive_ptr<c10d::Backend> gradient_backend(
        const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
        std::chrono::milliseconds timeout) = 0;
};

/// The processor.
[[nodiscard]] std::unique_ptr<Device> cpu_device();

/// What an agent gave this process of the device (TUNE_GPU_MEMORY_BYTES), as a part of its memory
/// that tensors may take: a context needs some of it, too. Nothing where it gave all of it.
[[nodiscard]] std::optional<double> given_fraction(std::optional<double> given_bytes,
                                                   std::int64_t total_bytes);
/// The inverse, as an agent counts: the most that this process took of the device, context
/// included. 0 where it is not known (the CPU).
[[nodiscard]] std::int64_t taken_bytes(const DeviceMemory& memory);
/// Limits `device` to that.
void limit_to_what_is_given(Device& device);

/// kAuto: the GPU number `local_rank` among those that CUDA shows, or the CPU where there is none.
/// Errors of kCuda: kInvalidParameterValue when there is no such GPU, or this build has no library
/// for it; the sentence says which.
[[nodiscard]] Result<std::unique_ptr<Device>> open_device(DeviceKind kind, std::int64_t local_rank);

}  // namespace tune::train
