#pragma once
// Whether a study's suggestions come out again, bit for bit, from its journal: the sampler is asked
// anew at each log position, seeing exactly what it saw then, however many workers there were.
// Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tuner/study/study.h"

namespace tune::tuner {

struct ReplayDifference {
    std::uint64_t number = 0;
    std::string parameter;
    double recorded = 0;  ///< internal values; NaN: inactive
    double replayed = 0;
};

struct ReplayReport {
    std::uint64_t compared = 0;   ///< suggestions that were asked for again
    std::uint64_t differing = 0;  ///< of those, trials with at least one other value
    std::uint64_t given = 0;    ///< trials whose values came from the user or from another program
    std::uint64_t redrawn = 0;  ///< trials that a crash took the suggestion of
    std::vector<ReplayDifference> differences;  ///< the first kReplayDifferencesMax of them
    bool is_whole = true;                       ///< false: it was cancelled
};

inline constexpr std::size_t kReplayDifferencesMax = 100;

/// `study`: from its document, without trials; `trials`: from theirs, in order of number.
/// `is_cancelled` is asked between suggestions. Cost: as all suggestions of the study together.
/// Errors: kDataLoss when a trial lies outside the space that it was suggested in.
[[nodiscard]] Result<ReplayReport> replay(const Study& study, const std::vector<Trial>& trials,
                                          const std::function<bool()>& is_cancelled);

}  // namespace tune::tuner
