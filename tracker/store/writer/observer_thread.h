#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tracker/store/commands/events.h"

namespace tune::tracker {

/// Hands commits to the observers, in order, on a thread of its own. Thread-safe.
class ObserverThread {
public:
    ObserverThread() = default;
    ~ObserverThread() { stop(); }
    ObserverThread(const ObserverThread&) = delete;
    ObserverThread& operator=(const ObserverThread&) = delete;

    void start();
    /// Delivers what is queued, then ends the thread. Idempotent.
    void stop();

    /// It is told of the commits that are queued from now on, perhaps also of some before.
    void add(CommitObserver* observer);

    /// Says that a commit will be delivered; before its commands are answered, so that wait()
    /// counts it.
    void announce();
    /// Queues the announced commit; waits while kObserverQueueMax commits are queued.
    void deliver(std::int64_t position, std::vector<Event> events, bool permissions_changed);
    /// Until all announced commits were seen by the observers.
    void wait();

    /// Commits that were not handed to all observers yet.
    [[nodiscard]] std::size_t waiting();

    [[nodiscard]] bool is_this_thread() const {
        return std::this_thread::get_id() == thread_.get_id();
    }

private:
    struct Queued {
        std::int64_t position = 0;
        std::vector<Event> events;
        bool permissions_changed = false;
    };

    void run();

    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<CommitObserver*> observers_;  // guarded by mutex_; grows only
    std::deque<Queued> queue_;                // guarded by mutex_
    std::int64_t announced_ = 0;              // guarded by mutex_
    std::int64_t seen_ = 0;                   // guarded by mutex_
    bool is_stopping_ = false;                // guarded by mutex_
};

}  // namespace tune::tracker
