// NSGA-II (Deb et al. 2002) and NSGA-III (Deb, Jain 2014), with the operators of Optuna 5.0.0
// (optuna/samplers/nsgaii, _nsgaiii).
//
// The idea. Of the trials of a generation and its parents the best survive and are the parents of
// the next one: whole ranks of dominance, and of the rank that does not fit the least crowded
// (NSGA-II) or those along the emptiest reference directions (NSGA-III). A child takes after two
// parents, each the better of two drawn at random, and now and then a parameter is drawn anew.
// Infeasible trials rank after feasible ones, by how far they are off.
//
// Generations go by trial number: trial n belongs to generation n / population. So a suggestion
// needs nobody's memory of which generation was current when it was asked: it is a function of the
// set of observations, however many workers there are. A generation's parents are chosen from what
// has ended when a child is asked for; trials that still run or have failed are not among them.
//
// Deviations from Optuna: generations as said (there, so many complete trials), children that equal
// a parent get one parameter drawn anew (a repeat tells nothing), and conditional parameters are
// inherited from whichever parent has them.

#include "tuner/sampler/nsga/nsga_sampler.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/simple/random_sampler.h"
#include "tuner/space/node.h"

namespace tune::tuner {
namespace {

constexpr double kBlxAlpha = 0.5;
/// Pairs of parents tried until a child lies within the bounds; then it is moved to them.
constexpr int kPairsMax = 100;

/// One coordinate of a child by simulated binary crossover, confined to [low, high]. Source: Deb,
/// Agrawal 1995; optuna 5.0.0, nsgaii/_crossovers/_sbx.py (eta 2 for one objective, 20 for more).
double sbx(double a, double b, const Axis& axis, double eta, Draws& draws) {
    const double low = std::min(a, b);
    const double high = std::max(a, b);
    const double gap = std::max(high - low, 1e-10);
    const double u = draws.next();
    const auto spread = [&](double room) {
        const double alpha = 2 - std::pow(1 + 2 * room / gap, -(eta + 1));
        return u <= 1 / alpha ? std::pow(u * alpha, 1 / (eta + 1))
                              : std::pow(1 / (2 - u * alpha), 1 / (eta + 1));
    };
    const double first = 0.5 * ((low + high) - spread(low - axis.low) * gap);
    const double second = 0.5 * ((low + high) + spread(axis.high - high) * gap);
    const bool takes_child = draws.next() < 0.5;
    const bool takes_first = draws.next() < 0.5;
    if (takes_child) return takes_first ? first : second;
    return takes_first ? a : b;
}

bool has_nan(const Observation& observation) {
    return std::isnan(observation.value) ||
           std::any_of(observation.more_values.begin(), observation.more_values.end(),
                       [](double value) { return std::isnan(value); });
}

bool is_same(const Point& a, const Point& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return x == y || (!is_active(x) && !is_active(y));
    });
}

constexpr int kNsgaPopulationMax = 100'000;
/// Of 8 objectives 12 divisions give 50,388 reference directions, each compared with each trial.
constexpr int kDivisionsMax = 12;

OptionTable nsga_rows(NsgaVariant variant) {
    using Options = NsgaOptions;
    TableOf<Options> table;
    table.integer("population", &Options::population, 2, kNsgaPopulationMax,
                  "trials of a generation");
    table.choice("crossover", &Options::crossover,
                 std::vector<std::pair<std::string, Crossover>>{{"uniform", Crossover::kUniform},
                                                                {"blx_alpha", Crossover::kBlxAlpha},
                                                                {"sbx", Crossover::kSbx}},
                 "how two parents make a child");
    table.number("crossover_probability", &Options::crossover_probability, 0, 1,
                 "else the child is a copy of one parent");
    table.number("swap_probability", &Options::swap_probability, 0, 1,
                 "of the other parent's value, with the crossover uniform");
    table
        .number("mutation_probability", &Options::mutation_probability, 0, 1,
                "of a new draw, for each parameter")
        .defaults_to("1 / parameters");
    if (variant == NsgaVariant::k3)
        table.integer("divisions", &Options::divisions, 1, kDivisionsMax,
                      "parts of an axis between the reference directions");
    return table;
}

