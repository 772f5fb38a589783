#pragma once
// What a pruner tells the rest of the program about itself: docs/adding_a_pruner.md. Included by
// pruners and by the few that make one.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "tuner/options/option_table.h"
#include "tuner/pruner/pruner.h"

namespace tune::tuner {

/// What a pruner knows of its study.
struct PrunerContext {
    Goal goal = Goal::kMinimize;
    std::string_view study = {};  // its name: hyperband draws brackets from it
};

/// A step at which a pruner compares trials, for `tune plan`.
struct Rung {
    std::int64_t step = 0;
    double trials = 0;                // that are expected to reach it
    std::optional<int> bracket = {};  // of pruners that have several, which share the trials
};

struct PrunerKind : KindBase {
    /// `config` has this kind's options.
    std::unique_ptr<Pruner> (*make)(const PrunerConfig& config, const PrunerContext& context);
    /// The rungs of a study of so many trials, each bracket's last one being the last step; empty
    /// when they are found from the first complete trial. Null: it has no rungs.
    std::vector<Rung> (*rungs)(const PrunerConfig& config, double trials) = nullptr;
    /// Settings without knowledge of the study, in the words of --pruner, which `tune pruners`
    /// replays when it is asked for none.
    std::vector<std::string_view> replays = {};
};

}  // namespace tune::tuner
