#pragma once
// One thread that waits for descriptors, times and posted tasks (epoll). All state of the agent's
// attempts lives on it, so that state needs no locks.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::worker {

/// `post` and `quit` may be called from any thread; everything else on the thread inside `run`, or
/// before it starts. Nothing here polls: the thread sleeps until something is due.
class Loop {
public:
    using Task = std::function<void()>;
    using TimerId = std::pair<std::int64_t, std::uint64_t>;
    static constexpr TimerId kNoTimer = {0, 0};

    /// Errors: kResourceExhausted when the system refuses descriptors.
    [[nodiscard]] static Result<std::unique_ptr<Loop>> create();

    /// Runs `task` on the loop, after those posted before. Dropped if the loop has ended.
    void post(Task task);

    /// Calls `on_readable` whenever `fd` can be read (level-triggered), until unwatch. The caller
    /// keeps `fd` open until then. Errors: kResourceExhausted.
    [[nodiscard]] Result<void> watch(int fd, Task on_readable);
    void unwatch(int fd);

    /// Calls `task` once at `at_ms` of now_ms(). O(log timers).
    TimerId at(std::int64_t at_ms, Task task);
    /// A timer that has fired, or kNoTimer, is ignored.
    void cancel(TimerId timer);

    /// Milliseconds that count suspend; see Clock::monotonic_ms.
    [[nodiscard]] std::int64_t now_ms() const { return clock_.monotonic_ms(); }
    [[nodiscard]] std::int64_t wall_ms() const { return clock_.now_ms(); }

    /// Works until quit.
    void run();
    void quit();

private:
    Loop(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
    [[nodiscard]] int wait_ms() const;
    void run_timers();
    void run_posted();

    SystemClock clock_;
    UniqueFd epoll_;
    UniqueFd wake_;  // eventfd: something was posted
    std::unordered_map<int, std::shared_ptr<Task>> watched_;
    std::map<TimerId, Task> timers_;
    std::uint64_t next_timer_ = 1;
    std::mutex mutex_;
    std::vector<Task> posted_;  // guarded by mutex_
    bool quit_ = false;         // guarded by mutex_
};

}  // namespace tune::worker
