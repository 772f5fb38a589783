#include "tuner/study/registry/ticker.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tune::tuner {
namespace {

/// Longest sleep: the machine's clocks may disagree about suspend.
constexpr std::int64_t kTickMax_ms = 10'000;

}  // namespace

Ticker::Ticker(StudyLock& lock, const Clock& clock, const Phase& phase,
               std::function<std::int64_t()> next_ms, std::function<void()> tick)
    : lock_(lock),
      clock_(clock),
      phase_(phase),
      next_ms_(std::move(next_ms)),
      tick_(std::move(tick)) {}

void Ticker::start() {
    thread_ = std::thread([this] { run(); });
}

void Ticker::join() {
    if (thread_.joinable()) thread_.join();
}

void Ticker::run() {
    std::unique_lock<std::mutex> lock = lock_.take();
    while (!phase_.stopping) {
        const std::int64_t now = clock_.monotonic_ms();
        const std::int64_t next = next_ms_();
        if (next > now) {
            const std::int64_t wait_ms = std::min(next - now, kTickMax_ms);
            sleeps_until_ms_ = now + wait_ms;
            wake_.wait_for(lock, std::chrono::milliseconds(wait_ms));
            sleeps_until_ms_ = 0;
            if (phase_.stopping || next_ms_() > clock_.monotonic_ms()) continue;
        }
        lock.unlock();
        tick_();
        lock.lock();
    }
}

}  // namespace tune::tuner
