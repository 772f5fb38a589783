#include "tracker/store/writer/checkpointer.h"

#include <utility>

#include "base/log.h"
#include "base/system/thread.h"

namespace tune::tracker {

Checkpointer::Checkpointer(std::unique_ptr<sqlite::Connection> connection)
    : connection_(std::move(connection)), thread_([this] { run(); }) {}

void Checkpointer::request() {
    const std::lock_guard lock(mutex_);
    is_requested_ = true;
    changed_.notify_all();
}

void Checkpointer::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void Checkpointer::run() {
    name_thread("checkpointer");
    bool has_warned = false;
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return is_stopping_ || is_requested_; });
        if (is_stopping_) return;
        is_requested_ = false;
        lock.unlock();
        const Result<sqlite::LogPages> done = connection_->checkpoint();
        if (done) copied_pages_ = done->copied;
        has_finished_ = true;
        // The log keeps the data meanwhile; one line a streak of failures is enough.
        if (!done && !has_warned) log_warning("Checkpoint: " + done.error().text());
        has_warned = !done;
        lock.lock();
    }
}

}  // namespace tune::tracker
