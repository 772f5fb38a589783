#pragma once
// Long polls for a change of a study.

#include <algorithm>
#include <cstdint>
#include <list>
#include <utility>

#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/registry/studies.h"
#include "tuner/study/registry/timers.h"

namespace tune::tuner {

/// Not thread-safe: part of what the lock of Studies guards. Cost: O(polls) a call.
class StudyWaits {
public:
    void add(const Study& study, std::int64_t deadline_ms, Done<void> done) {
        all_.push_back({&study, deadline_ms, std::move(done)});
    }
    /// The study has changed.
    void wake(LockedBatch& locked, const Study& study) { answer(locked, study, {}); }
    /// The study is gone.
    void refuse(LockedBatch& locked, const Study& study, const Error& error) {
        answer(locked, study, error);
    }
    void expire(LockedBatch& locked, std::int64_t now_ms) {
        take(locked, {}, [now_ms](const Wait& wait) { return wait.deadline_ms <= now_ms; });
    }
    [[nodiscard]] std::int64_t next_ms() const {
        std::int64_t next = Timers::kNever_ms;
        for (const Wait& wait : all_) next = std::min(next, wait.deadline_ms);
        return next;
    }
    /// Whether one names the study.
    [[nodiscard]] bool names(const Study& study) const {
        return std::any_of(all_.begin(), all_.end(),
                           [&study](const Wait& wait) { return wait.study == &study; });
    }

private:
    struct Wait {
        const Study* study = nullptr;
        std::int64_t deadline_ms = 0;  ///< monotonic
        Done<void> done;
    };
    void answer(LockedBatch& locked, const Study& study, const Result<void>& result) {
        take(locked, result, [&study](const Wait& wait) { return wait.study == &study; });
    }
    template <class Which>
    void take(LockedBatch& locked, const Result<void>& result, const Which& which) {
        all_.remove_if([&](Wait& wait) {
            if (!which(wait)) return false;
            locked.after([done = std::move(wait.done), result] { done(result); });
            return true;
        });
    }

    std::list<Wait> all_;
};

}  // namespace tune::tuner
