#pragma once
// A few threads for work that may wait for a disk, so that network threads never do.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tune::tracker {

/// Runs jobs in the order in which they came, on `threads` threads. The queue is not bounded here:
/// each caller has at most one job under way per connection, so kConnectionsMax bounds it.
/// Thread-safe. The destructor runs what is queued, then joins.
class WorkPool {
public:
    explicit WorkPool(int threads);
    ~WorkPool();
    WorkPool(const WorkPool&) = delete;
    WorkPool& operator=(const WorkPool&) = delete;

    void post(std::function<void()> job);

private:
    void run();

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::function<void()>> jobs_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tune::tracker
