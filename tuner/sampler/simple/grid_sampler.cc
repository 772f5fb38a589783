// Every point of the grid once, in an order that depends on the seed alone: trial n gets the n-th
// point of one shuffle, whatever was seen, so that a study that ends early has looked everywhere
// and a replay needs no history.

#include "tuner/sampler/simple/grid_sampler.h"

#include <algorithm>

#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {
namespace {

/// Fisher and Yates, with numbers that depend on the seed only.
void shuffle(std::vector<Point>& points, std::uint64_t seed) {
    std::vector<double> uniforms(points.size());
    CounterSource(seed).fill(0, stream_key("order of the grid"), uniforms);
    for (std::size_t left = points.size(); left > 1; --left) {
        const auto at = static_cast<std::size_t>(uniforms[left - 1] * static_cast<double>(left));
        std::swap(points[left - 1], points[std::min(at, left - 1)]);
    }
}

bool agrees(const Point& point, const Point& given) {
    for (std::size_t i = 0; i < given.size(); ++i)
        if (is_active(given[i]) && is_active(point[i]) && given[i] != point[i]) return false;
    return true;
}

Result<std::vector<Point>> grid_points(const Space& space, const GridOptions& options) {
    std::vector<std::vector<double>> levels;
    for (const Parameter& parameter : space.parameters()) {
        levels.push_back(levels_of(parameter, static_cast<std::size_t>(options.points)));
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

OptionTable grid_rows() {
    TableOf<GridOptions> table;
    table.integer("points", &GridOptions::points, 1, 100'000, "values of a continuous parameter")
        .brief()
        .defaults_to("continuous parameters are refused");
    return table;
}

std::unique_ptr<Sampler> make_grid(const SamplerConfig& config, const SamplerContext& context) {
    return std::make_unique<GridSampler>(
        context.space, grid_points(context.space, config.get<GridOptions>()).value(), context.seed);
}

Result<void> check_grid(const Space& space, const SamplerConfig& config) {
    TUNE_TRY(points, grid_points(space, config.get<GridOptions>()));
    return {};
}

std::optional<std::uint64_t> count_grid(const Space& space, const SamplerConfig& config) {
    const auto points = grid_points(space, config.get<GridOptions>());
    return points ? std::optional<std::uint64_t>(points->size()) : std::nullopt;
}

}  // namespace

const SamplerKind& grid_sampler() {
    static const OptionTable kOptions = grid_rows();
    static const SamplerKind kKind = [] {
        SamplerKind kind{{"grid",
                          "every combination once, in an order shuffled by the seed; at most "
                          "100,000",
                          kOptions},
                         make_grid};
        kind.uses_results = false;
        kind.ends_itself = true;
        kind.takes_more = true;
        kind.check_space = check_grid;
        kind.point_count = count_grid;
        return kind;
    }();
    return kKind;
}

GridSampler::GridSampler(const Space& space, std::vector<Point> points, std::uint64_t seed)
    : space_(space),
      seed_(seed),
      points_(std::move(points)),
      grid_(points_.begin(), points_.end()),
      unseen_(points_.size()) {
    shuffle(points_, seed);
}

Result<void> GridSampler::observe(const Observation& observation) {
    if (observation.point.size() != space_.size()) return {};  // gone, and nothing known of it
    if (observation.state != Observation::State::kGone)
        TUNE_TRY_VOID(space_.check(observation.point));
    const bool is_new = seen_.insert(observation.point).second;
    if (is_new && grid_.contains(observation.point)) --unseen_;
    return {};
}

Point GridSampler::suggest(std::uint64_t number, const Point& fixed) {
    while (cursor_ < points_.size() && seen_.contains(points_[cursor_])) ++cursor_;
    for (std::size_t i = cursor_; i < points_.size(); ++i)
        if (!seen_.contains(points_[i]) && agrees(points_[i], fixed)) return points_[i];
    // Values beside the grid, or all seen: what is not given is drawn.
    RandomSampler random(space_, std::make_unique<CounterSource>(seed_));
    return random.suggest(number, fixed);
}

}  // namespace tune::tuner
