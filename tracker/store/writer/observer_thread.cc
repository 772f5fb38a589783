#include "tracker/store/writer/observer_thread.h"

#include <utility>

#include "base/system/thread.h"
#include "tracker/store/store.h"

namespace tune::tracker {

void ObserverThread::start() {
    thread_ = std::thread([this] { run(); });
}

void ObserverThread::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void ObserverThread::add(CommitObserver* observer) {
    const std::lock_guard lock(mutex_);
    observers_.push_back(observer);
}

void ObserverThread::announce() {
    const std::lock_guard lock(mutex_);
    ++announced_;
}

void ObserverThread::deliver(std::int64_t position, std::vector<Event> events,
                             bool permissions_changed) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.size() < kObserverQueueMax; });
    queue_.push_back({position, std::move(events), permissions_changed});
    lock.unlock();  // first: who is woken wants it
    changed_.notify_all();
}

void ObserverThread::wait() {
    std::unique_lock lock(mutex_);
    const std::int64_t target = announced_;
    changed_.wait(lock, [&] { return seen_ >= target; });
}

std::size_t ObserverThread::waiting() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(announced_ - seen_);
}

void ObserverThread::run() {
    name_thread("observers");
    std::vector<CommitObserver*> observers;  // a copy: they are called without the lock
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return is_stopping_ || !queue_.empty(); });
        if (queue_.empty()) return;
        const Queued next = std::move(queue_.front());
        queue_.pop_front();
        if (observers.size() != observers_.size()) observers = observers_;
        changed_.notify_all();
        lock.unlock();
        for (CommitObserver* observer : observers) {
            if (next.permissions_changed) observer->on_permissions_changed();
            if (!next.events.empty()) observer->on_commit(Commit{next.position, next.events});
        }
        lock.lock();
        ++seen_;
        changed_.notify_all();
    }
}

}  // namespace tune::tracker
