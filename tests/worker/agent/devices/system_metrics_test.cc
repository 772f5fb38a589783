#include "worker/agent/devices/system_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

namespace tune::worker {
namespace {

TEST(SystemMetrics, GivesMlflowsNames) {
    SystemMetrics metrics(getpid());
    std::map<std::string, double> values;
    volatile double work = 0;
    for (int i = 0; i < 30'000'000; ++i) work = work + 1;
    for (const NamedValue& sample : metrics.sample()) values[sample.key] = sample.value;
    for (const char* name :
         {"system/cpu_utilization_percentage", "system/system_memory_usage_megabytes",
          "system/system_memory_usage_percentage", "system/disk_usage_percentage",
          "system/disk_usage_megabytes", "system/disk_available_megabytes",
          "system/network_receive_megabytes", "system/network_transmit_megabytes",
          "system/trial_cpu_cores", "system/trial_memory_usage_megabytes"})
        EXPECT_TRUE(values.contains(name)) << name;
    EXPECT_GT(values["system/cpu_utilization_percentage"], 0);
    EXPECT_LE(values["system/cpu_utilization_percentage"], 100);
    EXPECT_GT(values["system/system_memory_usage_percentage"], 0);
    EXPECT_LE(values["system/system_memory_usage_percentage"], 100);
}

}  // namespace
}  // namespace tune::worker