template <NsgaVariant kVariant>
std::unique_ptr<Sampler> make_nsga(const SamplerConfig& config, const SamplerContext& context) {
    return std::make_unique<NsgaSampler>(context.space, kVariant, config.get<NsgaOptions>(),
                                         context.objectives, context.seed);
}

Result<void> check_nsga3(const SamplerConfig&, const StudyShape& shape) {
    if (shape.objectives > 1) return {};
    return error_at({}, "sampler",
                    "the sampler nsga3 spreads trials between several objectives, and this study "
                    "has one; use nsga2 or tpe");
}

}  // namespace

const SamplerKind& nsga2_sampler() {
    static const OptionTable kOptions = nsga_rows(NsgaVariant::k2);
    static const SamplerKind kKind = [] {
        SamplerKind kind{{"nsga2",
                          "children of two good trials, by generations of trial numbers; the least "
                          "crowded of a front survive",
                          kOptions},
                         make_nsga<NsgaVariant::k2>};
        kind.takes_more = true;
        return kind;
    }();
    return kKind;
}

const SamplerKind& nsga3_sampler() {
    static const OptionTable kOptions = nsga_rows(NsgaVariant::k3);
    static const SamplerKind kKind = [] {
        SamplerKind kind{{"nsga3",
                          "as nsga2, for many objectives: those along the emptiest of the "
                          "reference directions survive",
                          kOptions},
                         make_nsga<NsgaVariant::k3>};
        kind.takes_more = true;
        kind.check_study = check_nsga3;
        return kind;
    }();
    return kKind;
}

NsgaSampler::NsgaSampler(const Space& space, NsgaVariant variant, const NsgaOptions& options,
                         Objectives objectives, std::uint64_t seed)
    : space_(space),
      variant_(variant),
      options_(options),
      objectives_(std::move(objectives)),
      seed_(seed),
      groups_(groups_of(space)),
      directions_(variant == NsgaVariant::k3
                      ? reference_directions(objectives_.goals.size(),
                                             static_cast<std::size_t>(options.divisions))
                      : LossTable(objectives_.goals.size())) {
    TUNE_CHECK(options.population >= 2, "the sampler's config was checked");
}

std::uint64_t NsgaSampler::generation_of(std::uint64_t number) const {
    return number / static_cast<std::uint64_t>(options_.population);
}

Result<void> NsgaSampler::observe(const Observation& observation) {
    const bool counts = observation.state == Observation::State::kComplete && !has_nan(observation);
    if (observation.state != Observation::State::kGone)
        TUNE_TRY_VOID(space_.check(observation.point));
    const bool was_there = individuals_.erase(observation.number) > 0;
    if (!counts && !was_there) return {};
    if (counts)
        individuals_[observation.number] = {.point = observation.point,
                                            .losses = losses_of(observation, objectives_),
                                            .violation = observation.violation};
    // Parents of later generations were chosen without it.
    const std::uint64_t fresh = generation_of(observation.number) + 1;
    if (parents_.size() > fresh) parents_.resize(fresh);
    return {};
}

const NsgaSampler::Numbers& NsgaSampler::parents_of(std::uint64_t generation) {
    if (parents_.empty()) parents_.emplace_back();
    while (parents_.size() <= generation)
        parents_.push_back(survivors(parents_.size() - 1, parents_.back()));
    return parents_[generation];
}

