#include "worker/agent/devices/gpu_accounts.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <future>

#include "tests/worker/agent/devices/fake_gpus.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/devices/gpu_memory_peaks.h"

namespace tune::worker {
namespace {

constexpr std::uint64_t kSerial = 5;
constexpr int kNoLooks_ms = 3'600'000;

/// Accounts of attempts on a fake machine.
class GpuAccountsTest : public testing::Test {
protected:
    void build(const std::string& lines) {
        gpus_.set(lines);
        nvml_ = FakeGpus::load();
        ASSERT_NE(nvml_, nullptr);
        watch_ =
            std::make_unique<GpuWatch>(*nvml_, nvml_->devices(), kNoLooks_ms,
                                       GpuEvents{[](const std::string&, const std::string&) {},
                                                 [](const std::string&, int, std::int64_t) {}});
        watch_->start();
        accounts_ = std::make_unique<GpuAccounts>(
            *loop_, watch_.get(), nvml_->devices(),
            GpuAccountEvents{
                .report =
                    [this](std::uint64_t, const std::vector<tuner::ReportedMetric>& metrics) {
                        reported_ = metrics;
                    },
                .settled =
                    [this](std::uint64_t serial) {
                        fault_ = accounts_->fault(serial);
                        accounts_->forget(serial);
                        loop_->quit();
                    }});
    }
    /// Begins, and ends when the first reading is in the attempt's folder, the machine being
    /// another then. The loop runs until the account is settled.
    void run(const GpuUse& use, const std::string& at_the_end) {
        accounts_->open(kSerial, use);
        accounts_->begin(kSerial, AttemptFiles(folder_.path()));
        std::function<void()> look = [&] {
            if (!std::filesystem::exists(folder_.path() / "energy.json"))
                return void(loop_->at(loop_->now_ms() + 1, look));
            gpus_.set(at_the_end);
            accounts_->end(kSerial);
            EXPECT_FALSE(accounts_->is_settled(kSerial));
        };
        look();
        loop_->run();
    }
    /// "key=value@step".
    std::string reported() {
        std::string all;
        for (const tuner::ReportedMetric& metric : reported_) {
            char one[128];
            std::snprintf(one, sizeof one, "%s=%g@%d", metric.key.c_str(), metric.value,
                          static_cast<int>(metric.step));
            all += one;
        }
        return all;
    }

    FakeGpus gpus_{""};
    Scratch folder_;
    std::unique_ptr<Loop> loop_ = Loop::create().value();
    std::unique_ptr<Nvml> nvml_;
    std::unique_ptr<GpuAccounts> accounts_;
    std::unique_ptr<GpuWatch> watch_;
    std::vector<tuner::ReportedMetric> reported_;
    std::string fault_;
};

TEST_F(GpuAccountsTest, CountsItsPartOfTheJoules) {
    build("gpu GPU-a bytes=1 energy=1000\n");
    run({.gpus = {"GPU-a"}, .share = 0.5, .attempt = 3}, "gpu GPU-a bytes=1 energy=5000\n");
    EXPECT_EQ(reported(), "tune.energy_joules=2@3");
    EXPECT_EQ(fault_, "");
    EXPECT_TRUE(accounts_->is_settled(kSerial)) << "nobody knows it any more";
}

TEST_F(GpuAccountsTest, OfAGpuGivenByBytesItsPartIsThatOfTheMemory) {
    build("gpu GPU-a bytes=1000 energy=1000\n");
    run({.gpus = {"GPU-a"},
         .share = kPartOfGpu,
         .granted = {{.uuid = "GPU-a", .bytes = 250}},
         .attempt = 1},
        "gpu GPU-a bytes=1000 energy=5000\n");
    EXPECT_EQ(reported(), "tune.energy_joules=1@1");
}

TEST_F(GpuAccountsTest, AnAdoptedAttemptBeganWithTheReadingInItsFolder) {
    build("gpu GPU-a bytes=1 energy=9000\n");
    folder_.append("energy.json", R"({"GPU-a":4000})");
    accounts_->open(kSerial, {.gpus = {"GPU-a"}});
    accounts_->begin(kSerial, AttemptFiles(folder_.path()));
    // The watch answers in order: the first reading is there before the last one.
    loop_->at(loop_->now_ms(), [this] {
        std::promise<void> read;
        watch_->read({"GPU-a"}, [&read](const GpuWatch::Readings&) { read.set_value(); });
        read.get_future().wait();
        loop_->post([this] { accounts_->end(kSerial); });
    });
    loop_->run();
    EXPECT_EQ(reported(), "tune.energy_joules=5@1");
    EXPECT_EQ(folder_.read("energy.json"), R"({"GPU-a":4000})");
}

TEST_F(GpuAccountsTest, AFaultThatIsSeenAtTheEndIsTheAttempts) {
    build("gpu GPU-a bytes=1 energy=1000\n");
    run({.gpus = {"GPU-a"}}, "gpu GPU-a bytes=1 lost=1\n");
    EXPECT_TRUE(fault_.starts_with("GPU-a: the GPU is lost")) << fault_;
    EXPECT_EQ(reported(), "");
}

TEST_F(GpuAccountsTest, ADriverThatDoesNotAnswerHoldsUpNoEnd) {
    build("gpu GPU-a bytes=1 energy=1000\n");
    watch_->stop();  // what is asked of it is dropped
    accounts_->open(kSerial, {.gpus = {"GPU-a"}});
    accounts_->set_fault(kSerial, "GPU-a: Xid 48");
    accounts_->end(kSerial);
    loop_->run();
    EXPECT_EQ(fault_, "GPU-a: Xid 48") << "it stays";
    EXPECT_EQ(reported(), "");
}

TEST(GpuAccounts, WithoutGpusNothingIsToBeSettled) {
    const std::unique_ptr<Loop> loop = Loop::create().value();
    GpuAccounts accounts(*loop, nullptr, {}, {});
    accounts.open(kSerial, {.gpus = {"GPU-a"}});
    accounts.end(kSerial);
    EXPECT_TRUE(accounts.is_settled(kSerial));
}

TEST(GpuMemoryPeaks, ATrialMaySayItItself) {
    const std::unique_ptr<Loop> loop = Loop::create().value();
    GpuMemoryPeaks peaks(*loop, nullptr);
    LineFindings findings;
    for (const double value : {5e9, 7e9, 6e9, -1.0, 1e300})
        findings.metrics.push_back({"gpu_memory_peak_bytes", value, 0, 0});
    findings.metrics.push_back({"loss", 9e9, 0, 0});
    peaks.note(kSerial, findings);
    EXPECT_EQ(peaks.peak_bytes(kSerial), 7'000'000'000);
    peaks.forget(kSerial);
    EXPECT_EQ(peaks.peak_bytes(kSerial), 0);
}

}  // namespace
}  // namespace tune::worker
