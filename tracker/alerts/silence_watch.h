#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracker/store/reads/read_alerts.h"

namespace tune::tracker {

/// RUNNING runs that are watched for silence; about 250 bytes each. Further ones are not watched
/// until others have ended.
inline constexpr std::size_t kWatchedRunsMax = 20'000;

/// When each RUNNING run was last written to. A write to a run also counts for the run that it is
/// nested in: a parent says nothing while its children work. Not thread-safe; no clock, no I/O.
class SilenceWatch {
public:
    struct Silent {
        std::string run_id;
        ExperimentId experiment_id = 0;
        bool is_trial = false;
        std::int64_t silent_ms = 0;
    };

    /// Watches the run from now on; one that is watched already was written to. False: there are
    /// kWatchedRunsMax.
    bool add(RunningRun run, std::int64_t now_ms);
    void remove(const std::string& run_id);
    void clear() { runs_.clear(); }
    /// The run was written to.
    void touch(const std::string& run_id, std::int64_t now_ms);

    /// The runs that have been silent for their limit. `limit_ms(experiment)` gives it, or nothing
    /// where there is no rule. Also: when the next one can be, at the earliest.
    template <class Limit>
    std::vector<Silent> silent(std::int64_t now_ms, Limit limit_ms, std::int64_t& next_ms) const {
        std::vector<Silent> found;
        for (const auto& [run_id, run] : runs_) {
            const std::optional<std::int64_t> limit = limit_ms(run.experiment_id);
            if (!limit) continue;
            const std::int64_t due_ms = run.written_ms + *limit;
            if (due_ms <= now_ms)
                found.push_back({run_id, run.experiment_id, run.is_trial, now_ms - run.written_ms});
            else if (due_ms < next_ms)
                next_ms = due_ms;
        }
        return found;
    }
    [[nodiscard]] bool contains(const std::string& run_id) const { return runs_.contains(run_id); }
    [[nodiscard]] std::size_t size() const { return runs_.size(); }

private:
    struct Watched {
        ExperimentId experiment_id = 0;
        std::string parent_run_id;
        bool is_trial = false;
        std::int64_t written_ms = 0;
    };
    std::unordered_map<std::string, Watched> runs_;
};

}  // namespace tune::tracker
