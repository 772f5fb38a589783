#pragma once
// A few threads that share out pieces of work. Internal to the loader.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tune::loader {

/// Jobs are worked on in the order in which they came, each by as many threads as are free, so that
/// the batch that is wanted first is done first and one large batch keeps every core busy.
/// Thread-safe.
class TaskCrew {
public:
    /// 0 threads: run() does the work itself.
    explicit TaskCrew(int threads);
    ~TaskCrew();
    TaskCrew(const TaskCrew&) = delete;
    TaskCrew& operator=(const TaskCrew&) = delete;

    /// Calls `piece` for each of 0 .. count - 1, on any threads at once; returns when all are done.
    /// `piece` must not throw.
    void run(std::size_t count, const std::function<void(std::size_t)>& piece);

private:
    struct Job {
        const std::function<void(std::size_t)>* piece = nullptr;
        std::size_t count = 0;
        std::size_t next = 0;  // to be begun
        std::size_t done = 0;
    };

    void work();

    std::mutex mutex_;
    std::condition_variable wanted_;
    std::condition_variable done_;
    std::deque<Job*> jobs_;  // guarded by mutex_, as are their numbers; each with pieces to begin
    bool is_stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
