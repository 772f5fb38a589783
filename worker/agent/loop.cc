// epoll, an ordered map of timers, and a queue of posted tasks behind an eventfd. A callback runs
// outside all locks and may post, watch or unwatch, also itself: a ready descriptor is looked up
// again before its callback runs, and the callback is kept alive while it does.

#include "worker/agent/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace tune::worker {
namespace {

constexpr int kEventsAtOnce = 64;

Error refused(const char* what) {
    return Error{Code::kResourceExhausted, std::string(what) + ": " + std::strerror(errno) +
                                               "; raise the limit of open files (ulimit -n)"};
}

}  // namespace

Result<std::unique_ptr<Loop>> Loop::create() {
    UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll) return refused("cannot make an epoll instance");
    UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake) return refused("cannot make an eventfd");
    std::unique_ptr<Loop> loop(new Loop(std::move(epoll), std::move(wake)));
    const int fd = loop->wake_.get();
    TUNE_TRY_VOID(loop->watch(fd, [fd] {
        std::uint64_t count = 0;
        [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof count);
    }));
    return loop;
}

void Loop::post(Task task) {
    {
        const std::lock_guard lock(mutex_);
        posted_.push_back(std::move(task));
        if (posted_.size() > 1) return;  // who posted the first has woken the loop
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t put = write(wake_.get(), &one, sizeof one);
}

void Loop::quit() {
    {
        const std::lock_guard lock(mutex_);
        quit_ = true;
    }
    post([] {});
}

Result<void> Loop::watch(int fd, Task on_readable) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
        return refused("cannot watch a descriptor");
    watched_[fd] = std::make_shared<Task>(std::move(on_readable));
    return {};
}

void Loop::unwatch(int fd) {
    if (watched_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Loop::TimerId Loop::at(std::int64_t at_ms, Task task) {
    const TimerId id{at_ms, next_timer_++};
    timers_.emplace(id, std::move(task));
    return id;
}

void Loop::cancel(TimerId timer) {
    timers_.erase(timer);
}

int Loop::wait_ms() const {
    if (timers_.empty()) return -1;
    const std::int64_t left = timers_.begin()->first.first - now_ms();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void Loop::run_timers() {
    const std::int64_t now = now_ms();
    while (!timers_.empty() && timers_.begin()->first.first <= now) {
        Task task = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
        task();
    }
}

void Loop::run_posted() {
    std::vector<Task> tasks;
    {
        const std::lock_guard lock(mutex_);
        tasks.swap(posted_);
    }
    for (Task& task : tasks) task();
}

void Loop::run() {
    std::array<epoll_event, kEventsAtOnce> events;
    while (true) {
        {
            const std::lock_guard lock(mutex_);
            if (quit_) return;
        }
        const int count = epoll_wait(epoll_.get(), events.data(), kEventsAtOnce, wait_ms());
        for (int i = 0; i < count; ++i) {
            const auto found = watched_.find(events[static_cast<std::size_t>(i)].data.fd);
            if (found == watched_.end()) continue;
            const std::shared_ptr<Task> task = found->second;  // it may unwatch itself
            (*task)();
        }
        run_timers();
        run_posted();
    }
}

}  // namespace tune::worker
