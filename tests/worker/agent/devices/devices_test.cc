#include "worker/agent/devices/devices.h"

#include <gtest/gtest.h>

#include <set>

#include "worker/agent/devices/gpus.h"
#include "worker/agent/devices/machine_locks.h"

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

TEST(Devices, GpusThatTheServerChoseAreTaken) {
    Devices devices({0, 1}, {"GPU-a", "GPU-b"});
    const Assignment part = devices.take_these(1, {"GPU-b"}, true).value().value();
    EXPECT_EQ(part.gpus, (std::vector<std::string>{"GPU-b"}));
    EXPECT_EQ(part.cores.size(), 1u);
    EXPECT_TRUE(devices.take_these(0, {"GPU-b"}, true).value().has_value()) << "others share it";
    EXPECT_FALSE(devices.take_these(0, {"GPU-b"}, false).value().has_value()) << "it is not whole";
    const Assignment whole = devices.take_these(0, {"GPU-a"}, false).value().value();
    EXPECT_FALSE(devices.take_these(0, {"GPU-a"}, true).value().has_value());
    devices.release(whole);
    EXPECT_TRUE(devices.take_these(0, {"GPU-a"}, true).value().has_value());
    EXPECT_EQ(devices.take_these(0, {"GPU-z"}, false).error().code, Code::kResourceDoesNotExist);
    devices.exclude("GPU-a");
    EXPECT_EQ(devices.take_these(0, {"GPU-a"}, true).error().code, Code::kResourceDoesNotExist);
}

TEST(Devices, AdoptedAttemptsKeepWhatTheyHave) {
    Devices devices({0, 1}, {"GPU-a"});
    devices.take_again({{1, 9}, {"GPU-a", "GPU-gone"}, 1});
    EXPECT_EQ(devices.take(1, 0).value().value().cores, (std::vector<int>{0}));
    EXPECT_FALSE(devices.take(0, 1).value().has_value());
}

TEST(Devices, CoresNearTheGpuComeFirst) {
    Devices devices({0, 1, 2, 3}, {"GPU-a", "GPU-b"});
    devices.describe("GPU-b", {2, 3}, nullptr);
    const Assignment first = devices.take(1, 1).value().value();
    EXPECT_EQ(first.gpus, (std::vector<std::string>{"GPU-a"}));
    EXPECT_EQ(first.cores, (std::vector<int>{0}));
    EXPECT_EQ(devices.take(3, 1).value().value().cores, (std::vector<int>{2, 3, 1}));
}

TEST(Devices, ExcludedGpusAreNotHandedOut) {
    Devices devices({0}, {"GPU-a", "GPU-b"});
    devices.exclude("GPU-a");
    EXPECT_EQ(devices.gpus(), (std::vector<std::string>{"GPU-b"}));
    EXPECT_EQ(devices.take(0, 1).value().value().gpus, (std::vector<std::string>{"GPU-b"}));
    const Error error = devices.take(0, 2).error();
    EXPECT_EQ(error.code, Code::kResourceExhausted);
    EXPECT_EQ(error.message, "a trial of the study needs 2 GPUs; this agent has 1 left");
}

TEST(Devices, OccupiedGpusWaitUntilTheyAreLeft) {
    Devices devices({0}, {"GPU-a"});
    devices.set_occupied("GPU-a", true);
    EXPECT_FALSE(devices.take(0, 1).value().has_value());
    devices.set_occupied("GPU-a", false);
    EXPECT_TRUE(devices.take(0, 1).value().has_value());
}

/// Locks as another agent of the machine sees them.
class Neighbour {
public:
    Devices::Locker locker() {
        return [this](const std::string& name) -> Result<MachineLock> {
            if (taken.contains(name)) return MachineLock();
            return std::make_shared<const UniqueFd>();
        };
    }
    std::set<std::string> taken;
};

TEST(Devices, CoresOfAnotherAgentAreLeftToIt) {
    Neighbour neighbour;
    neighbour.taken = {core_lock_name(0)};
    Devices devices({0, 1}, {}, neighbour.locker());
    const Assignment one = devices.take(1, 0).value().value();
    EXPECT_EQ(one.cores, (std::vector<int>{1}));
    EXPECT_EQ(one.locks.size(), 1u);
    EXPECT_FALSE(devices.take(1, 0).value().has_value());
    EXPECT_EQ(devices.held_elsewhere(), core_lock_name(0));
    neighbour.taken.clear();
    EXPECT_EQ(devices.take(1, 0).value().value().cores, (std::vector<int>{0}));
    EXPECT_EQ(devices.held_elsewhere(), "");
}

TEST(Devices, AnAdoptedGpuIsLockedOnceItsTrialIsGone) {
    Neighbour neighbour;
    Devices devices({0}, {"GPU-a", "GPU-b"}, neighbour.locker());
    const Assignment first = {{}, {"GPU-a"}, 1};
    const Assignment second = {{}, {"GPU-b"}, 1};
    devices.take_again(first);
    devices.take_again(second);
    devices.release(first);
    neighbour.taken = {gpu_lock_name("GPU-b")};  // another agent is quicker
    devices.release(second);
    EXPECT_EQ(devices.gpus(), (std::vector<std::string>{"GPU-a"}));
    EXPECT_EQ(devices.take(0, 1).value().value().locks.size(), 1u);
}

std::vector<std::string> visible_gpus(const std::vector<std::string>& all,
                                      const std::string& visible) {
    std::vector<GpuFacts> facts;
    for (const std::string& uuid : all)
        facts.push_back({.uuid = uuid, .index = static_cast<int>(facts.size())});
    std::vector<std::string> uuids;
    for (const GpuFacts& device : visible_gpus(facts, visible)) uuids.push_back(device.uuid);
    return uuids;
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
