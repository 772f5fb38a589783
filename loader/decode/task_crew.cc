#include "loader/decode/task_crew.h"

namespace tune::loader {

TaskCrew::TaskCrew(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

TaskCrew::~TaskCrew() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    wanted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void TaskCrew::run(std::size_t count, const std::function<void(std::size_t)>& piece) {
    if (threads_.empty()) {
        for (std::size_t i = 0; i < count; ++i) piece(i);
        return;
    }
    if (count == 0) return;
    Job job{&piece, count};
    std::unique_lock lock(mutex_);
    jobs_.push_back(&job);
    wanted_.notify_all();
    done_.wait(lock, [&] { return job.done == job.count; });
}

void TaskCrew::work() {
    std::unique_lock lock(mutex_);
    while (true) {
        wanted_.wait(lock, [this] { return is_stopping_ || !jobs_.empty(); });
        if (is_stopping_) return;
        Job& job = *jobs_.front();
        const std::size_t i = job.next++;
        if (job.next == job.count) jobs_.pop_front();
        lock.unlock();
        (*job.piece)(i);
        lock.lock();
        // Under the lock: run() may return, and the job be gone, as soon as it is let go.
        if (++job.done == job.count) done_.notify_all();
    }
}

}  // namespace tune::loader
