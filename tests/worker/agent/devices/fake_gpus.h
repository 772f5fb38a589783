#pragma once
// A machine with the GPUs that a test wants: the file behind the fake driver library.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "tests/worker/agent/scratch.h"
#include "worker/agent/devices/nvml.h"

namespace tune::worker {

/// One at a time in a process: the library finds its file by a variable of the environment.
class FakeGpus {
public:
    explicit FakeGpus(const std::string& lines) {
        setenv("FAKE_NVML", path().c_str(), 1);
        set(lines);
    }
    ~FakeGpus() { unsetenv("FAKE_NVML"); }
    FakeGpus(const FakeGpus&) = delete;
    FakeGpus& operator=(const FakeGpus&) = delete;

    /// The machine is another from now on.
    void set(const std::string& lines) {
        const std::filesystem::path next = path().string() + ".new";
        std::ofstream(next) << lines;
        std::filesystem::rename(next, path());
    }
    /// How often somebody has looked at the processes of a device.
    [[nodiscard]] std::uintmax_t looks() const {
        std::error_code none;
        const std::uintmax_t size = std::filesystem::file_size(path().string() + ".looks", none);
        return none ? 0 : size;
    }
    [[nodiscard]] static std::unique_ptr<Nvml> load() {
        Result<std::unique_ptr<Nvml>> nvml = Nvml::load(FAKE_NVML_LIBRARY);
        return nvml ? std::move(*nvml) : nullptr;
    }

private:
    [[nodiscard]] std::filesystem::path path() const { return folder_.path() / "gpus"; }
    Scratch folder_;
};

}  // namespace tune::worker
