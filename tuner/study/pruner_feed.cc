// Pruners do not forget, and an asynchronous one decides by who came first. So after a restart it
// gets all reports and ends sorted by their times, in slices between which others get their turn;
// what is reported meanwhile waits behind them.

#include "tuner/study/pruner_feed.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_set>

#include "tuner/study/trial/roll_back.h"

namespace tune::tuner {
namespace {

Pruner::End pruner_end(TrialState state) {
    if (state == TrialState::kComplete) return Pruner::End::kComplete;
    if (state == TrialState::kPruned) return Pruner::End::kPruned;
    return Pruner::End::kGone;
}

}  // namespace

void PrunerFeed::replace(std::unique_ptr<Pruner> pruner, bool is_behind) {
    pruner_ = std::move(pruner);
    is_behind_ = is_behind;
    restarts_.clear();
    ++version_;
    history_.clear();
    history_sent_ = 0;
    waiting_.clear();
}

Verdict PrunerFeed::report(std::uint64_t number, const Objective::Row& row) {
    if (!is_behind_) return pruner_->report(pruner_number(number), row.step, row.value);
    waiting_.emplace_back(number, row);
    return Verdict::kKeep;
}

void PrunerFeed::finish(const Trial& trial) {
    if (!is_behind_) tell_end(trial);
}

void PrunerFeed::begin_anew(std::uint64_t number) {
    pruner_->finish(pruner_number(number), Pruner::End::kGone);
    ++restarts_[number];
}

/// A trial that began anew is another one to the pruner.
std::uint64_t PrunerFeed::pruner_number(std::uint64_t number) const {
    constexpr int kNumberBits = 40;
    const auto restarts = restarts_.find(number);
    return restarts == restarts_.end() ? number : number | restarts->second << kNumberBits;
}

void PrunerFeed::tell_end(const Trial& trial) {
    pruner_->finish(pruner_number(trial.number), pruner_end(trial.state),
                    trial.value.value_or(std::nan("")));
}

// --- history -------------------------------------------------------------------------------------

void PrunerFeed::add_reports(const Trial& trial, const std::string& metric,
                             const std::vector<Objective::Row>& rows) {
    if (!is_behind_) return;
    // A final value stands at the last step once more, and was no report.
    std::unordered_set<std::int64_t> steps;
    for (const Objective::Row& row : rows)
        if (!is_rolled_back(trial.roll_backs, metric, row) && steps.insert(row.step).second)
            history_.push_back({row.timestamp_ms, trial.number, false, row.step, row.value});
}

/// At one time by number, so that of two trials in a row the first ends before the second begins.
void PrunerFeed::sort_history(const TrialTable& trials) {
    std::vector<std::int64_t> last_ms(trials.size(), 0);
    for (const Event& event : history_)
        last_ms[event.number] = std::max(last_ms[event.number], event.time_ms);
    for (const Trial& trial : trials)
        if (is_ended(trial.state))
            history_.push_back({std::max(trial.end_ms, last_ms[trial.number]), trial.number, true});
    std::stable_sort(history_.begin(), history_.end(), [](const Event& a, const Event& b) {
        return std::tie(a.time_ms, a.number, a.is_end) < std::tie(b.time_ms, b.number, b.is_end);
    });
}

bool PrunerFeed::replay(const TrialTable& trials, std::size_t events_max) {
    if (!is_behind_) return true;
    if (history_sent_ == 0) sort_history(trials);
    const std::size_t end = history_sent_ + std::min(history_.size() - history_sent_, events_max);
    for (; history_sent_ < end; ++history_sent_) {
        const Event& event = history_[history_sent_];
        if (event.is_end) {
            tell_end(trials[event.number]);
        } else {
            static_cast<void>(pruner_->report(event.number, event.step, event.value));
        }
    }
    if (history_sent_ < history_.size()) return false;
    std::vector<Event>().swap(history_);
    history_sent_ = 0;
    for (const auto& [number, row] : waiting_)
        static_cast<void>(pruner_->report(pruner_number(number), row.step, row.value));
    waiting_.clear();
    // Those too that ended meanwhile.
    for (const Trial& trial : trials)
        if (is_ended(trial.state)) tell_end(trial);
    is_behind_ = false;
    return true;
}

}  // namespace tune::tuner
