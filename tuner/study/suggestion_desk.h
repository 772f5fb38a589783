#pragma once
// Where a study's suggestions come from: its model (the sampler), what that has observed, and the
// one suggestion that is being made. Pure.
//
// Suggestions are made here, or elsewhere (suggestion.h) once suggest_elsewhere was called: then
// begin takes all that one depends on, and end brings the model back.
//
// Invariants:
//  - the model has observed the first known() trials as they are at the log's position, but for the
//    ends in a list that the next suggestion brings it;
//  - while a suggestion is made elsewhere, nobody touches the model;
//  - what was made with a model that was forgotten meanwhile counts for nothing.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/study/study_definition.h"
#include "tuner/study/study_log.h"
#include "tuner/study/suggestion.h"
#include "tuner/study/trial/trial_table.h"

namespace tune::tuner {

/// A point for the trial of the next number.
struct NextPoint {
    Point point = {};
    std::optional<Origin> origin = {};
};

/// Not thread-safe: part of a Study. What it refers to outlives it.
class SuggestionDesk {
public:
    SuggestionDesk(const StudyDefinition& definition, const TrialTable& trials, StudyLog& log)
        : definition_(definition), trials_(trials), log_(log) {}

    // --- made here ---

    /// What the sampler suggests; asked once for each position of the log, however often it is
    /// called. REQUIRES: !is_elsewhere(). Cost: one suggestion.
    [[nodiscard]] const NextPoint& next();
    /// With the values of `fixed`. REQUIRES and cost: as next.
    [[nodiscard]] NextPoint with(const Point& fixed);
    /// Tells the sampler up to `trials_max` more of the trials it does not know yet, which
    /// otherwise happens all at once at the first suggestion. True once it knows all. REQUIRES:
    /// !is_elsewhere().
    bool warm_up(std::size_t trials_max);

    // --- made elsewhere ---

    /// From now on nothing here computes a suggestion: begin and end bring them in.
    void suggest_elsewhere();
    [[nodiscard]] bool is_elsewhere() const { return is_elsewhere_; }
    /// True while a suggestion is being made elsewhere.
    [[nodiscard]] bool is_suggesting() const { return work_.has_value(); }
    /// True while that is one for a trial, which may be on its way.
    [[nodiscard]] bool expects_point() const { return work_ == Work::kPoint; }
    /// What a suggestion takes, with at most `news_max` observations: without all of them the work
    /// only brings the model closer, and another one has to follow. REQUIRES: !is_suggesting().
    /// Cost: O(news).
    [[nodiscard]] SuggestionWork begin(const SuggestionWish& wish, std::size_t news_max);
    /// False: the study got another sampler meanwhile, and what was made counts for nothing.
    [[nodiscard]] bool end(const SuggestionWork& work, const Suggestion& made);
    /// True if no trial waits or runs and only the model can tell whether a point is left; see
    /// SuggestionWish::kLook.
    [[nodiscard]] bool needs_look() const;

    // --- both ---

    /// Whether every point of a finite space has been suggested, as far as is known without a look.
    /// Most studies know the answer without building their sampler.
    [[nodiscard]] bool is_space_used();
    /// A trial was added to the table.
    void trial_added();
    /// A trial of the table has ended.
    void trial_ended(const Trial& trial);
    /// The model is made anew from the trials when it is next needed.
    void forget();

private:
    enum class Work { kPoint, kOther };

    Sampler& model();
    [[nodiscard]] bool may_be_used_up() const;
    [[nodiscard]] Observation observation(const Trial& trial) const {
        return observation_of(trial, definition_.config());
    }
    void observe(const Trial& trial);

    const StudyDefinition& definition_;
    const TrialTable& trials_;
    StudyLog& log_;
    std::shared_ptr<Sampler> model_;
    std::size_t known_ = 0;  // it knows this many of the first trials
    bool is_elsewhere_ = false;
    std::vector<std::uint64_t> changed_;  // trials that it knows, and that have ended since
    std::optional<Work> work_;            // what is being made elsewhere, with the model
    std::uint64_t model_version_ = 0;     // grows when the model becomes another one
    std::int64_t exhausted_at_ = -1;      // the log position of is_exhausted_; -1: never
    bool is_exhausted_ = false;
    NextPoint next_;
    std::int64_t next_at_ = -1;  // the log position at which next_ was asked; -1: never
};

}  // namespace tune::tuner
