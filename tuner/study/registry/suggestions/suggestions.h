#pragma once
// Suggestions on their way: who wants one waits in the line of its study. A thread serves one line
// at a time and computes without the lock, from a snapshot; what has come of it is settled under
// the lock afterwards.

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "tuner/study/registry/bookkeeping/study_book.h"
#include "tuner/study/registry/bookkeeping/study_events.h"
#include "tuner/study/registry/bookkeeping/study_writer.h"
#include "tuner/study/registry/bookkeeping/work_pool.h"
#include "tuner/study/suggestion.h"

namespace tune::tuner {

/// Somebody who wants a suggestion of a study.
struct Wish {
    SuggestionWish wanted = {};
    std::string request_id = {};  ///< kGiven: a trial that this request made needs no other
    /// Called once, under the lock, with the trial that it made, or nullptr where none was needed,
    /// allowed or left.
    std::function<void(LockedBatch&, Result<Trial*>)> settled = {};
};

/// Not thread-safe, but for what its own threads do: part of what the lock of Studies guards.
class Suggestions {
public:
    /// `before`: called on the thread that is about to compute a suggestion of the study; for
    /// tests.
    Suggestions(StudyLock& lock, StudyBook& book, StudyWriter& writer, const Clock& clock,
                const Phase& phase, StudyEvents& events,
                std::function<void(const std::string& study)> before);

    /// Puts the wish at the end of the study's line.
    void want(LockedBatch& locked, Study& study, Wish wish);
    /// Makes the study's model know all trials, in the background.
    void look(LockedBatch& locked, Study& study);
    /// Completes the study, or finds out from its model whether it is complete.
    void complete_if_done(LockedBatch& locked, Study& study);
    /// Ends trials whose values are known without running them (duplicates: reuse). What is next
    /// then has to run, if the study may start more.
    void reuse_known(LockedBatch& locked, Study& study);

    /// As many agents wait for suggestions of the study as may. StudyEvents::wake_leases is called
    /// when these have been served.
    [[nodiscard]] bool is_full(Study& study);
    /// Whether somebody waits in the study's line, or it is served.
    [[nodiscard]] bool names(const Study& study) const;
    /// The study is about to be freed.
    void forget(Study& study) { lines_.erase(&study); }

    /// Nobody waits for a model any more; what is being made counts for nothing.
    void give_up(LockedBatch& locked);
    /// Ends the threads. Idempotent; without the lock.
    void stop() { pool_.stop(); }

private:
    /// Who waits for suggestions of one study. One thread at a time serves it.
    struct Line {
        std::deque<Wish> waiting;
        bool is_served = false;
        bool has_turned_away = false;  ///< polls for which it was too long
    };
    void serve(Study& study);
    [[nodiscard]] std::optional<SuggestionWork> next(LockedBatch& locked, Study& study);
    void end(LockedBatch& locked, Study& study, const SuggestionWork& work, const Suggestion& made);
    void answer_first(LockedBatch& locked, Study& study, const Result<Trial*>& trial);

    StudyLock& lock_;
    StudyBook& book_;
    StudyWriter& writer_;
    const Clock& clock_;
    const Phase& phase_;
    StudyEvents& events_;
    std::function<void(const std::string& study)> before_;
    std::unordered_map<Study*, Line> lines_;
    WorkPool pool_;
};

}  // namespace tune::tuner
