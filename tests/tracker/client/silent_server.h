#pragma once
// A server that takes connections and never sends anything.

#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/tracker/client/listener.h"

namespace tune::tracker {

class SilentServer {
public:
    SilentServer() : thread_([this] { run(); }) {}
    ~SilentServer() {
        listener_.shut_down();
        thread_.join();
        for (const int fd : taken_) ::close(fd);
    }
    SilentServer(const SilentServer&) = delete;
    SilentServer& operator=(const SilentServer&) = delete;

    [[nodiscard]] std::uint16_t port() const { return listener_.port(); }

    /// Returns when so many connections were taken.
    void wait_for(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return taken_.size() >= count; });
    }

private:
    void run() {
        for (int fd = 0; (fd = listener_.accept()) >= 0;) {
            const std::lock_guard lock(mutex_);
            taken_.push_back(fd);
            changed_.notify_all();
        }
    }

    Listener listener_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<int> taken_;
    std::thread thread_;
};

}  // namespace tune::tracker
