// TPE with one model a constraint: the rules by hand, determinism, bad input, and what it is for.

#include "tuner/sampler/tpe/ctpe_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tuner/sampler/tpe/ctpe_rule.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Numbers = std::vector<std::uint64_t>;

Space square() {
    return Space::from_json(
               parse_json(R"({"x": {"float": [0, 1]}, "y": {"float": [0, 1]}})").value())
        .value();
}

SamplerConfig each() {
    SamplerConfig config;
    config.edit<TpeOptions>().constraints = ConstraintRule::kEach;
    return config;
}

Objectives constrained() {
    Objectives objectives(Goal::kMinimize);
    objectives.is_constrained = true;
    return objectives;
}

Observation complete(std::uint64_t number, const Point& point, double value,
                     const std::vector<double>& violations) {
    Observation seen;
    seen.number = number;
    seen.state = Observation::State::kComplete;
    seen.point = point;
    seen.value = value;
    seen.violations = violations;
    for (const double one : violations) seen.violation += one;
    return seen;
}

TEST(CtpeRule, TheGoodSetEndsWithItsLastFeasibleTrial) {
    //                    loss, feasible, number; in order of loss 3, 0, 4, 1, 2
    const std::vector<ConstrainedLoss> trials = {
        {2, false, 0}, {4, true, 1}, {5, true, 2}, {1, false, 3}, {3, true, 4}};
    EXPECT_THAT(constrained_good(trials, 1), ElementsAre(3, 0, 4));
    EXPECT_THAT(constrained_good(trials, 2), ElementsAre(3, 0, 4, 1));
    EXPECT_THAT(constrained_good(trials, 3), ElementsAre(3, 0, 4, 1, 2));
    EXPECT_THAT(constrained_good(trials, 4), ElementsAre(3, 0, 4, 1, 2)) << "all: nothing is said";
    EXPECT_THAT(constrained_good(trials, 0), IsEmpty());
    EXPECT_THAT(constrained_good({{1, true, 8}, {1, true, 7}}, 1), ElementsAre(7)) << "the older";
}

TEST(CtpeRule, TheLeastViolatingCountsAsSatisfiedWhereNoneIs) {
    EXPECT_THAT(satisfied(std::vector<double>{0, 2, 0, 1}), ElementsAre(true, false, true, false));
    EXPECT_THAT(satisfied(std::vector<double>{3, 1, 2, 1}), ElementsAre(false, true, false, false));
    EXPECT_THAT(satisfied(std::vector<double>{}), IsEmpty());
}

TEST(CtpeRule, TheTermIsThatOfThePaper) {
    // -ln(q + (1 - q) g / l), by hand: q = 1/4, g / l = 2: -ln(1.75).
    EXPECT_NEAR(constrained_term(0.25, std::log(0.5), std::log(1.0)), -std::log(1.75), 1e-11);
    EXPECT_NEAR(constrained_term(0.5, std::log(3.0), std::log(1.0)), std::log(1.5), 1e-11);
    EXPECT_NEAR(constrained_term(1, 0, 0), 0, 1e-11) << "all are good: nothing is said";
    EXPECT_NEAR(constrained_term(1, 0, 10), 0, 1e-6) << "whatever the densities are";
    EXPECT_NEAR(constrained_term(0, 2, 1), 1, 1e-11) << "none is good: the ratio alone";
    EXPECT_NEAR(constrained_term(0.5, 0, -2000), std::log(2), 1e-11) << "at most ln(1 / q)";
    EXPECT_NEAR(constrained_term(0.5, 0, 2000), -2000 + std::log(2), 1e-9) << "no overflow";
}

/// Trials that may be anywhere, with two constraints: x at least 0.8, y at least 0.8.
std::vector<double> off(const Point& point) {
    return {std::max(0.0, 0.8 - point[0]), std::max(0.0, 0.8 - point[1])};
}

TEST(Ctpe, FindsWhereBothRareConstraintsHold) {
    int found = 0;
    const auto sampler = make_sampler(square(), each(), constrained(), 5);
    double best = 10;
    for (std::uint64_t n = 0; n < 100; ++n) {
        const Point point = sampler->suggest(n);
        const double value = point[0] + point[1];
        const std::vector<double> violations = off(point);
        const bool is_feasible = violations[0] + violations[1] == 0;
        if (is_feasible) best = std::min(best, value);
        if (is_feasible && n >= 50) ++found;
        ASSERT_TRUE(sampler->observe(complete(n, point, value, violations)).has_value());
    }
    EXPECT_GT(found, 8) << "of 50; at random it were 2";
    EXPECT_LT(best, 1.65) << "the optimum is 1.6";
}

TEST(Ctpe, ASuggestionIsAFunctionOfTheSetOfObservations) {
    const auto lived = make_sampler(square(), each(), constrained(), 9);
    std::vector<Observation> seen;
    for (std::uint64_t n = 0; n < 60; ++n) {
        Observation trial;
        trial.number = n;
        trial.point = lived->suggest(n);
        ASSERT_TRUE(lived->observe(trial).has_value());
        EXPECT_EQ(lived->suggest(n), trial.point) << "asked again";
        if (n % 7 != 3) {
            trial = complete(n, trial.point, trial.point[0], off(trial.point));
            if (n % 7 == 5) trial.state = Observation::State::kGone;
            if (n % 7 == 6) trial.state = Observation::State::kPruned;
            ASSERT_TRUE(lived->observe(trial).has_value());
        }
        seen.push_back(trial);
    }
    const auto rebuilt = make_sampler(square(), each(), constrained(), 9);
    for (auto one = seen.rbegin(); one != seen.rend(); ++one)
        ASSERT_TRUE(rebuilt->observe(*one).has_value());
    for (const std::uint64_t n : {60u, 61u, 90u}) EXPECT_EQ(lived->suggest(n), rebuilt->suggest(n));
}

TEST(Ctpe, ConditionsInfinitiesAndMissingConstraintsAreBorne) {
    const Space space =
        Space::from_json(parse_json(R"({"opt": {"choice": ["a", "b"]}, "k": {"int": [1, 9]},
                           "m": {"float": [0, 1], "when": {"opt": "a"}}, "c": {"const": 1}})")
                             .value())
            .value();
    const auto sampler = make_sampler(space, each(), constrained(), 4);
    const double infinity = std::numeric_limits<double>::infinity();
    const double values[] = {1, infinity, -infinity, std::nan("")};
    for (std::uint64_t n = 0; n < 80; ++n) {
        const Point point = sampler->suggest(n);
        ASSERT_TRUE(space.check(point).has_value());
        ASSERT_TRUE(sampler
                        ->observe(complete(
                            n, point, values[n % 4],
                            n % 3 == 0 ? std::vector<double>{} : std::vector<double>{infinity, 0}))
                        .has_value());
    }
    EXPECT_FALSE(sampler->observe(complete(80, {2, 2, 2, 2}, 1, {0, 0})).has_value());
}

TEST(Ctpe, WithoutConstraintsItIsTpe) {
    const auto with = make_sampler(square(), each(), Goal::kMinimize, 3);
    const auto plain = make_sampler(square(), SamplerConfig(), Goal::kMinimize, 3);
    for (std::uint64_t n = 0; n < 30; ++n) {
        const Point point = plain->suggest(n);
        EXPECT_EQ(with->suggest(n), point);
        for (Sampler* sampler : {with.get(), plain.get()})
            ASSERT_TRUE(sampler->observe(complete(n, point, point[0], {})).has_value());
    }
}

}  // namespace
}  // namespace tune::tuner
