// The sampler gp: what it proposes in every kind of space, with every kind of value.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner::gp_sampler_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

SamplerConfig gp() {
    return study_config_from_json({{"sampler", "gp"}}).value().sampler;
}

const Json kMixed = {{"a", {{"float", {0, 1}}}},
                     {"b", {{"int", {1, 100}}, {"log", true}}},
                     {"c", {{"choice", {"x", "y", "z"}}}},
                     {"d", {{"float", {-1, 1}}, {"when", {{"c", "x"}}}}},
                     {"e", {{"const", 3}}},
                     {"f", {{"ordinal", {1, 5, 9, 20}}}}};

double objective(const Point& point) {
    return point[0] + std::log(point[1]) / 5 + (point[2] == 1 ? 0 : 1) +
           (is_active(point[3]) ? point[3] * point[3] : 0);
}

Observation told(std::uint64_t number, Point point, Observation::State state, double value = 0) {
    Observation seen;
    seen.number = number;
    seen.state = state;
    seen.point = std::move(point);
    seen.value = value;
    return seen;
}

TEST(GpSampler, PointsLieInTheSpaceAndTheBestIsFound) {
    const Space space = Space::from_json(kMixed).value();
    for (const Goal goal : {Goal::kMinimize, Goal::kMaximize}) {
        const auto sampler = make_sampler(space, gp(), goal, 4);
        const double sign = goal == Goal::kMinimize ? 1 : -1;
        double best = kInf;
        for (std::uint64_t n = 0; n < 45; ++n) {
            const Point point = sampler->suggest(n);
            ASSERT_TRUE(space.check(point).has_value()) << n;
            best = std::min(best, objective(point));
            ASSERT_TRUE(sampler->observe(
                told(n, point, Observation::State::kComplete, sign * objective(point))));
        }
        EXPECT_LT(best, 0.02);
    }
}

/// Squares of the values are no doubles, but the values are.
TEST(GpSampler, TheScaleOfValuesDoesNotMatter) {
    const Space space = Space::from_json(kMixed).value();
    const auto study = [&](int exponent) {
        const auto sampler = make_sampler(space, gp(), Goal::kMinimize, 4);
        std::vector<Point> points;
        for (std::uint64_t n = 0; n < 20; ++n) {
            points.push_back(sampler->suggest(n));
            EXPECT_TRUE(sampler->observe(told(n, points.back(), Observation::State::kComplete,
                                              std::ldexp(objective(points.back()), exponent))));
        }
        return points;
    };
    const std::vector<Point> usual = study(0);
    for (const int exponent : {-1000, -600, 600, 1010}) {
        const std::vector<Point> scaled = study(exponent);
        for (std::size_t n = 0; n < usual.size(); ++n)
            EXPECT_EQ(space.to_json(scaled[n]), space.to_json(usual[n])) << exponent << " " << n;
    }
}

TEST(GpSampler, ARebuiltSamplerSuggestsTheSameBits) {
    const Space space = Space::from_json(kMixed).value();
    const auto lived = make_sampler(space, gp(), Goal::kMinimize, 11);
    std::vector<Observation> history;
    for (std::uint64_t n = 0; n < 40; ++n) {
        const Point point = lived->suggest(n);
        ASSERT_TRUE(lived->observe(told(n, point, Observation::State::kRunning)));
        history.push_back(told(n, point, Observation::State::kComplete, objective(point)));
        // Results come late and out of order.
        if (n % 3 != 2) continue;
        for (const std::uint64_t done : {n, n - 2, n - 1})
            ASSERT_TRUE(lived->observe(history[done]));
    }
    for (const Observation& seen : history) ASSERT_TRUE(lived->observe(seen));
    const auto rebuilt = make_sampler(space, gp(), Goal::kMinimize, 11);
    for (std::size_t i = history.size(); i-- > 0;) ASSERT_TRUE(rebuilt->observe(history[i]));
    for (std::uint64_t n = 40; n < 44; ++n) {
        const Point a = lived->suggest(n);
        const Point b = rebuilt->suggest(n);
        for (std::size_t i = 0; i < a.size(); ++i)
            EXPECT_TRUE(a[i] == b[i] || (!is_active(a[i]) && !is_active(b[i]))) << i;
    }
}

