#include "worker/train/device/device.h"

#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <nlohmann/json.hpp>

#include "tests/worker/train/data_set.h"
#include "worker/train/trainer.h"

namespace tune::train {
namespace {

TEST(Device, TakesWhatItsAgentGave) {
    constexpr std::int64_t kTotal = 80'000'000'000;
    EXPECT_FALSE(given_fraction(std::nullopt, kTotal));
    EXPECT_FALSE(given_fraction(80e9, kTotal)) << "all of it";
    EXPECT_FALSE(given_fraction(90e9, kTotal));
    EXPECT_DOUBLE_EQ(*given_fraction(20e9, kTotal), (20e9 - 512e6) / 80e9)
        << "a context needs some, too";
    EXPECT_DOUBLE_EQ(*given_fraction(600e6, kTotal), 300e6 / 80e9);
    const auto device = cpu_device();
    limit_to_what_is_given(*device);  // of a CPU there is nothing to limit
    EXPECT_EQ(device->memory().peak, 0);
}

TEST(Device, WhatAProcessTookIsEnoughForTheNextOne) {
    EXPECT_EQ(taken_bytes(cpu_device()->memory()), 0);
    constexpr std::int64_t kTotal = 80'000'000'000;
    for (const std::int64_t reserved : {20'000'000LL, 3'000'000'000LL}) {
        DeviceMemory memory{.total = kTotal};
        memory.reserved_peak = reserved;
        const auto taken = static_cast<double>(taken_bytes(memory));
        EXPECT_GE(*given_fraction(taken, kTotal) * kTotal, static_cast<double>(reserved))
            << "given what was told, the same tensors fit";
    }
}

/// The CPU, which says that it has a GPU's memory.
class CpuWithMemory final : public Device {
public:
    at::Device torch_device() const override { return cpu_->torch_device(); }
    std::string name() const override { return cpu_->name(); }
    at::Tensor upload(const at::Tensor& host) override { return cpu_->upload(host); }
    DeviceMemory memory() const override {
        return {.peak = 900'000'000, .reserved_peak = 1'000'000'000, .total = 80'000'000'000};
    }
    std::unique_ptr<StepEngine> step_engine(int warm_up) override {
        return cpu_->step_engine(warm_up);
    }
    c10::intrusive_ptr<c10d::Backend> gradient_backend(
        const c10::intrusive_ptr<c10d::Store>& /*store*/, int /*rank*/, int /*size*/,
        std::chrono::milliseconds /*timeout*/) override {
        return {};
    }

private:
    std::unique_ptr<Device> cpu_ = cpu_device();
};

std::vector<Json> lines_on(Device& device) {
    DataSet data;
    std::vector<std::vector<loader::Value>> rows;
    for (std::int64_t i = 0; i < 40; ++i) rows.push_back({static_cast<double>(i), i % 2});
    for (const char* split : {"train", "val"})
        data.write(split, {{"x", "float64"}, {"label", "int"}}, rows);
    TrainConfig config;
    config.data = data.path();
    config.epochs = 1;
    config.batch_size = 8;
    config.stats_every = 1000.0;  // the last line comes at the end all the same
    config.statistics_cache = "none";
    std::string text;
    const std::atomic<bool> stop{false};
    const auto outcome = train_beside_others(
        config, device, [&](const std::string& more) { return text += more, true; }, stop);
    EXPECT_TRUE(outcome) << outcome.error().text();
    std::vector<Json> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        lines.push_back(Json::parse(line.substr(std::string("tune: ").size())));
    return lines;
}

TEST(Device, ItsMemoryIsToldByTheNameThatTheAgentReads) {
    CpuWithMemory device;
    std::vector<std::int64_t> told;
    for (const Json& line : lines_on(device))
        if (line.contains("gpu_memory_peak_bytes"))
            told.push_back(line["gpu_memory_peak_bytes"].get<std::int64_t>());
    EXPECT_EQ(told, std::vector<std::int64_t>{1'512'000'000}) << "with what CUDA itself takes";
    for (const Json& line : lines_on(*cpu_device()))
        EXPECT_FALSE(line.contains("gpu_memory_peak_bytes"));
}

}  // namespace
}  // namespace tune::train
