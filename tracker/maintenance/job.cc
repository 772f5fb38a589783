#include "tracker/maintenance/job.h"

#include <utility>

#include "base/clock.h"

namespace tune::tracker {
namespace {

/// News are passed on this often at most.
constexpr std::int64_t kNewsEveryMs = 100;

std::int64_t monotonic_ms() {
    return SystemClock().monotonic_ms();
}

}  // namespace

Error job_stopped() {
    return {Code::kCancelled, "The server is stopping; what was done so far stays done."};
}

Result<JobRunner::State> JobRunner::start(std::string kind, Work work) {
    std::unique_lock lock(mutex_);
    if (is_stopping_)
        return Error{Code::kTemporarilyUnavailable, "The server is stopping; try again later."};
    if (state_.is_running)
        return Error{Code::kResourceConflict, "A " + state_.kind +
                                                  " is under way; wait for its end (GET "
                                                  "/api/2.0/tune/job shows how far it is)."};
    if (thread_.joinable()) thread_.join();
    state_ = {.version = state_.version + 1, .kind = std::move(kind), .is_running = true};
    thread_ = std::thread([this, job = std::move(work)] { run(job); });
    return state_;
}

JobRunner::State JobRunner::state() const {
    const std::lock_guard lock(mutex_);
    return state_;
}

void JobRunner::wait(std::int64_t version, Waiter waiter) {
    State now;
    {
        const std::lock_guard lock(mutex_);
        if (state_.is_running && state_.version == version && waiters_.size() < kJobWaitersMax) {
            waiters_.push_back(std::move(waiter));
            return;
        }
        now = state_;
    }
    waiter(now);
}

void JobRunner::run(const Work& work) {
    Result<std::string> result =
        work([this](const Progress& progress) { return report(progress); });
    std::unique_lock lock(mutex_);
    state_.is_running = false;
    if (result)
        state_.result = std::move(*result);
    else
        state_.error = result.error();
    publish(lock);
}

bool JobRunner::report(const Progress& progress) {
    std::unique_lock lock(mutex_);
    const bool is_new_phase = state_.progress.phase != progress.phase;
    state_.progress = progress;
    const bool goes_on = !is_stopping_;
    const std::int64_t now_ms = monotonic_ms();
    if (!is_new_phase && now_ms < told_ms_ + kNewsEveryMs) return goes_on;
    told_ms_ = now_ms;
    publish(lock);
    return goes_on;
}

void JobRunner::publish(std::unique_lock<std::mutex>& lock) {
    ++state_.version;
    const std::vector<Waiter> waiters = std::exchange(waiters_, {});
    const State now = state_;
    lock.unlock();
    for (const Waiter& waiter : waiters) waiter(now);
}

void JobRunner::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_stopping_ = true;
    }
    if (thread_.joinable()) thread_.join();
}

}  // namespace tune::tracker
