// Two things bound the reads: threads for jobs and connections for leases. There are two
// connections more than threads, so that callers on other threads do not wait for jobs alone. Jobs
// give way while writes crowd, but for `patience` at most, so that a crowd cannot starve them;
// pause() waits for leases, not for jobs, since only a lease holds the write-ahead log.

#include "tracker/store/reads/read_pool.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "base/system/thread.h"
#include "tracker/store/reads/search_page.h"
#include "tracker/store/store.h"

namespace tune::tracker {
namespace {

constexpr int kReaderCacheKib = 4096;
constexpr std::size_t kSpareConnections = 2;
/// A search or a history keeps a processor busy for ms; what a training step waits for is a write.
constexpr int kReaderSteps = 5;

}  // namespace

ReadManners ReadManners::of_this_machine() {
    ReadManners manners;
    manners.jobs_beside_writes =
        std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1);
    return manners;
}

ReadPool::ReadPool(std::string path, int thread_count, int timeout_ms, ReadManners manners)
    : path_(std::move(path)),
      timeout_ms_(timeout_ms),
      manners_(manners),
      connections_max_(static_cast<std::size_t>(thread_count) + kSpareConnections) {
    for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { run(); });
}

bool ReadPool::post(std::function<void()> job) {
    {
        const std::lock_guard lock(mutex_);
        if (is_stopping_ || jobs_.size() >= kReadQueueMax) {
            ++rejected_;
            return false;
        }
        jobs_.push_back(std::move(job));
    }
    jobs_changed_.notify_one();
    return true;
}

void ReadPool::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        jobs_changed_.notify_all();
        job_ended_.notify_all();
    }
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
}

void ReadPool::run() {
    name_thread("reader");
    stand_back(kReaderSteps);
    std::unique_lock lock(mutex_);
    for (;;) {
        wait_for_job(lock);
        if (jobs_.empty()) return;
        stand_aside(lock);
        if (jobs_.empty()) continue;  // another thread took it meanwhile
        run_one(lock);
    }
}

void ReadPool::wait_for_job(std::unique_lock<std::mutex>& lock) {
    const auto is_over = [this] { return is_stopping_ || !jobs_.empty(); };
    while (may_hold_freed_) {
        if (jobs_changed_.wait_until(lock, last_end_ + manners_.quiet, is_over)) return;
        if (std::chrono::steady_clock::now() < last_end_ + manners_.quiet) continue;
        may_hold_freed_ = false;
        lock.unlock();
        // malloc gives back what is free at the end of a thread's memory only. There lie pages and
        // statements that connections keep, with what large answers took below them.
        ::malloc_trim(0);
        lock.lock();
    }
    jobs_changed_.wait(lock, is_over);
}

void ReadPool::run_one(std::unique_lock<std::mutex>& lock) {
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    ++running_;
    lock.unlock();
    job();
    job = nullptr;  // what it holds may be much
    lock.lock();
    --running_;
    may_hold_freed_ = true;
    last_end_ = std::chrono::steady_clock::now();
    job_ended_.notify_one();
}

void ReadPool::stand_aside(std::unique_lock<std::mutex>& lock) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= crowd_end_.load(std::memory_order_relaxed)) return;
    job_ended_.wait_until(lock, now + manners_.patience, [this] {
        return is_stopping_ || running_ < manners_.jobs_beside_writes;
    });
}

void ReadPool::crowd() {
    crowd_end_.store(std::chrono::steady_clock::now() + manners_.crowd, std::memory_order_relaxed);
}

Result<std::unique_ptr<sqlite::Connection>> ReadPool::open() const {
    sqlite::ConnectionOptions options;
    options.access = sqlite::Access::kReadOnly;
    options.cache_kib = kReaderCacheKib;
    TUNE_TRY(connection, sqlite::Connection::open(path_, options));
    TUNE_TRY_VOID(add_search_functions(*connection));
    return connection;
}

Result<ReadPool::Lease> ReadPool::lease() {
    std::unique_lock lock(mutex_);
    connections_changed_.wait(lock, [this] {
        return !is_paused_ && (!idle_.empty() || connection_count_ < connections_max_);
    });
    std::unique_ptr<sqlite::Connection> connection;
    if (!idle_.empty()) {
        connection = std::move(idle_.back());
        idle_.pop_back();
    } else {
        ++connection_count_;
        lock.unlock();
        Result<std::unique_ptr<sqlite::Connection>> opened = open();
        if (!opened) {
            lock.lock();
            --connection_count_;
            connections_changed_.notify_all();
            return std::move(opened).error();
        }
        connection = std::move(*opened);
    }
    connection->set_time_limit(timeout_ms_);
    return Lease(*this, std::move(connection));
}

void ReadPool::describe(StoreStatistics& statistics) {
    const std::lock_guard lock(mutex_);
    statistics.read_jobs_waiting = jobs_.size();
    statistics.read_jobs_rejected = rejected_;
    statistics.read_connections_open = connection_count_;
    statistics.read_connections_in_use = connection_count_ - idle_.size();
}

void ReadPool::give_back(std::unique_ptr<sqlite::Connection> connection) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
    // All: a lease and pause() may both be waiting.
    connections_changed_.notify_all();
}

bool ReadPool::pause(std::chrono::milliseconds wait) {
    std::unique_lock lock(mutex_);
    is_paused_ = true;
    return connections_changed_.wait_for(lock, wait,
                                         [this] { return connection_count_ == idle_.size(); });
}

void ReadPool::resume() {
    const std::lock_guard lock(mutex_);
    is_paused_ = false;
    connections_changed_.notify_all();
}

bool ReadPool::is_in_use() {
    const std::lock_guard lock(mutex_);
    return connection_count_ != idle_.size();
}

ReadPool::Lease::~Lease() {
    if (connection_ != nullptr) pool_->give_back(std::move(connection_));
}

}  // namespace tune::tracker
