#include "worker/agent/devices/devices.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

TEST(Devices, CoresAreHandedOutOnce) {
    Devices devices({0, 1, 2, 3}, {});
    const Assignment first = devices.take(2, 0).value().value();
    const Assignment second = devices.take(2.9, 0).value().value();
    EXPECT_EQ(first.cores, (std::vector<int>{0, 1}));
    EXPECT_EQ(second.cores, (std::vector<int>{2, 3}));
    EXPECT_FALSE(devices.take(1, 0).value().has_value());
    devices.release(first);
    EXPECT_EQ(devices.take(1, 0).value().value().cores, (std::vector<int>{0}));
}

TEST(Devices, TrialsBelowOneCoreShare) {
    Devices devices({0}, {});
    EXPECT_TRUE(devices.take(0, 0).value().value().cores.empty());
    EXPECT_TRUE(devices.take(0.5, 0).value().value().cores.empty());
}

TEST(Devices, WhatIsNeverThereIsRefused) {
    Devices devices({0, 1}, {"GPU-a"});
    EXPECT_EQ(devices.take(3, 0).error().message,
              "a trial of the study needs 3 cores; this agent has 2");
    EXPECT_EQ(devices.take(0, 2).error().message,
              "a trial of the study needs 2 GPUs; this agent has 1");
}

TEST(Devices, WholeGpusAreExclusive) {
    Devices devices({0}, {"GPU-a", "GPU-b"});
    const Assignment first = devices.take(0, 1).value().value();
    EXPECT_EQ(first.gpus, (std::vector<std::string>{"GPU-a"}));
    EXPECT_EQ(devices.take(0, 1).value().value().gpus, (std::vector<std::string>{"GPU-b"}));
    EXPECT_FALSE(devices.take(0, 0.1).value().has_value());
    devices.release(first);
    EXPECT_TRUE(devices.take(0, 1).value().has_value());
}

TEST(Devices, SharesFillOneGpuFirst) {
    Devices devices({0}, {"GPU-a", "GPU-b"});
    std::vector<Assignment> shares;
    for (int i = 0; i < 10; ++i) shares.push_back(devices.take(0, 0.1).value().value());
    for (const Assignment& share : shares) EXPECT_EQ(share.gpus.front(), "GPU-a");
    EXPECT_EQ(devices.take(0, 1).value().value().gpus.front(), "GPU-b");
    EXPECT_FALSE(devices.take(0, 0.1).value().has_value());
    for (const Assignment& share : shares) devices.release(share);
    EXPECT_EQ(devices.take(0, 1).value().value().gpus.front(), "GPU-a");
}

TEST(Devices, AdoptedAttemptsKeepWhatTheyHave) {
    Devices devices({0, 1}, {"GPU-a"});
    devices.take_again({{1, 9}, {"GPU-a", "GPU-gone"}, 1});
    EXPECT_EQ(devices.take(1, 0).value().value().cores, (std::vector<int>{0}));
    EXPECT_FALSE(devices.take(0, 1).value().has_value());
}

TEST(VisibleGpus, ReadsIndicesAndUuids) {
    const std::vector<std::string> all = {"GPU-aaa", "GPU-bbb", "MIG-ccc"};
    EXPECT_EQ(visible_gpus(all, "1,0"), (std::vector<std::string>{"GPU-bbb", "GPU-aaa"}));
    EXPECT_EQ(visible_gpus(all, " GPU-b , MIG-ccc"),
              (std::vector<std::string>{"GPU-bbb", "MIG-ccc"}));
    EXPECT_EQ(visible_gpus(all, "0,9,1"), (std::vector<std::string>{"GPU-aaa"}));
    EXPECT_TRUE(visible_gpus(all, "").empty());
    EXPECT_TRUE(visible_gpus(all, "-1").empty());
}

TEST(AllowedCores, AreThere) {
    EXPECT_FALSE(allowed_cores().empty());
}

}  // namespace
}  // namespace tune::worker
