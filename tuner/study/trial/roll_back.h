#pragma once
// What an attempt takes back of the attempts before it.
//
// An attempt that continues a checkpoint owns what was measured up to it; one that begins anew owns
// nothing. Which of both it did it says by the step of the first row it logs of a metric: what
// earlier attempts logged of that metric from this step on is no part of the trial any more. The
// rows stay in the run's history. Of a trial that has not ended the store knows which attempt
// logged a row (MarkMetrics); these notes say it by the rows' times, for pruners that are told the
// history of ended trials, and for trials of before there were marks.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tuner/study/trial/objective.h"

namespace tune::tuner {

/// Rows of `metric` before `since_ms` (the time of the attempt's first row) and from `step` on do
/// not count.
struct RollBack {
    std::string metric;
    std::int64_t step = 0;
    std::int64_t since_ms = 0;
    int attempt = 0;  ///< that went on from `step`
};

/// Adds one and drops those that it makes needless; at most one a step that was gone back to.
void add_roll_back(std::vector<RollBack>& all, RollBack next);

[[nodiscard]] bool is_rolled_back(const std::vector<RollBack>& all, std::string_view metric,
                                  const Objective::Row& row);

/// [[metric, step, since_ms, attempt], ...] and back. Throws Json::exception for anything else.
[[nodiscard]] Json roll_backs_to_json(const std::vector<RollBack>& all);
[[nodiscard]] std::vector<RollBack> roll_backs_from(const Json& json);

}  // namespace tune::tuner
