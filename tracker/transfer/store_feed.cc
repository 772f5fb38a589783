#include "tracker/transfer/store_feed.h"

#include <utility>

namespace tune::tracker {

StoreFeed::~StoreFeed() {
    std::unique_lock lock(mutex_);
    wait_all(lock);
}

void StoreFeed::wait_all(std::unique_lock<std::mutex>& lock) {
    changed_.wait(lock, [this] { return waiting_ == 0; });
}

Result<void> StoreFeed::submit(Command command, std::size_t points) {
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] {
            return waiting_ == 0 ||
                   (waiting_ < kFeedCommandsMax && waiting_points_ + points <= kFeedPointsMax);
        });
        if (failed_) return *failed_;
        ++waiting_;
        waiting_points_ += points;
    }
    store_.submit(std::move(command), [this, points](const Result<Outcome>& outcome) {
        const std::lock_guard lock(mutex_);
        if (!outcome && !failed_) failed_ = outcome.error();
        --waiting_;
        waiting_points_ -= points;
        changed_.notify_one();
    });
    return {};
}

Result<void> StoreFeed::drain() {
    std::unique_lock lock(mutex_);
    wait_all(lock);
    if (failed_) return *failed_;
    return {};
}

}  // namespace tune::tracker
