#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace tune::cli {

/// A line on the terminal that says what is being done and for how long, once that takes more than
/// a second; gone when the object is. Nothing where stderr is no terminal. Not for what prints
/// meanwhile. Threads: one of its own.
class WaitLine {
public:
    /// `what`: "reading trials".
    explicit WaitLine(std::string what);
    ~WaitLine();
    WaitLine(const WaitLine&) = delete;
    WaitLine& operator=(const WaitLine&) = delete;

    /// What is being done now.
    void say(std::string what);
    /// How far it is.
    void at(std::size_t done, std::size_t total);

private:
    void run();
    [[nodiscard]] std::string text() const;  // under mutex_

    std::mutex mutex_;
    std::condition_variable wake_;
    std::string what_;
    std::size_t done_ = 0;
    std::size_t total_ = 0;  // 0: unknown
    bool is_over_ = false;
    std::int64_t started_ms_ = 0;
    std::thread thread_;
};

}  // namespace tune::cli
