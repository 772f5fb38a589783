#pragma once
// Pruners look at the values that trials report on the way and say which to stop.
//
// Threads: none inside; the caller holds one lock. Pure: no I/O, no clock. Deterministic in the
// order of calls; resuming = the same calls in the same order, verdicts ignored.

#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>

#include "tuner/pruner/pruner_config.h"

namespace tune::tuner {

enum class Verdict { kKeep, kPrune };

class Pruner {
public:
    /// How a trial left.
    enum class End {
        kComplete,  // its reports become the measure for others
        kPruned,    // values left in ASHA's rungs stay, as for every end
        kGone       // failed or cancelled: it never measures others
    };

    virtual ~Pruner() = default;

    /// A running trial reports. The first report of a step counts, later ones of the same step are
    /// ignored. NaN is a value that is worse than all others. O(log n).
    virtual void note(std::uint64_t number, std::int64_t step, double value) = 0;

    /// Whether to stop the trial, by what it has reported up to its highest step. A trial that has
    /// reported nothing, or has ended, is kept. O(log n) unless the pruner says otherwise.
    [[nodiscard]] virtual bool should_prune(std::uint64_t number) = 0;

    /// Both, as every report does.
    [[nodiscard]] Verdict report(std::uint64_t number, std::int64_t step, double value) {
        note(number, step, value);
        return should_prune(number) ? Verdict::kPrune : Verdict::kKeep;
    }

    /// The trial has ended; later reports of it are ignored. Idempotent. `value`: of a complete
    /// trial, what the study counts.
    virtual void finish(std::uint64_t number, End end, double value) = 0;
    void finish(std::uint64_t number, End end) {
        finish(number, end, std::numeric_limits<double>::quiet_NaN());
    }
};

/// `study`: hyperband draws a trial's bracket from the study's name and the trial's number, as
/// Optuna does.
[[nodiscard]] std::unique_ptr<Pruner> make_pruner(const PrunerConfig& config, Goal goal,
                                                  std::string_view study = {});

}  // namespace tune::tuner
