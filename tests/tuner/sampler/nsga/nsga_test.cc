// NSGA-II and NSGA-III, and TPE with several objectives and constraints: determinism, operators,
// bad input, and quality on the usual test problems against random search.

#include "tuner/sampler/nsga/nsga_sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/bench/tuner/several_problems.h"
#include "tuner/sampler/nsga/hypervolume.h"

namespace tune::tuner::nsga_test {
namespace {

using bench::dtlz2;
using bench::zdt;
using Problem = std::function<std::vector<double>(const Point&)>;

Space unit_cube(std::size_t size) {
    Json spec = Json::object();
    for (std::size_t i = 0; i < size; ++i) spec["x" + std::to_string(10 + i)] = {{"float", {0, 1}}};
    return Space::from_json(spec).value();
}

Objectives minimize(std::size_t count, bool is_constrained = false) {
    Objectives objectives(Goal::kMinimize);
    objectives.goals.assign(count, Goal::kMinimize);
    objectives.is_constrained = is_constrained;
    return objectives;
}

SamplerConfig config_of(std::string_view type) {
    SamplerConfig config = sampler_named(type);
    if (config.get_if<NsgaOptions>() != nullptr) config.edit<NsgaOptions>().population = 20;
    return config;
}

Observation complete(std::uint64_t number, const Point& point, std::vector<double> values,
                     double violation = 0) {
    Observation seen;
    seen.number = number;
    seen.state = Observation::State::kComplete;
    seen.point = point;
    seen.value = values.front();
    seen.more_values.assign(values.begin() + 1, values.end());
    seen.violation = violation;
    return seen;
}

/// The volume that `trials` suggestions reach below a fixed reference point.
double volume_of(std::string_view type, const Problem& problem, std::size_t objectives,
                 std::uint64_t seed, std::uint64_t trials) {
    const Space space = unit_cube(6);
    const auto sampler = make_sampler(space, config_of(type), minimize(objectives), seed);
    const std::vector<double> reference(objectives, objectives == 2 ? 6.0 : 2.0);
    LossTable reached(objectives);
    for (std::uint64_t n = 0; n < trials; ++n) {
        const Point point = sampler->suggest(n);
        const std::vector<double> values = problem(point);
        EXPECT_TRUE(sampler->observe(complete(n, point, values)).has_value());
        const bool is_below = std::equal(values.begin(), values.end(), reference.begin(),
                                         [](double v, double r) { return v <= r; });
        if (is_below) reached.add(values);
    }
    return hypervolume(reached, reference);
}

struct Named {
    const char* name;
    Problem problem;
    std::size_t objectives;
};

std::vector<Named> problems() {
    return {{"zdt1", [](const Point& x) { return zdt(1, x); }, 2},
            {"zdt2", [](const Point& x) { return zdt(2, x); }, 2},
            {"zdt3", [](const Point& x) { return zdt(3, x); }, 2},
            {"dtlz2", dtlz2, 3}};
}

TEST(SeveralObjectives, EverySamplerReachesMoreVolumeThanRandomSearch) {
    constexpr std::uint64_t kSeeds = 5;
    for (const Named& one : problems()) {
        double random = 0;
        for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
            random += volume_of("random", one.problem, one.objectives, seed, 200);
        for (const char* const type : {"tpe", "nsga2", "nsga3"}) {
            double reached = 0;
            for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
                reached += volume_of(type, one.problem, one.objectives, seed, 200);
            EXPECT_GT(reached, random) << one.name << ", " << type;
        }
    }
}

class Several : public ::testing::TestWithParam<const char*> {};

TEST_P(Several, ASuggestionIsAFunctionOfTheSetOfObservations) {
    const Space space = unit_cube(3);
    const Objectives objectives = minimize(2, true);
    const auto lived = make_sampler(space, config_of(GetParam()), objectives, 9);
    std::vector<Observation> seen;
    for (std::uint64_t n = 0; n < 70; ++n) {
        Observation running;
        running.number = n;
        running.point = lived->suggest(n);
        ASSERT_TRUE(lived->observe(running).has_value());
        if (n % 10 == 7) {  // it stays running
            seen.push_back(running);
            continue;
        }
        Observation end = complete(n, running.point, zdt(1, running.point), n % 9 == 0 ? 0.5 : 0);
        if (n % 10 == 3) end.state = Observation::State::kGone;
        ASSERT_TRUE(lived->observe(end).has_value());
        seen.push_back(end);
        // Read on the way, so that what is kept between suggestions is put to the test.
        static_cast<void>(lived->suggest(n + 1));
    }
    const auto rebuilt = make_sampler(space, config_of(GetParam()), objectives, 9);
    std::reverse(seen.begin(), seen.end());
    for (const Observation& one : seen) ASSERT_TRUE(rebuilt->observe(one).has_value());
    for (const std::uint64_t n : {70u, 71u, 100u})
        EXPECT_EQ(lived->suggest(n), rebuilt->suggest(n));
}

TEST_P(Several, InfiniteAndMissingValuesAreBorne) {
    const Space space = unit_cube(2);
    const auto sampler = make_sampler(space, config_of(GetParam()), minimize(2), 4);
    const double infinity = std::numeric_limits<double>::infinity();
    const double values[] = {1, infinity, -infinity, std::nan("")};
    for (std::uint64_t n = 0; n < 80; ++n) {
        const Point point = sampler->suggest(n);
        ASSERT_TRUE(space.check(point).has_value());
        const std::vector<double> two = {values[n % 4], values[n / 4 % 4]};
        ASSERT_TRUE(sampler->observe(complete(n, point, two)).has_value());
    }
    Observation outside = complete(80, {2, 2}, {1, 1});
    EXPECT_FALSE(sampler->observe(outside).has_value());
}

TEST_P(Several, FeasibleOnesAreSearchedFor) {
    const Space space = unit_cube(3);
    const auto sampler = make_sampler(space, config_of(GetParam()), minimize(2, true), 2);
    int feasible = 0;
    for (std::uint64_t n = 0; n < 200; ++n) {
        const Point point = sampler->suggest(n);
        const double off = std::max(0.0, 0.8 - point[1]);  // a fifth of the space
        if (n >= 100 && off == 0) ++feasible;
        ASSERT_TRUE(sampler->observe(complete(n, point, zdt(1, point), off)).has_value());
    }
    EXPECT_GT(feasible, 50) << "of 100; at random it were 20";
}

INSTANTIATE_TEST_SUITE_P(All, Several, ::testing::Values("tpe", "nsga2", "nsga3"),
                         [](const auto& param) { return std::string(param.param); });

TEST(Constraints, TpeWithOneObjectiveSearchesTheFeasiblePart) {
    const Space space = unit_cube(2);
    SamplerConfig config;
    const auto sampler = make_sampler(space, config, minimize(1, true), 3);
    double best = 10;
    for (std::uint64_t n = 0; n < 120; ++n) {
        const Point point = sampler->suggest(n);
        const double value = point[0] + point[1];
        const double off = std::max(0.0, 0.5 - point[0]);
        if (off == 0) best = std::min(best, value);
        ASSERT_TRUE(sampler->observe(complete(n, point, {value}, off)).has_value());
    }
    EXPECT_LT(best, 0.56) << "the optimum is 0.5, on the edge";
}

/// Two parents at 0.25 and 0.75; where children come to lie.
std::vector<double> children(Crossover crossover, double crossover_probability) {
    const Space space = unit_cube(1);
    SamplerConfig config = config_of("nsga2");
    config.edit<NsgaOptions>().population = 2;
    config.edit<NsgaOptions>().crossover = crossover;
    config.edit<NsgaOptions>().crossover_probability = crossover_probability;
    config.edit<NsgaOptions>().mutation_probability = 0;
    NsgaSampler sampler(space, NsgaVariant::k2, config.get<NsgaOptions>(), minimize(2), 8);
    EXPECT_TRUE(sampler.observe(complete(0, {0.25}, {0, 1})).has_value());
    EXPECT_TRUE(sampler.observe(complete(1, {0.75}, {1, 0})).has_value());
    std::vector<double> places;
    for (std::uint64_t n = 2; n < 4002; ++n) places.push_back(sampler.suggest(n, {})[0]);
    return places;
}

TEST(Nsga, BlxAlphaIsUniformBetweenAndHalfTheGapBeyondTheParents) {
    const std::vector<double> places = children(Crossover::kBlxAlpha, 1);
    std::vector<int> counts(10, 0);
    for (const double place : places)
        ++counts[static_cast<std::size_t>(std::min(place, 0.999) * 10)];
    double chi_square = 0;
    for (const int count : counts) chi_square += std::pow(count - 400.0, 2) / 400;
    EXPECT_LT(chi_square, 27.9) << "9 degrees of freedom, p = 0.001";
}

TEST(Nsga, SbxKeepsTheMeanOfTheParentsAndStaysNearThem) {
    const std::vector<double> places = children(Crossover::kSbx, 1);
    double sum = 0;
    int near = 0;
    for (const double place : places) {
        sum += place;
        if (std::min(std::abs(place - 0.25), std::abs(place - 0.75)) < 0.1) ++near;
    }
    EXPECT_NEAR(sum / 4000, 0.5, 0.015);
    EXPECT_GT(near, 2500) << "eta 20 is narrow; half repeat a parent and are drawn anew";
}

TEST(Nsga, AChildThatRepeatsAParentIsDrawnAnew) {
    for (const double place : children(Crossover::kUniform, 0.5)) {
        EXPECT_NE(place, 0.25);
        EXPECT_NE(place, 0.75);
    }
}

TEST(Nsga, ConditionalParametersAreInheritedOrDrawn) {
    const Space space = Space::from_json(parse_json(R"({"opt": {"choice": ["sgd", "adam"]},
            "momentum": {"float": [0, 1], "when": {"opt": "sgd"}},
            "beta": {"float": [0, 1], "when": {"opt": "adam"}},
            "layers": {"int": [1, 8]}, "seed": {"const": 1}})")
                                             .value())
                            .value();
    for (const Crossover crossover : {Crossover::kUniform, Crossover::kBlxAlpha, Crossover::kSbx}) {
        SamplerConfig config = config_of("nsga2");
        config.edit<NsgaOptions>().crossover = crossover;
        NsgaSampler sampler(space, NsgaVariant::k2, config.get<NsgaOptions>(), minimize(2), 5);
        for (std::uint64_t n = 0; n < 200; ++n) {
            const Point point = sampler.suggest(n, {});
            ASSERT_TRUE(space.check(point).has_value());
            const double layers = point[*space.find("layers")];
            ASSERT_TRUE(sampler.observe(complete(n, point, {layers, 9 - layers})).has_value());
        }
        Point fixed = space.empty_point();
        fixed[*space.find("layers")] = 3;
        EXPECT_EQ(sampler.suggest(200, fixed)[*space.find("layers")], 3);
    }
}

TEST(Nsga, AGenerationOfFailuresKeepsItsParents) {
    const Space space = unit_cube(2);
    NsgaSampler sampler(space, NsgaVariant::k2, config_of("nsga2").get<NsgaOptions>(), minimize(2),
                        5);
    for (std::uint64_t n = 0; n < 60; ++n) {
        const Point point = sampler.suggest(n, {});
        ASSERT_TRUE(space.check(point).has_value());
        Observation end = complete(n, point, zdt(1, point));
        if (n >= 20 || n % 2 == 0) end.state = Observation::State::kGone;
        ASSERT_TRUE(sampler.observe(end).has_value());
    }
}

}  // namespace
}  // namespace tune::tuner::nsga_test
