#include "tracker/auth/users/password_pool.h"

#include <utility>

#include "base/system/thread.h"

namespace tune::tracker {

PasswordPool::PasswordPool() {
    for (int i = 0; i < kHashThreads; ++i) threads_.emplace_back([this] { work(); });
}

PasswordPool::~PasswordPool() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        wake_.notify_all();
    }
    for (std::thread& thread : threads_) thread.join();
}

bool PasswordPool::post(const std::string& client, std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || jobs_.size() >= kHashesWaitingMax) return false;
    std::size_t& of_client = per_client_[client];
    if (of_client >= kHashesWaitingPerClientMax) return false;
    ++of_client;
    jobs_.push_back({client, std::move(job)});
    wake_.notify_one();
    return true;
}

void PasswordPool::work() {
    name_thread("passwords");
    // A hash is long work: whoever answers requests goes first.
    stand_back(5);
    for (;;) {
        Job job;
        {
            std::unique_lock lock(mutex_);
            wake_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
            if (jobs_.empty()) return;
            job = std::move(jobs_.front());
            jobs_.pop_front();
            if (const auto count = per_client_.find(job.client); --count->second == 0)
                per_client_.erase(count);
        }
        job.run();
    }
}

}  // namespace tune::tracker
