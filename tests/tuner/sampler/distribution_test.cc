// The distributions of the samplers that have no file of their own for it: over seeds, or over the
// numbers of trials. random_test.cc, rules_test.cc, cma_test.cc, nsga3_test.cc and pbt_test.cc hold
// the others.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/tuner/sampler/statistics.h"
#include "tuner/sampler/nsga/nsga_sampler.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/parzen.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner::distribution_test {
namespace {

Space space_of(const std::string& json) {
    return Space::from_json(parse_json(json).value()).value();
}

SamplerConfig config_of(std::string_view type) {
    SamplerConfig config = sampler_named(type);
    return config;
}

Observation complete(std::uint64_t number, const Point& point, double value) {
    Observation seen;
    seen.number = number;
    seen.state = Observation::State::kComplete;
    seen.point = point;
    seen.value = value;
    return seen;
}

double uniform_cdf(double u) {
    return u;
}

TEST(GridDistribution, EachOrderOfThePointsIsEquallyLikely) {
    const Space space = space_of(R"({"x": {"choice": [1, 2, 3, 4]}})");
    std::vector<double> orders(24, 0);
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        const auto sampler = make_sampler(space, config_of("grid"), Goal::kMinimize, seed);
        std::vector<double> left = {0, 1, 2, 3};
        std::size_t order = 0;  // in the factorial number system
        for (std::uint64_t n = 0; n < 4; ++n) {
            const Point point = sampler->suggest(n);
            ASSERT_TRUE(sampler->observe(complete(n, point, 0)).has_value());
            const auto at = std::find(left.begin(), left.end(), point[0]);
            order = order * left.size() + static_cast<std::size_t>(at - left.begin());
            left.erase(at);
        }
        ++orders.at(order);
    }
    EXPECT_LT(chi_square_deviation(orders, std::vector<double>(24, 1.0 / 24)), kDeviationMax);
}

TEST(QmcDistribution, ScramblingMakesEachPointUniformInTheSquare) {
    const Space space = space_of(R"({"x": {"float": [0, 1]}, "y": {"float": [0, 1]}})");
    for (const std::uint64_t number : {0u, 1u, 37u}) {
        std::vector<double> x;
        std::vector<double> y;
        std::vector<double> cells(16, 0);
        for (std::uint64_t seed = 0; seed < 4000; ++seed) {
            const Point point =
                make_sampler(space, config_of("qmc"), Goal::kMinimize, seed)->suggest(number);
            x.push_back(point[0]);
            y.push_back(point[1]);
            ++cells.at(static_cast<std::size_t>(point[0] * 4) * 4 +
                       static_cast<std::size_t>(point[1] * 4));
        }
        EXPECT_LT(kolmogorov(x, uniform_cdf), kKolmogorovMax) << number;
        EXPECT_LT(kolmogorov(y, uniform_cdf), kKolmogorovMax) << number;
        EXPECT_LT(chi_square_deviation(cells, std::vector<double>(16, 1.0 / 16)), kDeviationMax)
            << number;
    }
}

