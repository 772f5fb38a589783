#pragma once
// A suggestion as a piece of work: all that it depends on is taken from the study in one moment,
// and it is made without the study, so that nobody waits for a model.
//
//   SuggestionDesk::begin (under the study's lock) -> suggest (any thread, no lock)
//     -> SuggestionDesk::end (under the lock again)
//
// The moment is the log position at which the study was left. It is the trial's `asked_at`, so a
// replay asks again with exactly what the model had seen then, whatever happened meanwhile.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// What a suggestion is wanted for.
struct SuggestionWish {
    /// kTrial: a point, unless nothing is left to try. kGiven: a point with the values of `fixed`.
    /// kLook: whether something is left to try, and a model that knows all trials.
    enum class For { kTrial, kGiven, kLook };
    For what = For::kTrial;
    Point fixed = {};
};

/// The sampler belongs to the work until it has ended; meanwhile the study does not touch it.
struct SuggestionWork {
    std::shared_ptr<Sampler> sampler;  ///< nullptr: `make` it
    std::function<std::shared_ptr<Sampler>()> make;
    std::vector<Observation> news;  ///< what the sampler has not observed
    bool is_up_to_date = true;      ///< false: more news are to come before it can suggest
    bool may_be_exhausted = false;
    SuggestionWish wish;
    std::uint64_t number = 0;         ///< of the trial that the point is for
    std::int64_t position = 0;        ///< of the study's log; see above
    std::uint64_t model_version = 0;  ///< another one when the study got another sampler
};

struct Suggestion {
    std::shared_ptr<Sampler> sampler;
    std::optional<Point> point;
    std::optional<Origin> origin;
    bool is_exhausted = false;
};

/// Cost: that of the sampler, up to seconds for a model of many trials. REQUIRES: the work was not
/// done yet.
[[nodiscard]] Suggestion suggest(const SuggestionWork& work);

/// What a sampler observes of a trial of the study with this configuration.
[[nodiscard]] Observation observation_of(const Trial& trial, const StudyConfig& config);

}  // namespace tune::tuner
