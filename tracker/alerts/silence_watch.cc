#include "tracker/alerts/silence_watch.h"

namespace tune::tracker {
namespace {

/// Runs nested in runs; also ends a circle of parents.
constexpr int kNestingMax = 8;

}  // namespace

bool SilenceWatch::add(RunningRun run, std::int64_t now_ms) {
    // A study's run is the tuner's alone: it is silent while its trials work.
    if (!run.is_study) {
        if (runs_.size() >= kWatchedRunsMax && !runs_.contains(run.run_id)) return false;
        Watched& watched = runs_[run.run_id];
        watched.experiment_id = run.experiment_id;
        if (!run.parent_run_id.empty()) watched.parent_run_id = std::move(run.parent_run_id);
        watched.is_trial = watched.is_trial || run.is_trial;
    }
    touch(run.run_id, now_ms);
    return true;
}

void SilenceWatch::remove(const std::string& run_id) {
    runs_.erase(run_id);
}

void SilenceWatch::touch(const std::string& run_id, std::int64_t now_ms) {
    const std::string* id = &run_id;
    for (int level = 0; level < kNestingMax && !id->empty(); ++level) {
        const auto found = runs_.find(*id);
        if (found == runs_.end()) return;
        found->second.written_ms = now_ms;
        id = &found->second.parent_run_id;
    }
}

}  // namespace tune::tracker
