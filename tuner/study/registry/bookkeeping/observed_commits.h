#pragma once
// What is put off until all that is on disk by now has been observed: a trial's value is known once
// the metrics before its end are.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "tracker/store/store.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"

namespace tune::tuner {

/// Not thread-safe: part of what the lock of Studies guards.
class ObservedCommits {
public:
    explicit ObservedCommits(const tracker::Store& store) : store_(store) {}

    /// All commits up to the store's last one have been observed: what was loaded includes them.
    void catch_up() { position_ = store_.last_position(); }
    /// Whether there are commits on disk that were not observed yet.
    [[nodiscard]] bool is_behind() const { return !stopped_ && store_.last_position() > position_; }
    /// Runs `call` (without the lock) once every commit that is on disk now has been observed.
    void after_observed(LockedBatch& locked, std::function<void()> call) {
        if (!is_behind()) return locked.after(std::move(call));
        waiting_.emplace(store_.last_position(), std::move(call));
    }
    /// All commits up to this position have been observed.
    void observe(LockedBatch& locked, std::int64_t position) {
        position_ = std::max(position_, position);
        while (!waiting_.empty() && waiting_.begin()->first <= position_) {
            locked.after(std::move(waiting_.begin()->second));
            waiting_.erase(waiting_.begin());
        }
    }
    /// No commit will be observed any more: nobody waits for one.
    void stop(LockedBatch& locked) {
        stopped_ = true;
        for (auto& [position, call] : waiting_) locked.after(std::move(call));
        waiting_.clear();
    }

private:
    const tracker::Store& store_;
    std::multimap<std::int64_t, std::function<void()>> waiting_;
    std::int64_t position_ = 0;
    bool stopped_ = false;
};

}  // namespace tune::tuner
