#include "tuner/study/registry/bookkeeping/work_pool.h"

#include <utility>

#include "base/system/thread.h"

namespace tune::tuner {

WorkPool::WorkPool(Options options) {
    for (int i = 0; i < options.threads; ++i)
        threads_.emplace_back([this, options] { run(options); });
}

WorkPool::~WorkPool() {
    stop();
}

void WorkPool::post(std::function<void()> work) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!stopped_) {
            waiting_.push_back(std::move(work));
            work = nullptr;
        }
    }
    if (work) return work();
    wake_.notify_one();
}

void WorkPool::stop() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_)
        if (thread.joinable()) thread.join();
    // What the last thread posted after it was told to end, or others while it ended.
    std::deque<std::function<void()>> rest;
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopped_ = true;
        rest.swap(waiting_);
    }
    for (const std::function<void()>& work : rest) work();
}

void WorkPool::run(const Options& options) {
    name_thread(options.name);
    if (options.stand_back > 0) stand_back(options.stand_back);
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        std::function<void()> work = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        work();
        work = nullptr;
        lock.lock();
    }
}

}  // namespace tune::tuner
