#include "worker/agent/devices/gpu_metrics.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

std::string text(const std::vector<NamedValue>& values) {
    std::string text;
    for (const NamedValue& value : values) {
        char number[64];
        std::snprintf(number, sizeof number, "=%g\n", value.value);
        text += value.key + number;
    }
    return text;
}

TEST(GpuMetrics, BearTheNamesOfMlflow) {
    WatchedReading reading;
    reading.uuid = "GPU-b";
    reading.reading = {.utilization_percent = 37,
                       .used_bytes = 2'000'050'000,
                       .total_bytes = 80'000'000'000,
                       .power_watts = 350.04,
                       .power_limit_watts = 700};
    EXPECT_EQ(text(gpu_metrics({"GPU-a", "GPU-b"}, {reading})),
              "system/gpu_1_memory_usage_percentage=2.5\n"
              "system/gpu_1_memory_usage_megabytes=2000.1\n"
              "system/gpu_1_utilization_percentage=37\n"
              "system/gpu_1_power_usage_watts=350\n"
              "system/gpu_1_power_usage_percentage=50\n");
}

TEST(GpuMetrics, LeaveOutWhatIsUnknownAndWhatIsNotTheTrials) {
    WatchedReading slice;
    slice.uuid = "MIG-1";
    slice.reading = {.used_bytes = 5'000'000, .total_bytes = 10'000'000};
    WatchedReading other;
    other.uuid = "GPU-other";
    other.reading = {.utilization_percent = 99};
    EXPECT_EQ(text(gpu_metrics({"MIG-1"}, {slice, other})),
              "system/gpu_0_memory_usage_percentage=50\n"
              "system/gpu_0_memory_usage_megabytes=5\n");
}

TEST(Joules, AreTheDifferenceOfAllDevices) {
    EXPECT_DOUBLE_EQ(*joules_between({{"a", 1000}, {"b", 5000}}, {{"a", 3500}, {"b", 5500}}, 1), 3);
    EXPECT_DOUBLE_EQ(*joules_between({{"a", 1000}}, {{"a", 3000}}, 0.25), 0.5);
}

TEST(Joules, AreUnknownWithoutBothEnds) {
    EXPECT_FALSE(joules_between({}, {}, 1));
    EXPECT_FALSE(joules_between({{"a", 1}}, {}, 1));
    EXPECT_FALSE(joules_between({}, {{"a", 1}}, 1));
    EXPECT_FALSE(joules_between({{"a", 9}}, {{"a", 1}}, 1)) << "the driver was loaded anew";
}

}  // namespace
}  // namespace tune::worker