TEST(GpSampler, ParallelAsksKeepApart) {
    const Space space =
        Space::from_json({{"x", {{"float", {0, 1}}}}, {"y", {{"float", {0, 1}}}}}).value();
    const auto sampler = make_sampler(space, gp(), Goal::kMinimize, 2);
    for (std::uint64_t n = 0; n < 20; ++n) {
        const Point point = sampler->suggest(n);
        const double value = std::pow(point[0] - 0.3, 2) + std::pow(point[1] - 0.6, 2);
        ASSERT_TRUE(sampler->observe(told(n, point, Observation::State::kComplete, value)));
    }
    std::vector<Point> asked;
    for (std::uint64_t n = 20; n < 28; ++n) {
        asked.push_back(sampler->suggest(n));
        ASSERT_TRUE(sampler->observe(told(n, asked.back(), Observation::State::kRunning)));
        for (std::size_t i = 0; i + 1 < asked.size(); ++i)
            EXPECT_GT(std::hypot(asked[i][0] - asked.back()[0], asked[i][1] - asked.back()[1]),
                      1e-6);
    }
}

TEST(GpSampler, GivenValuesStay) {
    const Space space = Space::from_json(kMixed).value();
    const auto sampler = make_sampler(space, gp(), Goal::kMinimize, 4);
    const Point fixed = space.point_from_json({{"a", 0.123456789}, {"c", "x"}}).value();
    for (std::uint64_t n = 0; n < 25; ++n) {
        const Point point = sampler->suggest(n, n > 15 ? fixed : Point());
        if (n > 15) {
            EXPECT_EQ(point[0], 0.123456789);
            EXPECT_EQ(point[2], 0);
            EXPECT_TRUE(is_active(point[3]));
        }
        ASSERT_TRUE(space.check(point).has_value());
        ASSERT_TRUE(
            sampler->observe(told(n, point, Observation::State::kComplete, objective(point))));
    }
}

TEST(GpSampler, StrangeValuesAreHarmless) {
    const Space space = Space::from_json(kMixed).value();
    for (const std::vector<double>& values : {std::vector<double>{1, 1, 1},
                                              {kInf, 1, 2},
                                              {-kInf, kInf, kNan},
                                              {1e300, -1e300, 0},
                                              {kNan, kNan, kNan}}) {
        const auto sampler = make_sampler(space, gp(), Goal::kMinimize, 4);
        for (std::uint64_t n = 0; n < 25; ++n) {
            const Point point = sampler->suggest(n);
            ASSERT_TRUE(space.check(point).has_value());
            Observation seen =
                told(n, point, Observation::State::kComplete, values[n % values.size()]);
            if (n % 5 == 1) {
                seen.state = Observation::State::kPruned;
                seen.last_step = 3;
                seen.last_value = values[n % values.size()];
            }
            if (n % 7 == 1) seen.state = Observation::State::kGone;
            ASSERT_TRUE(sampler->observe(seen));
        }
    }
}

TEST(GpSampler, OnePointSpaces) {
    const Space space = Space::from_json({{"only", {{"const", 1}}}}).value();
    const auto sampler = make_sampler(
        space,
        study_config_from_json({{"sampler", {{"type", "gp"}, {"duplicates", "allow"}}}})
            .value()
            .sampler,
        Goal::kMinimize, 1);
    for (std::uint64_t n = 0; n < 15; ++n) {
        const Point point = sampler->suggest(n);
        ASSERT_TRUE(space.check(point).has_value());
        ASSERT_TRUE(sampler->observe(told(n, point, Observation::State::kComplete, 1)));
    }
}

}  // namespace
}  // namespace tune::tuner::gp_sampler_test
