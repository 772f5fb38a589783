// Finds and loads libtune_train_cuda.so. It pulls in libtorch_cuda.so, whose kernels register
// themselves, and with it gigabytes of libraries: a run on the CPU never gets here.

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "worker/train/device/library.h"
#include "worker/train/step/memory_limit.h"

namespace tune::train {
namespace {

/// What CUDA takes for a process besides its tensors, about.
constexpr double kContextBytes = 512e6;

/// Beside the program, or in lib/tune beside its folder, as the packages have it.
std::vector<std::filesystem::path> places() {
    std::error_code ignored;
    const auto bin = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    return {bin / "libtune_train_cuda.so", bin / "../lib/tune/libtune_train_cuda.so"};
}

OpenedDevice absent(std::string error) {
    return {.library_version = kDeviceLibraryVersion,
            .device = nullptr,
            .error = std::move(error),
            .is_absent = true};
}

OpenedDevice open_cuda(std::int64_t index) {
    // Looked for first: without the driver nothing else matters, and nothing else is loaded.
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL); driver == nullptr)
        return absent("this machine has no NVIDIA driver (libcuda.so.1)");
    std::error_code ignored;
    std::string tried;
    for (const auto& path : places()) {
        if (!std::filesystem::exists(path, ignored)) {
            tried += (tried.empty() ? "" : " and ") + path.string();
            continue;
        }
        // Never closed: LibTorch's registrations stay until the process ends.
        void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
        if (library == nullptr) return {.error = dlerror()};
        auto open = reinterpret_cast<OpenCudaDevice>(dlsym(library, kOpenCudaDevice));
        if (open == nullptr) return {.error = dlerror()};
        OpenedDevice opened = open(static_cast<int>(index));
        if (opened.library_version != kDeviceLibraryVersion)
            return {.error = path.string() + " is of another build than this program"};
        return opened;
    }
    return absent("this build has no GPU library; looked for " + tried);
}

}  // namespace

std::optional<double> given_fraction(std::optional<double> given_bytes, std::int64_t total_bytes) {
    const auto total = static_cast<double>(total_bytes);
    if (!given_bytes || !(*given_bytes < total)) return std::nullopt;
    return std::max(*given_bytes - kContextBytes, *given_bytes / 2.0) / total;
}

std::int64_t taken_bytes(const DeviceMemory& memory) {
    if (memory.reserved_peak <= 0) return 0;
    return memory.reserved_peak + static_cast<std::int64_t>(kContextBytes);
}

void limit_to_what_is_given(Device& device) {
    if (device.torch_device().is_cpu()) return;
    const auto fraction =
        given_fraction(bytes_of_environment("TUNE_GPU_MEMORY_BYTES"), device.memory().total);
    if (fraction) device.limit_memory(*fraction);
}

Result<std::unique_ptr<Device>> open_device(DeviceKind kind, std::int64_t local_rank) {
    if (kind == DeviceKind::kCpu) return cpu_device();
    OpenedDevice opened = open_cuda(local_rank);
    if (opened.device) return std::move(opened.device);
    if (kind == DeviceKind::kAuto && opened.is_absent) return cpu_device();
    return invalid_parameter("device cuda: " + opened.error + "; give --device cpu");
}

}  // namespace tune::train
