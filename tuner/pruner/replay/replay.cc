// Plays the reports of a finished study to a pruner in the order of their times, ends of trials
// among them: a pruner's decision depends on what it had seen by then, so any other order would
// answer another question. At equal times the trial with the lower number comes first, its end
// after its reports, so that of trials that ran one after the other the first ends before the next
// begins. What the pruner would not have seen, the reports of a trial after it was pruned, is
// counted as saved and not played.

#include "tuner/pruner/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace tune::tuner {
namespace {

struct Event {
    std::int64_t time_ms;
    bool is_end;
    std::size_t trial;   // index
    std::size_t report;  // index
};

/// In the order of time; at one time by number, so that of two trials in a row the first ends
/// before the second begins.
std::vector<Event> events_of(std::span<const RecordedTrial> trials) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < trials.size(); ++i) {
        std::int64_t last_ms = trials[i].end_ms;
        for (std::size_t r = 0; r < trials[i].reports.size(); ++r) {
            events.push_back({trials[i].reports[r].time_ms, false, i, r});
            last_ms = std::max(last_ms, trials[i].reports[r].time_ms);
        }
        events.push_back({last_ms, true, i, 0});
    }
    std::stable_sort(events.begin(), events.end(), [&](const Event& a, const Event& b) {
        return std::tuple(a.time_ms, trials[a.trial].number, a.is_end, a.report) <
               std::tuple(b.time_ms, trials[b.trial].number, b.is_end, b.report);
    });
    return events;
}

void find_best(std::span<const RecordedTrial> trials, const std::vector<bool>& is_pruned, Goal goal,
               PrunerReplay& found) {
    const auto loss = [&](const RecordedTrial& trial) {
        return goal == Goal::kMaximize ? -trial.value : trial.value;
    };
    double best = INFINITY;
    for (std::size_t i = 0; i < trials.size(); ++i) {
        const bool counts = trials[i].end == Pruner::End::kComplete && !is_pruned[i] &&
                            !std::isnan(trials[i].value);
        if (!counts || (found.best && loss(trials[i]) >= best)) continue;
        best = loss(trials[i]);
        found.best = trials[i].number;
        found.best_value = trials[i].value;
    }
    if (!found.best) return;
    found.best_rank = 1;
    for (const RecordedTrial& trial : trials)
        if (trial.end == Pruner::End::kComplete && loss(trial) < best) ++found.best_rank;
}

}  // namespace

PrunerReplay replay_pruner(const PrunerConfig& config, Goal goal, std::string_view study,
                           std::span<const RecordedTrial> trials) {
    const auto pruner = make_pruner(config, goal, study);
    PrunerReplay found{.trials = trials.size()};
    std::vector<bool> is_pruned(trials.size(), false);
    std::vector<std::set<std::int64_t>> steps(trials.size());
    for (const RecordedTrial& trial : trials)
        found.time_ms += std::max<std::int64_t>(trial.end_ms - trial.start_ms, 0);
    for (const Event& event : events_of(trials)) {
        const RecordedTrial& trial = trials[event.trial];
        if (event.is_end) {
            if (!is_pruned[event.trial]) pruner->finish(trial.number, trial.end, trial.value);
            continue;
        }
        const RecordedReport& report = trial.reports[event.report];
        if (!steps[event.trial].insert(report.step).second) continue;
        ++found.reports;
        if (is_pruned[event.trial]) {
            ++found.reports_saved;
            continue;
        }
        if (pruner->report(trial.number, report.step, report.value) == Verdict::kKeep) continue;
        // A verdict at the last report comes too late to save anything, but the trial is pruned all
        // the same.
        is_pruned[event.trial] = true;
        ++found.pruned;
        found.time_saved_ms += std::max<std::int64_t>(trial.end_ms - report.time_ms, 0);
        pruner->finish(trial.number, Pruner::End::kPruned, report.value);
    }
    find_best(trials, is_pruned, goal, found);
    return found;
}

}  // namespace tune::tuner
