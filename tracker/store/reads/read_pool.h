#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/stats.h"

namespace tune::tracker {

/// How reads give way where writes crowd. Every read keeps a processor busy for ms, and a thread
/// that gets none at once gets one at the kernel's next tick, up to 4 ms later: a commit, which
/// sleeps and wakes several times, then takes several times as long. Nor do they keep memory that
/// they do not need.
struct ReadManners {
    /// Jobs at a time while writes crowd.
    int jobs_beside_writes = 1;
    /// For so long after crowd() they do.
    std::chrono::milliseconds crowd{50};
    /// A job that waits for so long is run all the same.
    std::chrono::milliseconds patience{50};
    /// After so long without a job, what jobs took and freed goes back to the system.
    std::chrono::milliseconds quiet{2'000};

    /// Leaves one of this machine's processors to the writer and the network.
    [[nodiscard]] static ReadManners of_this_machine();
};

/// Read connections, opened when first needed, and threads that run read jobs. Thread-safe.
class ReadPool {
public:
    /// `thread_count` threads; two connections more, for callers on other threads.
    ReadPool(std::string path, int thread_count, int timeout_ms, ReadManners manners);
    ~ReadPool() { stop(); }
    ReadPool(const ReadPool&) = delete;
    ReadPool& operator=(const ReadPool&) = delete;

    /// As Store::post_read.
    [[nodiscard]] bool post(std::function<void()> job);
    /// Runs what is queued, then ends the threads. Leases still work. Idempotent.
    void stop();

    /// Says that writes wait for each other. Cost: a look at the clock.
    void crowd();

    /// A connection for one read; waits while all are in use.
    class Lease {
    public:
        Lease(ReadPool& pool, std::unique_ptr<sqlite::Connection> connection)
            : pool_(&pool), connection_(std::move(connection)) {}
        ~Lease();
        Lease(Lease&&) = default;
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        Lease& operator=(Lease&&) = delete;
        [[nodiscard]] sqlite::Connection& connection() { return *connection_; }

    private:
        ReadPool* pool_;
        std::unique_ptr<sqlite::Connection> connection_;
    };
    [[nodiscard]] Result<Lease> lease();

    /// Holds new leases back until resume(), and waits for those that are out, at most `wait`.
    /// Whether none is out. One thread at a time.
    [[nodiscard]] bool pause(std::chrono::milliseconds wait);
    void resume();
    [[nodiscard]] bool is_in_use();

    /// Fills in what concerns reads.
    void describe(StoreStatistics& statistics);

private:
    void run();
    /// Until there is a job, or the pool stops.
    void wait_for_job(std::unique_lock<std::mutex>& lock);
    /// The first of jobs_. REQUIRES: there is one.
    void run_one(std::unique_lock<std::mutex>& lock);
    /// Until a job may be run beside the writes, or has waited long enough.
    void stand_aside(std::unique_lock<std::mutex>& lock);
    void give_back(std::unique_ptr<sqlite::Connection> connection);
    [[nodiscard]] Result<std::unique_ptr<sqlite::Connection>> open() const;

    const std::string path_;
    const int timeout_ms_;
    const ReadManners manners_;
    const std::size_t connections_max_;
    std::mutex mutex_;
    std::condition_variable jobs_changed_;
    std::condition_variable job_ended_;
    std::condition_variable connections_changed_;
    std::deque<std::function<void()>> jobs_;                 // guarded by mutex_
    std::vector<std::unique_ptr<sqlite::Connection>> idle_;  // guarded by mutex_
    std::size_t connection_count_ = 0;                       // guarded by mutex_
    int running_ = 0;                                        // jobs; guarded by mutex_
    bool may_hold_freed_ = false;                            // memory; guarded by mutex_
    std::chrono::steady_clock::time_point last_end_;         // of a job; guarded by mutex_
    std::uint64_t rejected_ = 0;                             // guarded by mutex_
    bool is_stopping_ = false;                               // guarded by mutex_
    bool is_paused_ = false;                                 // guarded by mutex_
    std::atomic<std::chrono::steady_clock::time_point> crowd_end_{};
    std::vector<std::thread> threads_;
};

}  // namespace tune::tracker
