// The prototypes are written down here, since NVML's header is not among the wheels' ones; the
// structs are those of version 1 and 2 functions, which never change.

#include "worker/train/selfcheck/nvml.h"

#include <dlfcn.h>

#include <array>

namespace tune::train {
namespace {

using Handle = void*;

struct Memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

/// nvmlProcessInfo_v1_t, of nvmlDeviceGetComputeRunningProcesses.
struct ProcessV1 {
    unsigned pid;
    unsigned long long used;
};

class Library {
public:
    explicit Library(void* library) : library_(library) {}

    template <class... Arguments>
    Result<void> call(const char* function, Arguments... arguments) const {
        auto* const address = dlsym(library_, function);
        if (address == nullptr)
            return Error{Code::kInternalError, std::string("NVML has no ") + function};
        const int code = reinterpret_cast<int (*)(Arguments...)>(address)(arguments...);
        if (code == 0) return {};
        auto* const text =
            reinterpret_cast<const char* (*)(int)>(dlsym(library_, "nvmlErrorString"));
        return Error{Code::kInternalError,
                     std::string(function) + ": " +
                         (text == nullptr ? "error " + std::to_string(code) : text(code))};
    }

private:
    void* library_;
};

Result<NvmlDevice> read_device(const Library& nvml, unsigned index) {
    constexpr unsigned kTextMax = 128;
    NvmlDevice device;
    Handle handle = nullptr;
    TUNE_TRY_VOID(nvml.call("nvmlDeviceGetHandleByIndex_v2", index, &handle));
    std::array<char, kTextMax> text{};
    TUNE_TRY_VOID(nvml.call("nvmlDeviceGetUUID", handle, text.data(), kTextMax));
    device.uuid = text.data();
    TUNE_TRY_VOID(nvml.call("nvmlDeviceGetName", handle, text.data(), kTextMax));
    device.name = text.data();
    Memory memory{};
    TUNE_TRY_VOID(nvml.call("nvmlDeviceGetMemoryInfo", handle, &memory));
    device.memory_bytes = memory.total;
    device.used_bytes = memory.used;
    std::array<ProcessV1, 256> processes{};
    auto count = static_cast<unsigned>(processes.size());
    // Not every driver tells; the rest is of use without it.
    if (nvml.call("nvmlDeviceGetComputeRunningProcesses", handle, &count, processes.data()))
        for (unsigned i = 0; i < count; ++i) device.processes.push_back(processes[i].pid);
    return device;
}

}  // namespace

Result<std::vector<NvmlDevice>> nvml_devices() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
        return Error{Code::kResourceDoesNotExist, "there is no libnvidia-ml.so.1"};
    const Library nvml(library);
    TUNE_TRY_VOID(nvml.call("nvmlInit_v2"));
    unsigned count = 0;
    TUNE_TRY_VOID(nvml.call("nvmlDeviceGetCount_v2", &count));
    std::vector<NvmlDevice> devices;
    for (unsigned i = 0; i < count; ++i) {
        TUNE_TRY(device, read_device(nvml, i));
        devices.push_back(std::move(device));
    }
    TUNE_TRY_VOID(nvml.call("nvmlShutdown"));
    return devices;
}

}  // namespace tune::train
