#pragma once
// Trials and studies on their way to the store: what memory decided is written, and what could not
// be written is written again later.

#include <cstdint>
#include <optional>
#include <set>

#include "base/clock.h"
#include "base/result.h"
#include "tuner/protocol.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/registry/bookkeeping/study_book.h"
#include "tuner/study/registry/bookkeeping/study_events.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// Not thread-safe: part of what the lock of Studies guards.
class StudyWriter {
public:
    StudyWriter(StudyBook& book, const Clock& clock, StudyEvents& events)
        : book_(book), clock_(clock), events_(events) {}

    /// Writes the trial as it is. `finish`: the agent's report of its end; nullptr: there is none.
    void write_trial(LockedBatch& locked, Study& study, Trial& trial, const FinishRequest* finish,
                     Written written);
    void write_study(LockedBatch& locked, Study& study, Written written);
    /// Shows the best trial on the parent run.
    void write_best(LockedBatch& locked, Study& study);
    /// Ends the trial and writes it.
    void finish_trial(LockedBatch& locked, Study& study, Trial& trial, TrialEnd end);

    /// Why the store did not take the last write of a trial or study; nothing: it did, or it never
    /// will. While there is an error no lease is given: each would be an attempt that cannot be
    /// written. What failed is tried again, so this is never stale for long.
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }
    /// Whether all that was decided is on disk or on its way there.
    [[nodiscard]] bool is_all_written() const {
        return unsynced_trials_ == 0 && unsynced_studies_.empty();
    }

    /// When writes that failed are tried again; monotonic. 0: there are none.
    [[nodiscard]] std::int64_t retry_at_ms() const { return retry_at_ms_; }
    /// Tries those again whose time has come. Cost: O(trials) where there are any.
    void retry_due(LockedBatch& locked);
    /// The study was removed: nothing of it is tried again.
    void forget(Study& study);

private:
    void trial_written(LockedBatch& locked, Study& study, Trial& trial, bool creates,
                       Result<void> result, const Written& written);
    void write_unsynced(LockedBatch& locked, Study& study);
    void write_again_later();
    void note_write(LockedBatch& locked, const Result<void>& result);

    StudyBook& book_;
    const Clock& clock_;
    StudyEvents& events_;
    std::set<Study*> unsynced_studies_;
    int unsynced_trials_ = 0;
    std::optional<Error> error_;
    std::int64_t retry_at_ms_ = 0;
};

}  // namespace tune::tuner
