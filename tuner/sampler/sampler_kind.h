#pragma once
// What a sampler tells the rest of the program about itself: docs/adding_a_pruner.md. Included by
// samplers and by the few that make one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tuner/options/option_table.h"
#include "tuner/sampler/decorators/seen_points.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// What a sampler knows of its study.
struct SamplerContext {
    const Space& space;
    const Objectives& objectives;
    std::uint64_t seed = 0;
    std::shared_ptr<const SeenPoints> seen = nullptr;  // not to be proposed again; null: they may
};

/// What a sampler may refuse to serve.
struct StudyShape {
    std::size_t objectives = 1;
    bool has_constraints = false;
    bool has_history = false;  // of an earlier study
};

/// What a sampler can say of a study before it runs.
struct StudyOutlook {
    const Space& space;
    const Objectives& objectives;
    std::optional<std::uint64_t> trials = {};
    int parallel = 1;
};

/// In all of these `config` has this kind's options.
struct SamplerKind : KindBase {
    std::unique_ptr<Sampler> (*make)(const SamplerConfig& config, const SamplerContext& context);

    /// False where trial n is a function of n alone: such a sampler is told no history, and no
    /// point near another one is worth more.
    bool uses_results = true;
    /// It says itself when nothing is left, and has no use for `duplicates`.
    bool ends_itself = false;
    /// Several objectives, and constraints.
    bool takes_more = false;

    /// Refuses a space that it cannot search. Errors: kInvalidParameterValue saying what to change.
    Result<void> (*check_space)(const Space& space, const SamplerConfig& config) = nullptr;
    /// Refuses what `takes_more` does not say. Errors: kInvalidParameterValue.
    Result<void> (*check_study)(const SamplerConfig& config, const StudyShape& shape) = nullptr;
    /// Points it proposes before it ends; nothing: it never does, or they are too many to count.
    /// Null: those of the space.
    std::optional<std::uint64_t> (*point_count)(const Space& space,
                                                const SamplerConfig& config) = nullptr;
    /// One sentence on what it makes of a study; null: its name says it.
    std::string (*outlook)(const SamplerConfig& config, const StudyOutlook& study) = nullptr;
};

/// Refuses a space with more than 500 of what is modelled (`noun`), since an ask of `sampler` would
/// hold up every study of the server.
[[nodiscard]] Result<void> check_model_size(std::string_view sampler, std::size_t count,
                                            std::string_view noun);

}  // namespace tune::tuner
