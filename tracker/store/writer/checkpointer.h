#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// Copies the write-ahead log into the database on a thread of its own, so that no commit waits
/// for it. Thread-safe.
class Checkpointer {
public:
    explicit Checkpointer(std::unique_ptr<sqlite::Connection> connection);
    ~Checkpointer() { stop(); }
    Checkpointer(const Checkpointer&) = delete;
    Checkpointer& operator=(const Checkpointer&) = delete;

    /// Starts a checkpoint if none runs; does not wait.
    void request();
    void stop();

    /// Pages at the log's beginning that the last checkpoint left in the database.
    [[nodiscard]] int copied_pages() const { return copied_pages_.load(); }
    /// The log has begun anew: nothing of it is copied.
    void log_restarted() { copied_pages_ = 0; }
    /// Whether a checkpoint has ended since the last call.
    [[nodiscard]] bool take_finished() { return has_finished_.exchange(false); }

private:
    void run();

    std::unique_ptr<sqlite::Connection> connection_;
    std::atomic<int> copied_pages_{0};
    std::atomic<bool> has_finished_{false};
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_requested_ = false;  // guarded by mutex_
    bool is_stopping_ = false;   // guarded by mutex_
    std::thread thread_;
};

}  // namespace tune::tracker