/// Of the trials of `generation` and its `parents`.
NsgaSampler::Numbers NsgaSampler::survivors(std::uint64_t generation,
                                            const Numbers& parents) const {
    const auto size = static_cast<std::uint64_t>(options_.population);
    Numbers candidates;
    Population population(objectives_.goals.size());
    const auto add = [&](std::uint64_t number, const Individual& one) {
        candidates.push_back(number);
        population.losses.add(one.losses);
        population.violations.push_back(one.violation);
    };
    const auto end = individuals_.lower_bound((generation + 1) * size);
    for (auto at = individuals_.lower_bound(generation * size); at != end; ++at)
        add(at->first, at->second);
    for (const std::uint64_t number : parents) add(number, individuals_.at(number));
    if (candidates.size() <= size) {
        std::sort(candidates.begin(), candidates.end());
        return candidates;
    }
    Draws draws(seed_, generation, "nsga3 niches");
    Numbers chosen;
    for (const std::size_t row : variant_ == NsgaVariant::k3
                                     ? select_by_directions(population, size, directions_, draws)
                                     : select_by_crowding(population, size))
        chosen.push_back(candidates[row]);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

Point NsgaSampler::suggest(std::uint64_t number, const Point& fixed) {
    const Numbers& parents = parents_of(generation_of(number));
    CounterSource source(seed_);
    const Point start = parents.size() < 2 ? space_.empty_point() : child(parents, number);
    return compose_from(space_, groups_, fixed, start, source, number);
}

/// The better of two drawn at random; never `other`.
const NsgaSampler::Individual& NsgaSampler::tournament(const Numbers& parents,
                                                       const Individual* other,
                                                       Draws& draws) const {
    std::vector<const Individual*> pool;
    for (const std::uint64_t number : parents)
        if (const Individual* one = &individuals_.at(number); one != other) pool.push_back(one);
    const Individual& a = *pool[draws.index(pool.size())];
    const Individual& b = *pool[draws.index(pool.size())];
    if (a.violation > 0 || b.violation > 0) return a.violation < b.violation ? a : b;
    return dominates(a.losses, b.losses) ? a : b;
}

/// What the child inherits; inactive where a parameter is to be drawn anew.
Point NsgaSampler::child(const Numbers& parents, std::uint64_t number) const {
    Draws draws(seed_, number, "nsga child");
    Point point;
    const Individual* first = nullptr;
    const Individual* second = nullptr;
    if (draws.next() < options_.crossover_probability) {
        std::optional<Point> crossed_point;
        for (int pair = 1; !crossed_point; ++pair) {
            first = &tournament(parents, nullptr, draws);
            second = &tournament(parents, first, draws);
            crossed_point = crossed(*first, *second, pair >= kPairsMax, draws);
        }
        point = std::move(*crossed_point);
    } else {
        first = second = &individuals_.at(parents[draws.index(parents.size())]);
        point = first->point;
    }
    std::vector<std::size_t> searched;
    for (const Group& group : groups_)
        for (const std::size_t index : group.members)
            if (!group.is_fixed && is_active(point[index])) searched.push_back(index);
    const bool is_repeat = is_same(point, first->point) || is_same(point, second->point);
    const double probability = options_.mutation_probability.value_or(
        1 / static_cast<double>(std::max<std::size_t>(searched.size(), 1)));
    bool is_mutated = false;
    for (const std::size_t index : searched) {
        if (draws.next() >= probability) continue;
        point[index] = kInactive;
        is_mutated = true;
    }
    if (is_repeat && !is_mutated && !searched.empty())
        point[searched[draws.index(searched.size())]] = kInactive;
    return point;
}

/// Nothing: the child lies outside the bounds (`is_last`: it is moved to them).
std::optional<Point> NsgaSampler::crossed(const Individual& a, const Individual& b, bool is_last,
                                          Draws& draws) const {
    Point point = space_.empty_point();
    const double eta = objectives_.goals.size() > 1 ? 20 : 2;
    for (std::size_t index = 0; index < space_.size(); ++index) {
        const bool in_a = is_active(a.point[index]);
        const bool in_b = is_active(b.point[index]);
        if (!in_a || !in_b || space_[index].is_single()) {
            point[index] = in_a ? a.point[index] : b.point[index];
            continue;
        }
        const Axis axis = Axis::of(space_[index]);
        if (axis.kind == Axis::Kind::kCategory || options_.crossover == Crossover::kUniform) {
            point[index] =
                draws.next() < options_.swap_probability ? a.point[index] : b.point[index];
            continue;
        }
        const double x = axis.position(a.point[index]);
        const double y = axis.position(b.point[index]);
        double position = 0;
        if (options_.crossover == Crossover::kSbx) {
            position = sbx(x, y, axis, eta, draws);
        } else {
            const double reach = kBlxAlpha * std::abs(x - y);
            const double low = std::min(x, y) - reach;
            position = low + draws.next() * (std::max(x, y) + reach - low);
        }
        if (!is_last && !(position >= axis.low && position <= axis.high)) return std::nullopt;
        position = std::clamp(position, axis.low, axis.high);
        point[index] = space_[index].snap(axis.value(position));
    }
    return point;
}

}  // namespace tune::tuner
