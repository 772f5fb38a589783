#pragma once
// The thread that wakes when something is due.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/registry/bookkeeping/study_events.h"

namespace tune::tuner {

/// `wake` and `wake_by` are called under the lock of Studies, the others without it.
class Ticker {
public:
    /// `next_ms`: when `tick` has something to do (monotonic); called under the lock. `tick` is
    /// called without it.
    Ticker(StudyLock& lock, const Clock& clock, const Phase& phase,
           std::function<std::int64_t()> next_ms, std::function<void()> tick);

    void start();
    /// Ends the thread; Phase::stopping is set. Idempotent.
    void join();
    void wake() { wake_.notify_all(); }
    /// Wakes it if it sleeps past this time. Without need it would only wait for the lock that its
    /// waker holds.
    void wake_by(std::int64_t deadline_ms) {
        if (deadline_ms < sleeps_until_ms_) wake_.notify_one();
    }

private:
    void run();

    StudyLock& lock_;
    const Clock& clock_;
    const Phase& phase_;
    std::function<std::int64_t()> next_ms_;
    std::function<void()> tick_;
    std::condition_variable wake_;
    std::int64_t sleeps_until_ms_ = 0;  // monotonic; 0: it is awake
    std::thread thread_;
};

}  // namespace tune::tuner
