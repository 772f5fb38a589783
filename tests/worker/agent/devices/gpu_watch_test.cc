#include "worker/agent/devices/gpu_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <future>

#include "tests/worker/agent/devices/fake_gpus.h"

namespace tune::worker {
namespace {

constexpr int kPeriod_ms = 5;
constexpr int kNever_ms = 3'600'000;

/// A watch over the fake machine, and what it announced.
class Watched {
public:
    explicit Watched(const std::string& lines, int period_ms = kPeriod_ms) : gpus(lines) {
        nvml_ = FakeGpus::load();
        watch_ = std::make_unique<GpuWatch>(
            *nvml_, nvml_->devices(), period_ms,
            GpuEvents{[this](const std::string& uuid, const std::string& fault) {
                          note(uuid + ": " + fault);
                      },
                      [this](const std::string& uuid, int processes, std::int64_t bytes) {
                          note(uuid + ": " + std::to_string(processes) + " with " +
                               std::to_string(bytes));
                      }});
    }
    void start() { watch_->start(); }
    GpuWatch& operator*() { return *watch_; }

    GpuWatch::Readings read(std::vector<std::string> uuids) {
        std::promise<GpuWatch::Readings> said;
        watch_->read(std::move(uuids),
                     [&said](GpuWatch::Readings readings) { said.set_value(std::move(readings)); });
        return said.get_future().get();
    }
    /// Waits until so much was announced.
    std::vector<std::string> announced(std::size_t count) {
        std::unique_lock lock(mutex_);
        EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60),
                                      [&] { return announced_.size() >= count; }));
        return announced_;
    }

    FakeGpus gpus;

private:
    void note(std::string text) {
        const std::lock_guard lock(mutex_);
        announced_.push_back(std::move(text));
        changed_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> announced_;
    std::unique_ptr<Nvml> nvml_;
    std::unique_ptr<GpuWatch> watch_;
};

TEST(GpuWatch, FindsALostGpuOnce) {
    Watched watched("gpu GPU-a bytes=1\ngpu GPU-b bytes=1\n");
    watched.start();
    watched.gpus.set("gpu GPU-a bytes=1\ngpu GPU-b bytes=1 lost=1\n");
    EXPECT_EQ(watched.announced(1).front(),
              "GPU-b: the GPU is lost: it has fallen off the bus or cannot be reached any more");
    EXPECT_NE(watched.read({"GPU-b"}).front().fault, "");
    EXPECT_EQ(watched.read({"GPU-a"}).front().fault, "");
    EXPECT_EQ(watched.announced(1).size(), 1u);
}

TEST(GpuWatch, EarlierEccErrorsAreHistory) {
    Watched watched("gpu GPU-a bytes=1 ecc=2\n");
    watched.start();
    EXPECT_EQ(watched.read({"GPU-a"}).front().fault, "");
    watched.gpus.set("gpu GPU-a bytes=1 ecc=5\n");
    EXPECT_EQ(watched.announced(1).front(),
              "GPU-a: 3 uncorrectable memory errors (ECC) while the agent ran");
}

TEST(GpuWatch, HearsEventsBetweenTwoLooks) {
    Watched watched("gpu GPU-a bytes=1\n", kNever_ms);
    watched.start();
    watched.gpus.set("gpu GPU-a bytes=1\nxid GPU-a 48\n");
    EXPECT_EQ(watched.announced(1).front(),
              "GPU-a: the driver reported Xid 48 (uncorrectable memory error)");
}

TEST(GpuWatch, AnEventOfOneSliceIsOfThatSlice) {
    const std::string machine =
        "gpu GPU-a bytes=1 mig=1\nmig GPU-a MIG-1 bytes=1 instance=3\n"
        "mig GPU-a MIG-2 bytes=1 instance=4\n";
    Watched watched(machine, kNever_ms);
    watched.start();
    watched.gpus.set(machine + "xid GPU-a 94 4\nxid GPU-a 79\n");
    const std::vector<std::string> all = watched.announced(2);
    EXPECT_EQ(all[0], "MIG-2: the driver reported Xid 94");
    EXPECT_EQ(all[1], "MIG-1: the driver reported Xid 79 (the GPU has fallen off the bus)");
}

TEST(GpuWatch, SaysWhoElseIsThere) {
    Watched watched(
        "gpu GPU-a bytes=1\ngpu GPU-b bytes=1\ngpu GPU-c bytes=1\n"
        "process GPU-b 7 100\nprocess GPU-c 6 100\n");
    (*watched).set_used(GpuWatch::Users::kAttempts, {"GPU-b"});
    (*watched).set_used(GpuWatch::Users::kPools, {"GPU-c"});
    watched.start();
    watched.gpus.set(
        "gpu GPU-a bytes=1\ngpu GPU-b bytes=1\ngpu GPU-c bytes=1\n"
        "process GPU-b 7 100\nprocess GPU-c 6 100\nprocess GPU-a 8 30\nprocess GPU-a 9 12\n");
    EXPECT_EQ(watched.announced(1).front(), "GPU-a: 2 with 42");
    watched.gpus.set(
        "gpu GPU-a bytes=1\ngpu GPU-b bytes=1\ngpu GPU-c bytes=1\n"
        "process GPU-b 7 100\nprocess GPU-c 6 100\n");
    EXPECT_EQ(watched.announced(2).back(), "GPU-a: 0 with 0");
}

TEST(GpuWatch, TakesTheCounterOfEnergy) {
    Watched watched("gpu GPU-a bytes=1 energy=1000 power=1\n", kNever_ms);
    watched.start();
    EXPECT_EQ(watched.read({"GPU-a"}).front().energy_mj, 1000);
    watched.gpus.set("gpu GPU-a bytes=1 energy=4500 power=1\n");
    EXPECT_EQ(watched.read({"GPU-a"}).front().energy_mj, 4500);
}

TEST(GpuWatch, IntegratesPowerWithoutACounter) {
    using Clock = std::chrono::steady_clock;
    Watched watched("gpu GPU-a bytes=1 power=200000\ngpu GPU-b bytes=1\n");
    watched.start();
    const auto begin = Clock::now();
    const std::int64_t first = *watched.read({"GPU-a"}).front().energy_mj;
    const auto began = Clock::now();
    std::int64_t used = 0;
    while (used < 20'000) used = *watched.read({"GPU-a"}).front().energy_mj - first;
    const auto end = Clock::now();
    // 200 W are 200 mJ a millisecond; the looks fall between the moments measured here.
    const auto ms = [](Clock::duration time) {
        return static_cast<double>(
            std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
    };
    EXPECT_LE(static_cast<double>(used), 200 * (ms(end - begin) + 2));
    EXPECT_GE(static_cast<double>(used) + 200 * 2, 20'000);
    EXPECT_GT(ms(end - began), 0);
    EXPECT_FALSE(watched.read({"GPU-b"}).front().energy_mj) << "nothing is known of its power";
}

TEST(GpuWatch, StopsWhileNothingHappens) {
    Watched watched("gpu GPU-a bytes=1\n", kNever_ms);
    watched.start();
    (*watched).stop();
    (*watched).stop();
}

}  // namespace
}  // namespace tune::worker
