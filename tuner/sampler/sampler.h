#pragma once
// Samplers propose the next point. They hold the study's history in the form they need, told trial
// by trial, so that a suggestion never reads the history anew.
//
// Determinism: a suggestion is a function of (seed, trial number, fixed values, the set of
// observations in force). The order in which observations arrived does not matter, nor do threads
// or wall time: a sampler that is told the last observation of each trial in any order gives the
// same bits as one that lived through the study. So resuming = observe() for every trial, then go
// on.
//
// Threads: none inside; the caller holds one lock over each call. Pure: no I/O, no clock.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/pbt/origin.h"
#include "tuner/space/space.h"

namespace tune::tuner {

/// The latest state of one trial as the sampler sees it.
struct Observation {
    enum class State {
        kRunning,   // asked and not finished (queued with a point, running, waiting for a retry)
        kComplete,  // `value` counts; NaN counts as kGone
        kPruned,    // stopped early; `last_step` and `last_value` count if it reported at all
        kGone       // failed or cancelled: forget the trial
    };
    std::uint64_t number = 0;  // < kTrialsMax
    State state = State::kRunning;
    Point point;       // kGone: what it had, if known; empty otherwise
    double value = 0;  // kComplete: as the user sees it, not negated; may be infinite
    std::vector<double> more_values = {};  // kComplete: of the objectives after the first
    double violation = 0;  // kComplete: how far beyond the constraints' bounds; 0: feasible
    std::optional<std::int64_t> last_step = {};  // kPruned: the highest step reported
    double last_value = 0;                       // kPruned: the value at last_step; may be NaN
    std::vector<double> violations = {};  // kComplete: `violation`, one a constraint, in order
    std::optional<Origin> origin = {};    // in any state: what origin() said of it
};

/// Whether a value of a completed trial is no number.
[[nodiscard]] bool has_nan(const Observation& observation);

/// What a study's values mean. One goal without constraints is what every sampler takes; which take
/// more says check_metrics (study_config.h).
struct Objectives {
    std::vector<Goal> goals;      // at least one; Observation::value is of the first
    bool is_constrained = false;  // Observation::violation says something

    // NOLINTNEXTLINE(google-explicit-constructor): one goal is the usual case.
    Objectives(Goal goal) : goals{goal} {}
    explicit Objectives(const StudyConfig& config);
};

class Sampler {
public:
    virtual ~Sampler() = default;

    /// Takes the latest state of a trial; replaces what was known of it. Call it with kRunning as
    /// soon as a point is handed out, so that the next ask sees it, and once more at the end.
    /// Errors: kInvalidParameterValue if the point lies outside the space (then nothing changes).
    virtual Result<void> observe(const Observation& observation) = 0;

    /// The point for trial `number`. `fixed`: values that are given (kInactive: not given; empty:
    /// none); the rest is suggested, and what the conditions switch off is dropped. With no
    /// `fixed`, the space's first points come before any other, and no point is forbidden; with
    /// some, Space::check tells whether the point can be run. Does not record the trial: observe()
    /// does.
    [[nodiscard]] virtual Point suggest(std::uint64_t number, const Point& fixed = {}) = 0;

    /// Which trial the trial `number` continues, by the same observations as its suggest(); nothing
    /// where trials start from nothing.
    [[nodiscard]] virtual std::optional<Origin> origin(std::uint64_t /*number*/) {
        return std::nullopt;
    }

    /// True when nothing is left to try: every point that it would propose was had by a trial, or
    /// every member of a population trains or has trained to the end.
    [[nodiscard]] virtual bool is_exhausted() const { return false; }
};

/// REQUIRES: check_sampler(space, config).
/// `earlier`: complete trials of another study, least weight first, that the model begins with.
/// `seed`: the study's recorded seed (config.seed is not read). Keeps its own copy of `space`.
[[nodiscard]] std::unique_ptr<Sampler> make_sampler(const Space& space, const SamplerConfig& config,
                                                    const Objectives& objectives,
                                                    std::uint64_t seed,
                                                    const std::vector<Observation>& earlier = {});

/// False when is_exhausted() of such a sampler never holds.
[[nodiscard]] bool can_be_exhausted(const Space& space, const SamplerConfig& config);

/// Whether the sampler can search this space. Errors: kInvalidParameterValue saying what to change
/// (a grid over a continuous parameter, or of too many points; CMA-ES or a Gaussian process over
/// more parameters than it can handle).
[[nodiscard]] Result<void> check_sampler(const Space& space, const SamplerConfig& config);

}  // namespace tune::tuner
