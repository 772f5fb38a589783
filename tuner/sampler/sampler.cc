#include "tuner/sampler/sampler.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/auto_sampler.h"
#include "tuner/sampler/cma/cma_sampler.h"
#include "tuner/sampler/decorators/deduplicating_sampler.h"
#include "tuner/sampler/decorators/feasible_sampler.h"
#include "tuner/sampler/decorators/initial_points_sampler.h"
#include "tuner/sampler/decorators/warm_start_sampler.h"
#include "tuner/sampler/gp/gp_sampler.h"
#include "tuner/sampler/nsga/nsga_sampler.h"
#include "tuner/sampler/pbt/pbt_sampler.h"
#include "tuner/sampler/simple/grid_sampler.h"
#include "tuner/sampler/simple/qmc_sampler.h"
#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/tpe/ctpe_sampler.h"
#include "tuner/sampler/tpe/preset_sampler.h"
#include "tuner/sampler/tpe/tpe_sampler.h"

namespace tune::tuner {
namespace {

Result<std::vector<Point>> grid_points(const Space& space, const SamplerConfig& config) {
    std::vector<std::vector<double>> levels;
    for (const Parameter& parameter : space.parameters()) {
        levels.push_back(levels_of(parameter, static_cast<std::size_t>(config.points)));
        if (levels.back().empty())
            return Error{Code::kInvalidParameterValue,
                         "sampler: a grid needs finitely many values, and '" + parameter.name +
                             (parameter.count() == 0
                                  ? "' is continuous; give it a step, or the sampler 'points' (a "
                                    "continuous parameter then has so many values)"
                                  : "' has too many; use random or qmc")};
    }
    std::optional<std::vector<Point>> points = list_points(space, levels);
    if (points) return std::move(*points);
    return Error{Code::kInvalidParameterValue,
                 "sampler: the grid has more than " + std::to_string(kListedPointsMax) +
                     " points; give coarser steps, or use random or qmc"};
}

/// Keeps trials from repeating each other where the space is finite.
std::unique_ptr<Sampler> make_distinct(const Space& space, const SamplerConfig& config,
                                       std::unique_ptr<Sampler> inner,
                                       std::shared_ptr<SeenPoints> seen, std::uint64_t seed) {
    std::vector<std::vector<double>> levels;
    bool are_listed = true;
    for (const Parameter& parameter : space.parameters()) {
        levels.push_back(levels_of(parameter, 0));
        are_listed = are_listed && !levels.back().empty();
    }
    // Sequences that look at no result have no reason to stay near.
    const bool is_near = config.type != SamplerType::kRandom && config.type != SamplerType::kQmc;
    return std::make_unique<DistinctSampler>(
        space, are_listed ? list_points(space, levels) : std::nullopt, std::move(inner),
        std::move(seen), seed, Repeats{config.duplicates == Duplicates::kReuse, is_near});
}

/// TPE within another sampler keeps to Optuna's rules.
SamplerConfig within(SamplerConfig config) {
    config.preset = TpePreset::kOptuna5;
    return config;
}

std::unique_ptr<Sampler> make_tpe(const Space& space, const SamplerConfig& config,
                                  const Objectives& objectives, std::uint64_t seed,
                                  std::shared_ptr<const SeenPoints> seen = nullptr) {
    if (config.preset == TpePreset::kHyperopt || config.preset == TpePreset::kWatanabe)
        return std::make_unique<PresetSampler>(space, config, objectives.goals.front(), seed);
    if (objectives.is_constrained && config.constraints == ConstraintRule::kEach)
        return std::make_unique<CtpeSampler>(space, config, objectives.goals.front(), seed);
    return std::make_unique<TpeSampler>(
        space, config, objectives,
        TpeSources{std::make_unique<CounterSource>(seed), std::make_unique<CounterSource>(seed)},
        std::move(seen));
}

/// CMA-ES, with TPE for what it does not model.
std::unique_ptr<Sampler> make_cmaes(const Space& space, const SamplerConfig& config, Goal goal,
                                    std::uint64_t seed) {
    if (plain_number_count(space) == 0) return make_tpe(space, within(config), goal, seed);
    std::unique_ptr<Sampler> others;
    if (models_whole(space)) {
        others = std::make_unique<RandomSampler>(space, std::make_unique<CounterSource>(seed));
    } else {
        others = make_tpe(space, within(config), goal, seed);
    }
    return std::make_unique<CmaSampler>(space, goal, seed, std::move(others));
}

/// Parameters of CMA-ES and of the Gaussian process: an ask with so many takes about 0.2 s.
constexpr std::size_t kModelledMax = 500;

/// Of the range: a Gaussian process has found the region, CMA-ES is to find its lowest place.
constexpr double kAutoCmaSigma = 0.03;

std::unique_ptr<Sampler> make_auto(const Space& space, const SamplerConfig& config,
                                   const Objectives& objectives, std::uint64_t seed,
                                   std::shared_ptr<const SeenPoints> seen) {
    AutoParts parts;
    parts.choice = choose_sampler(space, objectives);
    parts.later = make_tpe(space, within(config), objectives, seed, std::move(seen));
    if (parts.choice.gp_trials > 0)
        parts.first = std::make_unique<GpSampler>(space, config, objectives.goals.front(), seed);
    if (parts.choice.is_cmaes_last)
        parts.last = std::make_unique<CmaSampler>(
            space, objectives.goals.front(), seed,
            std::make_unique<RandomSampler>(space, std::make_unique<CounterSource>(seed)),
            CmaStart{parts.choice.gp_trials, kAutoCmaSigma});
    return std::make_unique<AutoSampler>(std::move(parts));
}

/// `seen`: points that TPE does not propose again; null: it may.
std::unique_ptr<Sampler> make_plain(const Space& space, const SamplerConfig& config,
                                    const Objectives& objectives, std::uint64_t seed,
                                    std::shared_ptr<const SeenPoints> seen) {
    const Goal goal = objectives.goals.front();
    switch (config.type) {
        case SamplerType::kRandom:
            return std::make_unique<RandomSampler>(space, std::make_unique<CounterSource>(seed));
        case SamplerType::kGrid:
            return std::make_unique<GridSampler>(space, grid_points(space, config).value(), seed);
        case SamplerType::kQmc: return std::make_unique<QmcSampler>(space, seed);
        case SamplerType::kGp: return std::make_unique<GpSampler>(space, config, goal, seed);
        case SamplerType::kTpe: return make_tpe(space, config, objectives, seed, std::move(seen));
        case SamplerType::kCmaes: return make_cmaes(space, config, goal, seed);
        case SamplerType::kAuto: return make_auto(space, config, objectives, seed, std::move(seen));
        case SamplerType::kNsga2:
        case SamplerType::kNsga3:
            return std::make_unique<NsgaSampler>(space, config, objectives, seed);
        case SamplerType::kPbt: return std::make_unique<PbtSampler>(space, config, goal, seed);
    }
    TUNE_CHECK(false, "an unknown sampler");
    return nullptr;
}

/// An ask of these holds up every study of the server.
Result<void> check_size(const Space& space, const SamplerConfig& config) {
    const bool is_cmaes = config.type == SamplerType::kCmaes;
    if (!is_cmaes && config.type != SamplerType::kGp) return {};
    const std::size_t count = is_cmaes ? plain_number_count(space) : space.size();
    if (count <= kModelledMax) return {};
    return Error{Code::kInvalidParameterValue,
                 "sampler " + std::string(sampler_name(config.type)) + " takes at most " +
                     std::to_string(kModelledMax) + (is_cmaes ? " numbers" : " parameters") +
                     ", as its work grows with their cube; the space has " + std::to_string(count) +
                     ". tpe, nsga2, qmc and random have no such bound."};
}

}  // namespace

bool has_nan(const Observation& observation) {
    return std::isnan(observation.value) ||
           std::any_of(observation.more_values.begin(), observation.more_values.end(),
                       [](double value) { return std::isnan(value); });
}

Objectives::Objectives(const StudyConfig& config) : is_constrained(!config.constraints.empty()) {
    for (const MetricConfig& metric : metrics_of(config)) goals.push_back(metric.goal);
}

std::unique_ptr<Sampler> make_sampler(const Space& space, const SamplerConfig& config,
                                      const Objectives& objectives, std::uint64_t seed,
                                      const std::vector<Observation>& earlier) {
    const auto seen = std::make_shared<SeenPoints>();
    // A grid has no point twice by itself; a population's member has its last trial's values again.
    const bool may_repeat = config.type == SamplerType::kGrid || config.type == SamplerType::kPbt;
    const bool is_distinct = !may_repeat && can_be_exhausted(space, config);
    const bool avoids = is_distinct && config.duplicates == Duplicates::kResample;
    std::unique_ptr<Sampler> sampler =
        make_plain(space, config, objectives, seed, avoids ? seen : nullptr);
    // Trial n of these two is the n-th point whatever was seen.
    const bool learns = config.type != SamplerType::kGrid && config.type != SamplerType::kQmc;
    if (learns && !earlier.empty())
        sampler = std::make_unique<HistorySampler>(std::move(sampler), earlier);
    if (space.rules() != nullptr)
        sampler = std::make_unique<AllowedSampler>(space, std::move(sampler), seed);
    if (is_distinct) sampler = make_distinct(space, config, std::move(sampler), seen, seed);
    if (!space.first_points().empty())
        sampler = std::make_unique<FirstSampler>(space, std::move(sampler));
    return sampler;
}

bool can_be_exhausted(const Space& space, const SamplerConfig& config) {
    if (config.type == SamplerType::kGrid || config.type == SamplerType::kPbt) return true;
    return config.duplicates != Duplicates::kAllow && is_finite_space(space);
}

Result<void> check_sampler(const Space& space, const SamplerConfig& config) {
    TUNE_TRY_VOID(check_size(space, config));
    if (config.type != SamplerType::kGrid) return {};
    TUNE_TRY(points, grid_points(space, config));
    return {};
}

}  // namespace tune::tuner
