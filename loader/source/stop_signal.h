#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tune::loader {

/// Told once that everything is to end; wakes who pauses. Thread-safe.
class StopSignal {
public:
    [[nodiscard]] bool is_set() const { return is_set_.load(std::memory_order_acquire); }

    void set() {
        {
            const std::lock_guard lock(mutex_);
            is_set_.store(true, std::memory_order_release);
        }
        changed_.notify_all();
    }

    /// Waits for `time` or for set(), whichever is first; whether it was set().
    [[nodiscard]] bool wait_for(std::chrono::milliseconds time) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, time, [this] { return is_set(); });
    }

private:
    std::atomic<bool> is_set_ = false;
    std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace tune::loader
