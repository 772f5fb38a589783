#pragma once
// What a pruner would have done to a finished study: its recorded reports in the order in which
// they came, and nothing else changed. Pure.
//
// It is an estimate from below: a slot that a pruned trial frees would have run another trial, and
// the sampler would have seen other results. Trials that the study itself pruned end where they
// ended.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tuner/pruner/pruner.h"

namespace tune::tuner {

struct RecordedReport {
    std::int64_t step = 0;
    double value = 0;
    std::int64_t time_ms = 0;
};

struct RecordedTrial {
    std::uint64_t number = 0;
    Pruner::End end = Pruner::End::kComplete;
    double value = 0;  // complete: what the study counts
    std::int64_t start_ms = 0;
    std::int64_t end_ms = 0;
    std::vector<RecordedReport> reports = {};  // as they came; of equal steps the first counts
};

struct PrunerReplay {
    std::size_t trials = 0;  // that were replayed
    std::size_t pruned = 0;  // by this pruner
    std::size_t reports = 0;
    std::size_t reports_saved = 0;
    std::int64_t time_ms = 0;  // of all trials
    std::int64_t time_saved_ms = 0;
    std::optional<std::uint64_t> best = {};  // the best complete trial that it keeps
    double best_value = 0;
    std::size_t best_rank = 0;  // among the complete trials as recorded; 1: nothing lost
};

/// Cost: that of the pruner, O(reports * log). `study`: hyperband draws brackets from it.
[[nodiscard]] PrunerReplay replay_pruner(const PrunerConfig& config, Goal goal,
                                         std::string_view study,
                                         std::span<const RecordedTrial> trials);

}  // namespace tune::tuner
