// Suggestions on their way: who wants one waits in the line of its study; a thread of the pool
// serves one line at a time and computes without the lock.

#include <chrono>
#include <utility>

#include "tuner/study/registry/studies_impl.h"

namespace tune::tuner {
namespace {

/// Observations that are copied under the lock at a time: about a millisecond.
constexpr std::size_t kNewsMax = 2000;
/// After so long a turn, the lines of other studies come first.
constexpr std::chrono::milliseconds kTurn{5};

}  // namespace

void Studies::Impl::want(LockedBatch& locked, Study& study, Wish wish) {
    Line& line = lines_[&study];
    line.waiting.push_back(std::move(wish));
    if (std::exchange(line.is_served, true)) return;
    locked.after([this, &study] { pool_.post([this, &study] { serve(study); }); });
}

/// Whether the study is completed, only its model may know.
void Studies::Impl::complete_if_done(LockedBatch& locked, Study& study) {
    if (study.complete_if_done(now_ms())) return write_study(locked, study, {});
    if (!study.needs_look() || draining_) return;
    const auto found = lines_.find(&study);
    if (found != lines_.end() && found->second.is_served) return;  // it looks when it ends
    look(locked, study);
}

void Studies::Impl::look(LockedBatch& locked, Study& study) {
    want(locked, study,
         {.wanted = {.what = SuggestionWish::For::kLook}, .request_id = {}, .settled = {}});
}

/// On a thread of the pool.
void Studies::Impl::serve(Study& study) {
    const auto turn_ends = std::chrono::steady_clock::now() + kTurn;
    std::optional<SuggestionWork> work;
    Suggestion made;
    do {
        {
            LockedBatch locked(*this);
            if (work) end_suggestion(locked, study, *work, made);
            work = next_suggestion(locked, study);
            if (!work) return;
        }
        if (options_.before_suggestion) options_.before_suggestion(study.name());
        made = suggest(*work);
    } while (std::chrono::steady_clock::now() < turn_ends);
    {
        LockedBatch locked(*this);
        end_suggestion(locked, study, *work, made);
    }
    pool_.post([this, &study] { serve(study); });
}

/// What the first in the line needs. Who can be served without a suggestion is. Nothing: the line
/// is empty.
std::optional<SuggestionWork> Studies::Impl::next_suggestion(LockedBatch& locked, Study& study) {
    while (true) {
        Line& line = lines_[&study];
        if (line.waiting.empty()) {
            line.is_served = false;
            complete_if_done(locked, study);
            if (std::exchange(lines_[&study].has_turned_away, false)) wake_leases(locked);
            return std::nullopt;
        }
        const Wish& first = line.waiting.front();
        Result<bool> needs = !draining_;
        if (first.wanted.what == SuggestionWish::For::kTrial && !draining_)
            needs = study.queued().empty() && study.may_start(now_ms());
        if (first.wanted.what == SuggestionWish::For::kGiven && !draining_) {
            const Result<void> allowed = study.check_enqueue();
            const bool is_known = study.enqueued_by_request(first.request_id) != nullptr;
            if (is_known)
                needs = false;
            else if (!allowed)
                needs = allowed.error();
        }
        if (needs && *needs) return study.begin_suggestion(first.wanted, kNewsMax);
        answer_first(locked, study, needs ? Result<Trial*>(nullptr) : needs.error());
    }
}

void Studies::Impl::end_suggestion(LockedBatch& locked, Study& study, const SuggestionWork& work,
                                   const Suggestion& made) {
    const bool counts = study.end_suggestion(work, made);
    if (draining_ || lines_[&study].waiting.empty()) return;
    if (!counts || !work.is_up_to_date) return;  // the first in the line is served again
    const bool is_given = work.wish.what == SuggestionWish::For::kGiven;
    if (!is_given && (study.state() != StudyState::kRunning || study.over(now_ms())))
        return answer_first(locked, study, nullptr);
    if (!made.point) return answer_first(locked, study, nullptr);
    const Result<Trial*> added = study.add_suggested(work, made, now_ms());
    if (added) admit(study, **added);
    answer_first(locked, study, added);
    if (!added || (*added)->sync.run_requested) return;
    if ((*added)->state == TrialState::kQueued) write_trial(locked, study, **added, nullptr, {});
}

void Studies::Impl::answer_first(LockedBatch& locked, Study& study, const Result<Trial*>& trial) {
    Line& line = lines_[&study];
    const Wish first = std::move(line.waiting.front());
    line.waiting.pop_front();
    if (first.settled) first.settled(locked, trial);
}

/// Nobody waits for a model any more; what is being made counts for nothing.
void Studies::Impl::give_up_suggestions(LockedBatch& locked) {
    for (auto& [study, line] : lines_)
        while (!line.waiting.empty()) answer_first(locked, *study, nullptr);
}

}  // namespace tune::tuner
