#pragma once
// The one lock of the bookkeeping of studies, and the way through it to the store.
//
// What holds a LockedBatch& holds the lock. The lock is never held while anybody waits or computes;
// what a batch writes goes to the store as one commit when the batch ends.

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tracker/store/store.h"
#include "tuner/study/registry/bookkeeping/work_pool.h"
#include "tuner/study/retired.h"

namespace tune::tuner {

class LockedBatch;

/// Called in a later batch, when a write is on disk or was refused.
using Written = std::function<void(LockedBatch&, Result<void>)>;

/// Thread-safe.
class StudyLock {
public:
    /// `retired`: writes that are under way keep what they name (Retired::hold).
    StudyLock(tracker::Store& store, const Retired& retired) : store_(store), retired_(retired) {}

    /// For whoever only reads, or waits for a change.
    [[nodiscard]] std::unique_lock<std::mutex> take() { return std::unique_lock(mutex_); }
    /// On the thread of what follows from writes; at once after stop(). Without the lock.
    void post(std::function<void()> call) { completions_.post(std::move(call)); }
    /// Does what was posted. Idempotent.
    void stop() { completions_.stop(); }

private:
    friend class LockedBatch;

    std::mutex mutex_;
    tracker::Store& store_;
    const Retired& retired_;
    WorkPool completions_{{.name = "study-writes", .threads = 1}};
};

/// One piece of work under the lock. When it ends, its writes go to the store as one batch; then
/// what it leaves in `after` runs without the lock, in order: completions may call back in.
class LockedBatch {
public:
    explicit LockedBatch(StudyLock& lock) : lock_(lock), held_(lock.mutex_) {}
    ~LockedBatch();
    LockedBatch(const LockedBatch&) = delete;
    LockedBatch& operator=(const LockedBatch&) = delete;

    /// One change of the store, whole or not at all.
    void write(std::vector<tracker::Command> commands, Written written);
    void after(std::function<void()> call) { after_.push_back(std::move(call)); }

private:
    struct Write {
        std::vector<tracker::Command> commands;
        Written written;
    };
    void submit();

    StudyLock& lock_;
    std::unique_lock<std::mutex> held_;
    std::vector<Write> writes_;
    std::vector<std::function<void()>> after_;
};

}  // namespace tune::tuner
