#pragma once
// Waiting for what other processes fetch. Internal to the loader.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tune::loader {

/// Each unit that another process has claimed gets a thread that waits for it in the kernel: one
/// process that stalls hides nothing that others have finished. Thread-safe.
class ClaimWaiters {
public:
    /// `wait(unit)` waits for the claim, and is a cancellation point of pthread_cancel;
    /// `claimed(unit)` is told when it is ours. Both run on threads of this object.
    ClaimWaiters(std::function<void(std::size_t)> wait, std::function<void(std::size_t)> claimed)
        : wait_(std::move(wait)), claimed_(std::move(claimed)) {}
    /// Ends the waits.
    ~ClaimWaiters();
    ClaimWaiters(const ClaimWaiters&) = delete;
    ClaimWaiters& operator=(const ClaimWaiters&) = delete;

    void wait_for(std::size_t unit);

private:
    void work();

    const std::function<void(std::size_t)> wait_;
    const std::function<void(std::size_t)> claimed_;

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_stopping_ = false;
    std::deque<std::size_t> units_;  // not yet waited for
    std::size_t idle_ = 0;
    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
