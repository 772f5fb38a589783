#include "loader/cache/supply/claim_waiters.h"

#include <pthread.h>

#include "base/system/thread.h"

namespace tune::loader {
namespace {

/// About as many as are looked ahead to.
constexpr std::size_t kWaitersMax = 64;

/// Lets pthread_cancel end the calling thread while it lives.
class Cancellable {
public:
    Cancellable() { ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr); }
    ~Cancellable() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr); }
    Cancellable(const Cancellable&) = delete;
    Cancellable& operator=(const Cancellable&) = delete;
};

}  // namespace

ClaimWaiters::~ClaimWaiters() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
    // They may wait in the kernel for another process, which only this ends.
    for (std::thread& thread : threads_) ::pthread_cancel(thread.native_handle());
    for (std::thread& thread : threads_) thread.join();
}

void ClaimWaiters::wait_for(std::size_t unit) {
    const std::lock_guard lock(mutex_);
    units_.push_back(unit);
    if (units_.size() > idle_ && threads_.size() < kWaitersMax && !is_stopping_)
        threads_.emplace_back([this] { work(); });
    else
        changed_.notify_one();
}

void ClaimWaiters::work() {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    name_thread("tune-claims");
    std::unique_lock lock(mutex_);
    while (true) {
        ++idle_;
        changed_.wait(lock, [this] { return is_stopping_ || !units_.empty(); });
        --idle_;
        if (is_stopping_) return;
        const std::size_t unit = units_.front();
        units_.pop_front();
        lock.unlock();
        {
            const Cancellable cancellable;
            wait_(unit);
        }
        claimed_(unit);
        lock.lock();
    }
}

}  // namespace tune::loader
