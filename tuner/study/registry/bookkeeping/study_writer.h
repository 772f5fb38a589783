#pragma once
// Trials and studies on their way to the store: what memory decided is written, and what could not
// be written is written again later.

#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "tuner/protocol.h"
#include "tuner/study/registry/bookkeeping/locked_batch.h"
#include "tuner/study/registry/bookkeeping/study_book.h"
#include "tuner/study/registry/bookkeeping/study_events.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// The store will never take the command as it is: the user deleted the run or the experiment.
[[nodiscard]] bool is_permanent(const Error& error);

/// Trials that are written again in one go; the others follow a second later. Few enough that the
/// store's queue has room for what clients write meanwhile.
inline constexpr std::size_t kWrittenAgainMax = 1000;

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
        return unsynced_trials_.empty() && unsynced_studies_.empty();
    }

    /// When writes that failed are tried again; monotonic. 0: there are none.
    [[nodiscard]] std::int64_t retry_at_ms() const { return retry_at_ms_; }
    /// Tries those again whose time has come, at most kWrittenAgainMax. Cost: O(those that failed).
    void retry_due(LockedBatch& locked);
    /// The study's runs can be changed again: trials that went on without theirs are written whole.
    /// Cost: O(those).
    void write_detached(LockedBatch& locked, Study& study);
    /// The study was removed: nothing of it is tried again.
    void forget(Study& study);

private:
    void trial_written(LockedBatch& locked, Study& study, Trial& trial, bool creates,
                       Result<void> result, const Written& written);
    /// Trials in the order of their studies' places in memory and their numbers.
    using Trials = std::set<std::pair<Study*, std::uint64_t>>;
    void write_unsynced(LockedBatch& locked);
    static void forget(Trials& trials, Study& study);
    void write_again_later();
    void note_write(LockedBatch& locked, const Result<void>& result);
    void probe_disk(LockedBatch& locked);

    StudyBook& book_;
    const Clock& clock_;
    StudyEvents& events_;
    std::set<Study*> unsynced_studies_;
    Trials unsynced_trials_;
    Trials detached_trials_;
    Trials::value_type last_again_ = {};  // the last of them that was written again
    std::optional<Error> error_;
    bool is_probing_ = false;
    std::int64_t retry_at_ms_ = 0;
};

}  // namespace tune::tuner
