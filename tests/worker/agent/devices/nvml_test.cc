// The driver's library through a fake one with the driver's prototypes (fake_nvml.cc).

#include "worker/agent/devices/nvml.h"

#include <gtest/gtest.h>

#include "tests/worker/agent/devices/fake_gpus.h"
#include "worker/agent/devices/gpus.h"

namespace tune::worker {
namespace {

constexpr const char* kTwoGpus =
    "driver 575.57.08\n"
    "gpu GPU-aaa name=NVIDIA_H100 bytes=80000000000 used=2000000000 util=37 power=350500 "
    "limit=701000 temp=45 energy=1234567 ecc=0 node=1 cores=2,3,65\n"
    "gpu GPU-bbb bytes=40000000000\n";

std::vector<std::string> uuids(const std::vector<GpuFacts>& devices) {
    std::vector<std::string> found;
    for (const GpuFacts& device : devices) found.push_back(device.uuid);
    return found;
}

TEST(Nvml, ListsWhatTheDriverLists) {
    const FakeGpus gpus(kTwoGpus);
    const auto nvml = FakeGpus::load();
    ASSERT_NE(nvml, nullptr);
    EXPECT_EQ(nvml->driver_version(), "575.57.08");
    ASSERT_EQ(uuids(nvml->devices()), (std::vector<std::string>{"GPU-aaa", "GPU-bbb"}));
    const GpuFacts& first = nvml->devices().front();
    EXPECT_EQ(first.name, "NVIDIA H100");
    EXPECT_EQ(first.bytes, 80'000'000'000);
    EXPECT_EQ(first.numa_node, 1);
    EXPECT_EQ(first.cores, (std::vector<int>{2, 3, 65}));
    EXPECT_EQ(nvml->devices().back().numa_node, -1);
    EXPECT_TRUE(nvml->unusable().empty());
}

TEST(Nvml, ReadsADevice) {
    const FakeGpus gpus(kTwoGpus);
    const auto nvml = FakeGpus::load();
    const GpuReading reading = nvml->read("GPU-aaa");
    EXPECT_EQ(reading.utilization_percent, 37);
    EXPECT_EQ(reading.used_bytes, 2'000'000'000);
    EXPECT_EQ(reading.total_bytes, 80'000'000'000);
    EXPECT_DOUBLE_EQ(*reading.power_watts, 350.5);
    EXPECT_DOUBLE_EQ(*reading.power_limit_watts, 701);
    EXPECT_EQ(reading.temperature_celsius, 45);
    EXPECT_EQ(reading.energy_mj, 1'234'567);
}

TEST(Nvml, WhatTheDriverDoesNotSayIsAbsent) {
    const FakeGpus gpus(kTwoGpus);
    const auto nvml = FakeGpus::load();
    const GpuReading reading = nvml->read("GPU-bbb");
    EXPECT_EQ(reading.total_bytes, 40'000'000'000);
    EXPECT_FALSE(reading.utilization_percent || reading.power_watts || reading.energy_mj);
    EXPECT_FALSE(nvml->read("GPU-unknown").used_bytes);
    EXPECT_EQ(nvml->health("GPU-bbb").fault, "");
}

TEST(Nvml, SlicesAreDevicesOfTheirOwn) {
    const FakeGpus gpus(
        "gpu GPU-aaa bytes=80000000000 mig=1 power=100000 energy=5\n"
        "mig GPU-aaa MIG-1 name=NVIDIA_H100_MIG_1g.10gb bytes=10000000000 used=7 instance=9\n"
        "mig GPU-aaa MIG-2 bytes=20000000000 instance=5\n"
        "gpu GPU-bbb bytes=1 mig=0\n");
    const auto nvml = FakeGpus::load();
    ASSERT_EQ(uuids(nvml->devices()), (std::vector<std::string>{"MIG-1", "MIG-2", "GPU-bbb"}));
    const GpuFacts& slice = nvml->devices().front();
    EXPECT_EQ(slice.name, "NVIDIA H100 MIG 1g.10gb");
    EXPECT_EQ(slice.bytes, 10'000'000'000);
    EXPECT_EQ(slice.parent, "GPU-aaa");
    EXPECT_EQ(slice.gpu_instance, 9u);
    EXPECT_EQ(slice.index, 0);
    EXPECT_EQ(nvml->read("MIG-1").used_bytes, 7);
    // The GPU's power and energy are of all its slices.
    EXPECT_FALSE(nvml->read("MIG-1").power_watts || nvml->read("MIG-1").energy_mj);
}

TEST(Nvml, KnowsWhoComputes) {
    const FakeGpus gpus("gpu GPU-aaa bytes=1\nprocess GPU-aaa 41 5000\nprocess GPU-aaa 42 6000\n");
    const auto nvml = FakeGpus::load();
    const std::vector<GpuProcess> processes = nvml->processes("GPU-aaa");
    ASSERT_EQ(processes.size(), 2u);
    EXPECT_EQ(processes[1].pid, 42);
    EXPECT_EQ(processes[1].bytes, 6000);
}

TEST(Nvml, SeesDamage) {
    FakeGpus gpus("gpu GPU-aaa bytes=1 ecc=0\n");
    const auto nvml = FakeGpus::load();
    EXPECT_EQ(nvml->health("GPU-aaa").fault, "");
    gpus.set("gpu GPU-aaa bytes=1 ecc=3\n");
    EXPECT_EQ(nvml->health("GPU-aaa").uncorrected_errors, 3);
    gpus.set("gpu GPU-aaa bytes=1 rows_failed=1\n");
    EXPECT_EQ(nvml->health("GPU-aaa").fault,
              "the GPU has no spare rows left for those of its memory that failed");
    gpus.set("gpu GPU-aaa bytes=1 reset=1\n");
    EXPECT_EQ(nvml->health("GPU-aaa").fault, "the GPU must be reset before it can be used again");
    gpus.set("gpu GPU-aaa bytes=1 lost=1\n");
    EXPECT_EQ(nvml->health("GPU-aaa").fault,
              "the GPU is lost: it has fallen off the bus or cannot be reached any more");
}

TEST(Nvml, HearsWhatTheDriverAnnounces) {
    FakeGpus gpus("gpu GPU-aaa bytes=1\n");
    const auto nvml = FakeGpus::load();
    ASSERT_TRUE(nvml->has_events());
    EXPECT_FALSE(nvml->wait_for_event(1));
    gpus.set("gpu GPU-aaa bytes=1\nxid GPU-aaa 31\nxid GPU-aaa 79\necc GPU-aaa\n");
    EXPECT_FALSE(nvml->wait_for_event(1000)) << "31 is a program's own error";
    const std::optional<GpuEvent> xid = nvml->wait_for_event(1000);
    ASSERT_TRUE(xid);
    EXPECT_EQ(xid->parent, "GPU-aaa");
    EXPECT_FALSE(xid->gpu_instance);
    EXPECT_EQ(xid->fault, "the driver reported Xid 79 (the GPU has fallen off the bus)");
    EXPECT_EQ(nvml->wait_for_event(1000)->fault,
              "the driver reported an uncorrectable memory error (ECC)");
}

TEST(Nvml, AMachineWithoutADriverIsNoError) {
    const Result<std::unique_ptr<Nvml>> none = Nvml::load("libnvidia-ml-that-is-not-there.so");
    EXPECT_EQ(none.error().code, Code::kResourceDoesNotExist);
    unsetenv("FAKE_NVML");
    const Result<std::unique_ptr<Nvml>> silent = Nvml::load(FAKE_NVML_LIBRARY);
    EXPECT_EQ(silent.error().message, "the NVIDIA driver does not answer: Driver Not Loaded");
}

TEST(Nvml, ALostGpuIsSaidAtTheStart) {
    const FakeGpus gpus("gpu GPU-aaa bytes=1 lost=1\ngpu GPU-bbb bytes=1\n");
    const auto nvml = FakeGpus::load();
    EXPECT_EQ(uuids(nvml->devices()), (std::vector<std::string>{"GPU-bbb"}));
    EXPECT_EQ(nvml->devices().front().index, 1);
    EXPECT_EQ(nvml->unusable(), (std::vector<std::string>{"GPU 0 cannot be opened: GPU is lost"}));
}

// ---- Which of them are the agent's -----------------------------------------------------------

GpuChoice choice() {
    GpuChoice choice;
    choice.library = FAKE_NVML_LIBRARY;
    return choice;
}

/// Names that no agent of this machine has.
std::string unique_gpu(const std::string& name) {
    return name + "-" + std::to_string(getpid());
}

TEST(OwnGpus, AreOneAgentsOnly) {
    const std::string a = unique_gpu("GPU-a");
    const std::string b = unique_gpu("GPU-b");
    const FakeGpus gpus("gpu " + a + " bytes=1\ngpu " + b + " bytes=1\n");
    GpuChoice one = choice();
    one.count_max = 1;
    std::optional<OwnGpus> first = open_gpus(one).value();
    const OwnGpus second = open_gpus(choice()).value();
    EXPECT_EQ(uuids(first->devices), (std::vector<std::string>{a}));
    EXPECT_EQ(uuids(second.devices), (std::vector<std::string>{b}));
    EXPECT_EQ(second.remarks,
              (std::vector<std::string>{"another agent of this machine uses " + a}));
    first.reset();
    EXPECT_EQ(uuids(open_gpus(choice()).value().devices), (std::vector<std::string>{a}));
}

TEST(OwnGpus, AdoptedOnesNeedNoLock) {
    const std::string a = unique_gpu("GPU-a");
    const FakeGpus gpus("gpu " + a + " bytes=1\n");
    const OwnGpus earlier = open_gpus(choice()).value();  // its trial still runs
    GpuChoice later = choice();
    later.adopted = {a};
    const OwnGpus own = open_gpus(later).value();
    EXPECT_EQ(uuids(own.devices), (std::vector<std::string>{a}));
    EXPECT_TRUE(own.locks.empty());
}

TEST(OwnGpus, StayWithinWhatIsVisible) {
    const std::string a = unique_gpu("GPU-a");
    const std::string b = unique_gpu("GPU-b");
    const std::string s1 = unique_gpu("MIG-1");
    const std::string s2 = unique_gpu("MIG-2");
    const FakeGpus gpus("gpu " + a + " bytes=1\ngpu " + b + " bytes=1 mig=1\nmig " + b + " " + s1 +
                        " bytes=1\nmig " + b + " " + s2 + " bytes=1\n");
    const auto chosen = [](const std::string& visible, std::vector<std::string> names = {}) {
        GpuChoice wanted = choice();
        wanted.visible = visible;
        wanted.names = std::move(names);
        const Result<OwnGpus> own = open_gpus(wanted);
        return own ? uuids(own->devices) : std::vector<std::string>{own.error().message};
    };
    EXPECT_EQ(chosen("1"), (std::vector<std::string>{s1, s2}));
    EXPECT_EQ(chosen(s2 + ",0"), (std::vector<std::string>{s2, a}));
    EXPECT_EQ(chosen(""), std::vector<std::string>());
    // Positions count within what is visible.
    EXPECT_EQ(chosen("1,0", {"1"}), (std::vector<std::string>{a}));
    EXPECT_EQ(chosen(s1, {a}),
              (std::vector<std::string>{"no GPU '" + a + "' may be used here; there are: " + s1}));
}

}  // namespace
}  // namespace tune::worker