/// With one candidate TPE does not choose: a suggestion is a draw from the density of the good
/// trials. The suggestions of many numbers, and that density.
struct OneCandidate {
    explicit OneCandidate(const std::string& parameter)
        : space(space_of("{\"x\": " + parameter + "}")),
          good({Axis::of(space[0])}, Weights::kAge, Floor::kNarrowest) {
        SamplerConfig config = config_of("tpe");
        config.edit<TpeOptions>().candidates = 1;
        config.duplicates = Duplicates::kAllow;
        const auto sampler = make_sampler(space, config, Goal::kMinimize, 21);
        constexpr std::uint64_t kTrials = 30;  // 3 of them are good
        for (std::uint64_t n = 0; n < kTrials; ++n) {
            const Point point = sampler->suggest(n);
            const double value = n % 10 == 4 ? 0 : 1;
            if (value == 0) good.insert(n, std::vector<double>{good.axes()[0].position(point[0])});
            EXPECT_TRUE(sampler->observe(complete(n, point, value)).has_value());
        }
        for (std::uint64_t n = 0; n < 10'000; ++n)
            values.push_back(sampler->suggest(kTrials + n)[0]);
    }
    /// By trapezoids, at a position.
    [[nodiscard]] std::function<double(double)> cdf() const {
        constexpr std::size_t kSteps = 20'000;
        const Axis& axis = good.axes()[0];
        std::vector<double> points;
        for (std::size_t i = 0; i <= kSteps; ++i)
            points.push_back(axis.low + axis.range * static_cast<double>(i) / kSteps);
        std::vector<double> density(points.size());
        good.log_density(points, density);
        std::vector<double> sums = {0};
        for (std::size_t i = 1; i <= kSteps; ++i)
            sums.push_back(sums.back() + (std::exp(density[i - 1]) + std::exp(density[i])) / 2 *
                                             axis.range / kSteps);
        EXPECT_NEAR(sums.back(), 1, 1e-4);
        return [sums, axis](double position) {
            const double at = (position - axis.low) / axis.range * kSteps;
            return sums.at(static_cast<std::size_t>(std::clamp(at, 0.0, double{kSteps})));
        };
    }
    [[nodiscard]] std::vector<double> positions() const {
        std::vector<double> found;
        for (const double value : values) found.push_back(good.axes()[0].position(value));
        return found;
    }
    /// Counts of the values of a grid or of categories, and their probabilities.
    void expect_cells(std::size_t count) const {
        std::vector<double> counts(count, 0);
        for (const double value : values)
            ++counts.at(static_cast<std::size_t>(value - space[0].low));
        std::vector<double> points;
        for (std::size_t i = 0; i < count; ++i)
            points.push_back(good.axes()[0].position(space[0].low + static_cast<double>(i)));
        std::vector<double> shares(count);
        good.log_density(points, shares);
        double sum = 0;
        for (double& share : shares) sum += share = std::exp(share);
        EXPECT_NEAR(sum, 1, 1e-9);
        EXPECT_LT(chi_square_deviation(counts, shares), kDeviationMax);
    }

    Space space;
    ParzenEstimator good;
    std::vector<double> values;
};

TEST(TpeDistribution, NumbersAreDrawnFromTheDensityOfTheGoodTrials) {
    for (const char* parameter :
         {R"({"float": [0, 1]})", R"({"float": [1e-5, 0.1], "log": true})"}) {
        const OneCandidate drawn(parameter);
        EXPECT_LT(kolmogorov(drawn.positions(), drawn.cdf()), kKolmogorovMax) << parameter;
    }
}

TEST(TpeDistribution, GridsAndCategoriesAreDrawnFromTheDensityOfTheGoodTrials) {
    OneCandidate(R"({"int": [1, 9]})").expect_cells(9);
    OneCandidate(R"({"int": [1, 16], "log": true})").expect_cells(16);
    OneCandidate(R"({"choice": ["a", "b", "c", "d"]})").expect_cells(4);
    OneCandidate(R"({"ordinal": [8, 16, 32, 64, 128]})").expect_cells(5);
}

TEST(NsgaDistribution, EachParameterIsMutatedWithItsProbabilityAndUniformly) {
    const Space space = space_of(
        R"({"a": {"float": [0, 1]}, "b": {"float": [0, 1]}, "c": {"float": [0, 1]},
            "d": {"float": [0, 1]}, "e": {"float": [0, 1]}})");
    for (const char* const type : {"nsga2", "nsga3"}) {
        SamplerConfig config = config_of(type);
        config.edit<NsgaOptions>().population = 2;
        config.edit<NsgaOptions>().crossover_probability = 0;  // copies of one parent
        config.edit<NsgaOptions>().mutation_probability = 0.3;
        Objectives objectives(Goal::kMinimize);
        objectives.goals.assign(2, Goal::kMinimize);
        const auto sampler = make_sampler(space, config, objectives, 3);
        for (std::uint64_t n = 0; n < 2; ++n) {
            Observation parent =
                complete(n, Point(5, n == 0 ? 0.25 : 0.75), static_cast<double>(n));
            parent.more_values = {1 - parent.value};
            ASSERT_TRUE(sampler->observe(parent).has_value());
        }
        std::vector<double> counts(6, 0);
        std::vector<double> places(2, 0);  // which parent is copied
        std::vector<double> mutated;
        for (std::uint64_t n = 2; n < 8002; ++n) {
            const Point child = sampler->suggest(n);
            std::size_t changed = 0;
            for (const double v : child) {
                if (v == 0.25 || v == 0.75) continue;
                ++changed;
                mutated.push_back(v);
            }
            ++counts[changed];
            for (std::size_t parent = 0; parent < 2; ++parent)
                if (std::find(child.begin(), child.end(), parent == 0 ? 0.25 : 0.75) != child.end())
                    ++places[parent];
        }
        std::vector<double> shares;
        for (int k = 0; k <= 5; ++k)
            shares.push_back(std::tgamma(6) / std::tgamma(k + 1) / std::tgamma(6 - k) *
                             std::pow(0.3, k) * std::pow(0.7, 5 - k));
        shares[1] += shares[0];  // a child that repeats its parent gets one parameter drawn anew
        shares[0] = 0;
        EXPECT_LT(chi_square_deviation(counts, shares), kDeviationMax) << type;
        EXPECT_LT(chi_square_deviation(places, {0.5, 0.5}), kDeviationMax);
        EXPECT_LT(kolmogorov(mutated, uniform_cdf), kKolmogorovMax);
    }
}

