#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Commands and points that wait for the writer: enough that it never waits for the reader, few
/// enough that they take some 30 MB.
inline constexpr std::size_t kFeedCommandsMax = 256;
inline constexpr std::size_t kFeedPointsMax = 1u << 20;

/// Submits commands without waiting for each one's fsync, a bounded number at a time. The first
/// that fails is kept; nothing is submitted after it. One thread.
class StoreFeed {
public:
    explicit StoreFeed(Store& store) : store_(store) {}
    /// Waits for what was submitted.
    ~StoreFeed();
    StoreFeed(const StoreFeed&) = delete;
    StoreFeed& operator=(const StoreFeed&) = delete;

    /// `points`: metric points in the command. Errors: that of an earlier command.
    [[nodiscard]] Result<void> submit(Command command, std::size_t points = 0);
    /// Waits until all is on disk. Errors: the first of any command.
    [[nodiscard]] Result<void> drain();

private:
    void wait_all(std::unique_lock<std::mutex>& lock);

    Store& store_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t waiting_ = 0;         // guarded by mutex_
    std::size_t waiting_points_ = 0;  // guarded by mutex_
    std::optional<Error> failed_;     // guarded by mutex_
};

}  // namespace tune::tracker
