// One line a study, served by one thread at a time. A turn is: under the lock, settle what was
// computed and take a snapshot of what the first in the line needs; then compute without it. What
// was computed from a snapshot that is not up to date any more is thrown away, so that a suggestion
// depends on nothing but what the study's journal records: a replay finds the same bits.

#include "tuner/study/registry/suggestions/suggestions.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace tune::tuner {
namespace {

/// Two: a study whose model takes seconds leaves one to the others.
constexpr int kThreads = 2;
/// Agents that wait for suggestions of one study at a time. The others stay in the line of polls:
/// where there is work for three, nine thousand are not woken.
constexpr std::size_t kLineMax = 64;
/// Observations that are copied under the lock at a time: about a millisecond.
constexpr std::size_t kNewsMax = 2000;
/// After so long a turn, the lines of other studies come first.
constexpr std::chrono::milliseconds kTurn{5};

}  // namespace

Suggestions::Suggestions(StudyLock& lock, StudyBook& book, StudyWriter& writer, const Clock& clock,
                         const Phase& phase, StudyEvents& events,
                         std::function<void(const std::string& study)> before)
    : lock_(lock),
      book_(book),
      writer_(writer),
      clock_(clock),
      phase_(phase),
      events_(events),
      before_(std::move(before)),
      pool_({.name = "suggestions", .threads = kThreads, .stand_back = 5}) {}

void Suggestions::want(LockedBatch& locked, Study& study, Wish wish) {
    Line& line = lines_[&study];
    line.waiting.push_back(std::move(wish));
    if (std::exchange(line.is_served, true)) return;
    locked.after([this, &study] { pool_.post([this, &study] { serve(study); }); });
}

/// Whether the study is completed, only its model may know.
void Suggestions::complete_if_done(LockedBatch& locked, Study& study) {
    if (study.complete_if_done(clock_.now_ms())) return writer_.write_study(locked, study, {});
    const bool is_running = study.state() == StudyState::kRunning;
    if (!is_running || !study.suggestions().needs_look() || phase_.draining) return;
    const auto found = lines_.find(&study);
    if (found != lines_.end() && found->second.is_served) return;  // it looks when it ends
    look(locked, study);
}

void Suggestions::look(LockedBatch& locked, Study& study) {
    want(locked, study, {.wanted = {.what = SuggestionWish::For::kLook}});
}

/// On a thread of the pool.
void Suggestions::serve(Study& study) {
    const auto turn_ends = std::chrono::steady_clock::now() + kTurn;
    std::optional<SuggestionWork> work;
    Suggestion made;
    do {
        {
            LockedBatch locked(lock_);
            if (work) end(locked, study, *work, made);
            work = next(locked, study);
            if (!work) return;
        }
        if (before_) before_(study.name());
        made = suggest(*work);
    } while (std::chrono::steady_clock::now() < turn_ends);
    {
        LockedBatch locked(lock_);
        end(locked, study, *work, made);
    }
    pool_.post([this, &study] { serve(study); });
}

/// What the first in the line needs. Who can be served without a suggestion is. Nothing: the line
/// is empty.
std::optional<SuggestionWork> Suggestions::next(LockedBatch& locked, Study& study) {
    while (true) {
        Line& line = lines_[&study];
        if (line.waiting.empty()) {
            line.is_served = false;
            complete_if_done(locked, study);
            if (std::exchange(lines_[&study].has_turned_away, false)) events_.wake_leases(locked);
            return std::nullopt;
        }
        const Wish& first = line.waiting.front();
        Result<bool> needs = !phase_.draining;
        if (first.wanted.what == SuggestionWish::For::kTrial && !phase_.draining)
            needs = study.trials().queued().empty() && study.may_start(clock_.now_ms());
        if (first.wanted.what == SuggestionWish::For::kGiven && !phase_.draining) {
            const Result<void> allowed = study.budget().check_enqueue();
            const bool is_known = study.trials().enqueued_by_request(first.request_id).has_value();
            if (is_known)
                needs = false;
            else if (!allowed)
                needs = allowed.error();
        }
        if (needs && *needs) return study.suggestions().begin(first.wanted, kNewsMax);
        answer_first(locked, study, needs ? Result<Trial*>(nullptr) : needs.error());
    }
}

void Suggestions::end(LockedBatch& locked, Study& study, const SuggestionWork& work,
                      const Suggestion& made) {
    const bool counts = study.suggestions().end(work, made);
    if (phase_.draining || lines_[&study].waiting.empty()) return;
    if (!counts || !work.is_up_to_date) return;  // the first in the line is served again
    const bool is_given = work.wish.what == SuggestionWish::For::kGiven;
    if (!is_given &&
        (study.state() != StudyState::kRunning || study.budget().over(clock_.now_ms())))
        return answer_first(locked, study, nullptr);
    if (!made.point) return answer_first(locked, study, nullptr);
    const Result<Trial*> added = study.add_suggested(work, made, clock_.now_ms());
    if (added) book_.admit(study, **added);
    answer_first(locked, study, added);
    if (!added || (*added)->sync.run_requested) return;
    if ((*added)->state == TrialState::kQueued)
        writer_.write_trial(locked, study, **added, nullptr, {});
}

void Suggestions::answer_first(LockedBatch& locked, Study& study, const Result<Trial*>& trial) {
    Line& line = lines_[&study];
    const Wish first = std::move(line.waiting.front());
    line.waiting.pop_front();
    if (first.settled) first.settled(locked, trial);
}

/// Nobody waits for a model any more; what is being made counts for nothing.
void Suggestions::give_up(LockedBatch& locked) {
    for (auto& [study, line] : lines_)
        while (!line.waiting.empty()) answer_first(locked, *study, nullptr);
}

void Suggestions::reuse_known(LockedBatch& locked, Study& study) {
    const std::uint64_t best = study.front().version();
    const std::vector<Trial*> reused = study.reuse_known(clock_.now_ms());
    for (Trial* trial : reused) {
        book_.admit(study, *trial);
        writer_.write_trial(locked, study, *trial, nullptr, {});
    }
    if (reused.empty()) return;
    if (study.front().version() != best) writer_.write_best(locked, study);
    complete_if_done(locked, study);
}

bool Suggestions::is_full(Study& study) {
    const auto line = lines_.find(&study);
    const bool is_full = line != lines_.end() && line->second.waiting.size() >= kLineMax &&
                         study.trials().queued().empty();
    if (is_full) line->second.has_turned_away = true;
    return is_full;
}

bool Suggestions::names(const Study& study) const {
    const auto line = std::find_if(lines_.begin(), lines_.end(),
                                   [&](const auto& one) { return one.first == &study; });
    return line != lines_.end() && (line->second.is_served || !line->second.waiting.empty());
}

}  // namespace tune::tuner
