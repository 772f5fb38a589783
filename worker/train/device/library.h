#pragma once
// What tune-trainer finds in libtune_train_cuda.so: one function, by its C name.

#include "worker/train/device/device.h"

namespace tune::train {

/// Raised when Device or this struct changes: program and library are of one build.
inline constexpr int kDeviceLibraryVersion = 3;

/// The function's result; `error` is set when `device` is not.
struct OpenedDevice {
    int library_version = 0;
    std::unique_ptr<Device> device = {};
    std::string error = {};
    bool is_absent = false;  ///< the error is that there is no GPU
};

using OpenCudaDevice = OpenedDevice (*)(int index);
inline constexpr const char* kOpenCudaDevice = "tune_train_open_cuda_device";

}  // namespace tune::train