TEST(NsgaDistribution, UniformCrossoverSwapsEachParameterWithItsProbability) {
    const Space space =
        space_of(R"({"a": {"float": [0, 1]}, "b": {"float": [0, 1]}, "c": {"float": [0, 1]}})");
    SamplerConfig config = config_of("nsga2");
    config.edit<NsgaOptions>().population = 2;
    config.edit<NsgaOptions>().crossover_probability = 1;
    config.edit<NsgaOptions>().swap_probability = 0.2;
    config.edit<NsgaOptions>().mutation_probability = 0;
    Objectives objectives(Goal::kMinimize);
    objectives.goals.assign(2, Goal::kMinimize);
    const auto sampler = make_sampler(space, config, objectives, 3);
    for (std::uint64_t n = 0; n < 2; ++n) {
        Observation parent = complete(n, Point(3, n == 0 ? 0.25 : 0.75), static_cast<double>(n));
        parent.more_values = {1 - parent.value};
        ASSERT_TRUE(sampler->observe(parent).has_value());
    }
    // Children that mix both: which parent came first is even, so one or two of three are swapped.
    std::vector<double> of_second(3, 0);
    for (std::uint64_t n = 2; n < 20'002; ++n) {
        const Point child = sampler->suggest(n);
        const auto count = std::count(child.begin(), child.end(), 0.75);
        const auto other = std::count(child.begin(), child.end(), 0.25);
        if (count + other == 3 && count > 0 && other > 0)
            ++of_second[static_cast<std::size_t>(count)];
    }
    const double mixed = of_second[1] + of_second[2];
    EXPECT_LT(chi_square_deviation(of_second, {0, 0.5, 0.5}), kDeviationMax);
    // P(1 or 2 of 3 swapped) = 3 p (1-p)^2 + 3 p^2 (1-p) = 3 p (1-p).
    EXPECT_LT(chi_square_deviation({mixed, 20'000 - mixed}, {0.48, 0.52}), kDeviationMax);
}

}  // namespace
}  // namespace tune::tuner::distribution_test
