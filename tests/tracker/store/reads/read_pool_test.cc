#include "tracker/store/reads/read_pool.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace tune::tracker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr int kThreads = 3;

/// A pool whose jobs read nothing, and how many of them ran at a time.
class ReadPoolTest : public testing::Test {
protected:
    void start(ReadManners manners) { pool_.emplace("", kThreads, 1'000, manners); }

    /// One that keeps a processor busy for a while, as a read does.
    void post_busy_job() {
        ASSERT_TRUE(pool_->post([this] {
            const int now = ++running_;
            most_ = std::max(most_.load(), now);
            const auto begin = std::chrono::steady_clock::now();
            while (std::chrono::steady_clock::now() - begin < std::chrono::microseconds(200)) {
            }
            --running_;
            ++done_;
        }));
    }

    /// Two jobs of which the first ends only when the second has begun.
    void run_two_that_meet() {
        std::promise<void> begun;
        std::promise<void> met;
        ASSERT_TRUE(pool_->post([&] {
            begun.get_future().wait();
            met.set_value();
        }));
        ASSERT_TRUE(pool_->post([&] { begun.set_value(); }));
        met.get_future().wait();
        pool_->stop();
    }

    std::atomic<int> running_{0};
    std::atomic<int> most_{0};
    std::atomic<int> done_{0};
    std::optional<ReadPool> pool_;
};

TEST_F(ReadPoolTest, WhereWritesCrowdJobsLeaveAProcessorToThem) {
    start({.jobs_beside_writes = 1, .crowd = hours(1), .patience = hours(1)});
    pool_->crowd();
    for (int i = 0; i < 100; ++i) post_busy_job();
    std::promise<void> last;  // stop() lets what is queued run at once
    ASSERT_TRUE(pool_->post([&] { last.set_value(); }));
    last.get_future().wait();
    EXPECT_EQ(most_, 1);
    pool_->stop();
    EXPECT_EQ(done_, 100);
}

TEST_F(ReadPoolTest, OtherwiseJobsRunBesideEachOther) {
    start({.jobs_beside_writes = 1, .crowd = hours(1), .patience = hours(1)});
    run_two_that_meet();
}

TEST_F(ReadPoolTest, ACrowdPassesAway) {
    start({.jobs_beside_writes = 1, .crowd = milliseconds(0), .patience = hours(1)});
    pool_->crowd();
    run_two_that_meet();
}

TEST_F(ReadPoolTest, AJobStandsAsideForATimeOnly) {
    start({.jobs_beside_writes = 1, .crowd = hours(1), .patience = milliseconds(1)});
    pool_->crowd();
    run_two_that_meet();
}

/// Bytes of this process in memory.
std::size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t all = 0;
    std::size_t resident = 0;
    file >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(ReadPoolTest, AfterAQuietTimeFreedMemoryGoesBackToTheSystem) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a sanitizer's malloc keeps what is freed";
#endif
    constexpr std::size_t kBlocks = 16'000;
    constexpr std::size_t kBytes = 4'000;
    start({.quiet = milliseconds(1)});
    std::unique_ptr<char[]> kept;  // above the others, as a page that a connection keeps
    std::size_t full = 0;
    std::promise<void> done;
    ASSERT_TRUE(pool_->post([&] {
        std::vector<std::unique_ptr<char[]>> answer;
        for (std::size_t i = 0; i < kBlocks; ++i) {
            answer.push_back(std::make_unique<char[]>(kBytes));  // zeroed: in memory
        }
        kept = std::make_unique<char[]>(kBytes);
        full = resident_bytes();
        answer.clear();
        done.set_value();
    }));
    done.get_future().wait();
    const std::size_t target = full - kBlocks * kBytes / 2;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (resident_bytes() > target && std::chrono::steady_clock::now() < patience)
        std::this_thread::sleep_for(milliseconds(1));
    EXPECT_LT(resident_bytes(), target);
}

TEST_F(ReadPoolTest, StopRunsJobsThatStandAside) {
    start({.jobs_beside_writes = 1, .crowd = hours(1), .patience = hours(1)});
    pool_->crowd();
    std::promise<void> begun;
    std::promise<void> release;
    ASSERT_TRUE(pool_->post([&] {
        begun.set_value();
        release.get_future().wait();
    }));
    begun.get_future().wait();
    for (int i = 0; i < 10; ++i) post_busy_job();
    auto stopped = std::async(std::launch::async, [this] { pool_->stop(); });
    while (done_ < 10) std::this_thread::yield();  // beside the first one
    release.set_value();
    stopped.get();
}

}  // namespace
}  // namespace tune::tracker
