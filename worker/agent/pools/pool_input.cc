#include "worker/agent/pools/pool_input.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tune::worker {
namespace {

constexpr int kPipeBytes = 1 << 20;
/// A pool that has no room for lines now is offered them again after this time.
constexpr int kFlushAgain_ms = 10;

/// A pool that has ended is noticed by its pidfd, not by a signal of a write.
void block_broken_pipes() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace

Result<UniqueFd> PoolInput::open() {
    block_broken_pipes();
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return Error{Code::kResourceExhausted,
                     "cannot make the input of a pool: " + std::string(std::strerror(errno))};
    pipe_.reset(ends[1]);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes);  // a smaller one works, too
    return UniqueFd(ends[0]);
}

void PoolInput::release() {
    is_held_ = false;
    flush();
}

void PoolInput::send(const std::string& lines) {
    unsent_ += lines;
    flush();
}

void PoolInput::flush() {
    if (!pipe_ || is_held_) return;
    while (!unsent_.empty()) {
        const ssize_t count = write(pipe_.get(), unsent_.data(), unsent_.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && errno == EAGAIN) {
            loop_.cancel(timer_);
            timer_ = loop_.at(loop_.now_ms() + kFlushAgain_ms, [this] { flush(); });
            return;
        }
        if (count < 0) return unsent_.clear();  // it has ended
        unsent_.erase(0, static_cast<std::size_t>(count));
    }
    if (is_last_) pipe_.reset();
}

}  // namespace tune::worker
