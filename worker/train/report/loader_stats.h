#pragma once
// Where the time of a training run goes, as metrics: how fast samples pass, and what the loader did
// meanwhile.

#include <chrono>
#include <cstdint>
#include <vector>

#include "loader/stage_stats.h"
#include "worker/train/recorder.h"

namespace tune::train {

/// What happened between `before` and `after`, by the names that docs/trainer.md lists. `ranks`
/// read as much as this one, each. Empty where no time has passed.
[[nodiscard]] std::vector<NamedValue> loader_metrics(const loader::StageStats& before,
                                                     const loader::StageStats& after,
                                                     std::chrono::duration<double> elapsed,
                                                     std::int64_t ranks);

/// When they are due. A look at the clock a step; one thread.
class LoaderStats {
public:
    using Clock = std::chrono::steady_clock;

    /// `every_s` 0: never.
    LoaderStats(double every_s, std::int64_t ranks, Clock::time_point now)
        : every_(every_s), ranks_(ranks), at_(now) {}

    [[nodiscard]] bool is_on() const { return every_.count() > 0; }
    [[nodiscard]] bool is_due(Clock::time_point now) const {
        return is_on() && now - at_ >= every_;
    }
    /// Of the time since the last call.
    [[nodiscard]] std::vector<NamedValue> take(const loader::StageStats& stats,
                                               Clock::time_point now);

private:
    std::chrono::duration<double> every_;
    std::int64_t ranks_;
    Clock::time_point at_;
    loader::StageStats last_;
};

}  // namespace tune::train
