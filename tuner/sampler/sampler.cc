// From a study's configuration to its sampler: one that models, wrapped in those that any sampler
// may need. From the inside:
//
//   WarmStartSampler       shifts trial numbers behind the trials of another study; only the model
//                          may see shifted numbers, so it comes first
//   FeasibleSampler        replaces what the rules forbid
//   DeduplicatingSampler   replaces what a trial has had, by points that it holds to the rules
//                          itself
//   InitialPointsSampler   proposes the points that the user gave, as given values, which no
//                          sampler inside replaces
//
// A sampler is wrapped only by what its study needs: a space without rules has no FeasibleSampler,
// and so on. Grids repeat nothing by themselves, and a population's members keep their values from
// trial to trial, so neither is deduplicated.

#include "tuner/sampler/sampler.h"

#include <optional>
#include <utility>

#include "tuner/sampler/decorators/deduplicating_sampler.h"
#include "tuner/sampler/decorators/feasible_sampler.h"
#include "tuner/sampler/decorators/initial_points_sampler.h"
#include "tuner/sampler/decorators/warm_start_sampler.h"
#include "tuner/sampler/sampler_kind.h"

namespace tune::tuner {
namespace {

/// Parameters of CMA-ES and of the Gaussian process: an ask with so many takes about 0.2 s.
constexpr std::size_t kModelledMax = 500;

/// The points of a finite space; nothing if it is not, or has too many.
std::optional<std::vector<Point>> points_of(const Space& space) {
    std::vector<std::vector<double>> levels;
    for (const Parameter& parameter : space.parameters()) {
        levels.push_back(levels_of(parameter, 0));
        if (levels.back().empty()) return std::nullopt;
    }
    return list_points(space, levels);
}

/// Keeps trials from repeating each other where the space is finite.
std::unique_ptr<Sampler> make_distinct(const Space& space, const SamplerConfig& config,
                                       std::unique_ptr<Sampler> inner,
                                       std::shared_ptr<SeenPoints> seen, std::uint64_t seed) {
    // Sequences that look at no result have no reason to stay near.
    const Repeats repeats{config.duplicates == Duplicates::kReuse, config.kind().uses_results};
    return std::make_unique<DeduplicatingSampler>(space, points_of(space), std::move(inner),
                                                  std::move(seen), seed, repeats);
}

}  // namespace

std::unique_ptr<Sampler> make_sampler(const Space& space, const SamplerConfig& config,
                                      const Objectives& objectives, std::uint64_t seed,
                                      const std::vector<Observation>& earlier) {
    const SamplerKind& kind = config.kind();
    const auto seen = std::make_shared<SeenPoints>();
    // A grid has no point twice by itself; a population's member has its last trial's values again.
    const bool is_distinct = !kind.ends_itself && can_be_exhausted(space, config);
    const bool avoids = is_distinct && config.duplicates == Duplicates::kResample;
    std::unique_ptr<Sampler> sampler =
        kind.make(config, {space, objectives, seed, avoids ? seen : nullptr});
    if (kind.uses_results && !earlier.empty())
        sampler = std::make_unique<WarmStartSampler>(std::move(sampler), earlier);
    if (space.rules() != nullptr)
        sampler = std::make_unique<FeasibleSampler>(space, std::move(sampler), seed);
    if (is_distinct) sampler = make_distinct(space, config, std::move(sampler), seen, seed);
    if (!space.first_points().empty())
        sampler = std::make_unique<InitialPointsSampler>(space, std::move(sampler));
    return sampler;
}

bool can_be_exhausted(const Space& space, const SamplerConfig& config) {
    if (config.kind().ends_itself) return true;
    return config.duplicates != Duplicates::kAllow && is_finite_space(space);
}

std::optional<std::uint64_t> point_count(const Space& space, const SamplerConfig& config) {
    const SamplerKind& kind = config.kind();
    if (kind.point_count != nullptr) return kind.point_count(space, config);
    if (!can_be_exhausted(space, config)) return std::nullopt;
    const auto points = points_of(space);
    return points ? std::optional<std::uint64_t>(points->size()) : std::nullopt;
}

Result<void> check_sampler(const Space& space, const SamplerConfig& config) {
    const auto check = config.kind().check_space;
    return check != nullptr ? check(space, config) : Result<void>();
}

Result<void> check_model_size(std::string_view sampler, std::size_t count, std::string_view noun) {
    if (count <= kModelledMax) return {};
    return Error{Code::kInvalidParameterValue,
                 "sampler " + std::string(sampler) + " takes at most " +
                     std::to_string(kModelledMax) + " " + std::string(noun) +
                     ", as its work grows with their cube; the space has " + std::to_string(count) +
                     ". tpe, nsga2, qmc and random have no such bound."};
}

}  // namespace tune::tuner
