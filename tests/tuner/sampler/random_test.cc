// Distributions of random draws, with fixed seeds: the limits are far beyond what a right sampler
// reaches (p < 1e-6) and far below what a wrong one does.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/text/number_text.h"
#include "tests/tuner/sampler/reference.h"
#include "tests/tuner/sampler/statistics.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner::random_test {
namespace {

constexpr std::uint64_t kDraws = 20'000;

std::vector<double> draws(const std::string& word, std::uint64_t seed,
                          std::uint64_t count = kDraws) {
    SamplerConfig config = sampler_named("random");
    const auto sampler = make_sampler(space_of({word}), config, Goal::kMinimize, seed);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < count; ++i) values.push_back(sampler->suggest(i)[0]);
    return values;
}

/// Chi-square of counts against probabilities, as deviations from its mean.
double chi_square_deviation(const std::vector<double>& values,
                            const std::map<double, double>& probabilities) {
    std::map<double, double> counts;
    for (const double value : values) ++counts[value];
    EXPECT_LE(counts.size(), probabilities.size());
    double sum = 0;
    for (const auto& [value, p] : probabilities) {
        const double expected = p * static_cast<double>(values.size());
        sum += (counts[value] - expected) * (counts[value] - expected) / expected;
    }
    const auto freedom = static_cast<double>(probabilities.size() - 1);
    return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST(Uniform, StreamsAreUniformAndApart) {
    CounterSource source(5);
    std::vector<double> values(kDraws);
    source.fill(3, stream_key("a"), values);
    EXPECT_LT(kolmogorov(values, [](double u) { return u; }), kKolmogorovMax);
    // One number a trial, along the trials: what a study sees of a parameter.
    std::vector<double> along;
    for (std::uint64_t trial = 0; trial < kDraws; ++trial) {
        double u = 0;
        source.fill(trial, stream_key("a"), {&u, 1});
        along.push_back(u);
    }
    EXPECT_LT(kolmogorov(along, [](double u) { return u; }), kKolmogorovMax);
    double correlation = 0;
    for (std::uint64_t trial = 0; trial < kDraws; ++trial) {
        double u = 0;
        source.fill(trial, stream_key("b"), {&u, 1});
        correlation += (u - 0.5) * (along[trial] - 0.5) * 12;
    }
    EXPECT_LT(std::abs(correlation) / std::sqrt(static_cast<double>(kDraws)), 5);
}

TEST(Uniform, DrawsAreFixedForever) {
    // A recorded study must replay on any later version: these numbers may never change.
    CounterSource source(42);
    double u[2];
    source.fill(7, stream_key("lr"), u);
    EXPECT_DOUBLE_EQ(u[0], 0.19516223176373382);
    EXPECT_DOUBLE_EQ(u[1], 0.3288795275601404);
}

TEST(Random, FloatIsUniform) {
    EXPECT_LT(kolmogorov(draws("x=-3..5", 1), [](double v) { return (v + 3) / 8; }),
              kKolmogorovMax);
}

TEST(Random, LogFloatIsUniformInTheLogarithm) {
    EXPECT_LT(
        kolmogorov(draws("x=1e-5..1e-1:log", 2), [](double v) { return (std::log10(v) + 5) / 4; }),
        kKolmogorovMax);
}

TEST(Random, IntGivesBothEndsTheirShare) {
    std::map<double, double> p;
    for (int i = 1; i <= 10; ++i) p[i] = 0.1;
    EXPECT_LT(chi_square_deviation(draws("x=1..10:int", 3), p), 5);
}

TEST(Random, SteppedFloatGivesBothEndsTheirShare) {
    std::map<double, double> p;
    for (const double v : {0.0, 0.05, 0.1, 0.15, 0.2}) p[v] = 0.2;
    EXPECT_LT(chi_square_deviation(draws("x=0..0.2:0.05", 4), p), 5);
}

TEST(Random, LogIntFollowsItsCells) {
    std::map<double, double> p;
    for (int i = 1; i <= 16; ++i) p[i] = std::log((i + 0.5) / (i - 0.5)) / std::log(16.5 / 0.5);
    EXPECT_LT(chi_square_deviation(draws("x=1..16:int:log", 5), p), 5);
}

TEST(Random, ChoicesAndOrdinalsAreEquallyLikely) {
    const std::map<double, double> p = {{0, .25}, {1, .25}, {2, .25}, {3, .25}};
    EXPECT_LT(chi_square_deviation(draws("x=a,b,c,d", 6), p), 5);
    EXPECT_LT(chi_square_deviation(draws("x=1<2<4<8", 7), p), 5);
}

TEST(Random, ValuesAreOnTheGridAndInside) {
    for (const char* word : {"x=0..1", "x=1e-9..1e9:log", "x=0..1:0.1", "x=7..103:int:8",
                             "x=32..1024:int:log:32", "x=-5..5:int", "x=0..0.3:0.07"}) {
        const Space space = space_of({word});
        for (const double value : draws(word, 8, 5'000))
            ASSERT_TRUE(space[0].contains(value)) << word << ": " << value;
    }
}

TEST(Random, SteppedValuesHaveTheDecimalsOfTheStep) {
    for (const double value : draws("x=0..1:0.01", 9, 2'000))
        ASSERT_LE(number_text(value).size(), 4u) << number_text(value);
}

TEST(Random, ATrialDependsOnSeedAndNumberOnly) {
    const Space space = space_of({"x=0..1", "y=a,b", "z=1..9:int"});
    SamplerConfig config = sampler_named("random");
    const auto one = make_sampler(space, config, Goal::kMinimize, 1);
    const auto other = make_sampler(space, config, Goal::kMinimize, 1);
    const auto different = make_sampler(space, config, Goal::kMinimize, 2);
    for (const std::uint64_t number : {9u, 3u, 3u, 7u})
        EXPECT_EQ(one->suggest(number), other->suggest(number));
    EXPECT_NE(one->suggest(5), different->suggest(5));
    EXPECT_NE(one->suggest(5), one->suggest(6));
}

TEST(Random, AParameterKeepsItsValueWhenOthersAreAdded) {
    SamplerConfig config = sampler_named("random");
    const auto small = make_sampler(space_of({"x=0..1"}), config, Goal::kMinimize, 1);
    const auto large = make_sampler(space_of({"a=1..9:int", "x=0..1"}), config, Goal::kMinimize, 1);
    EXPECT_EQ(small->suggest(4)[0], large->suggest(4)[1]);
}

}  // namespace
}  // namespace tune::tuner::random_test
