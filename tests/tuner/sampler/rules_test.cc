// Samplers under rules, priors and first points: what they propose obeys, and is distributed as the
// space says.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tuner/config/study_config.h"
#include "tuner/sampler/gp/gp_options.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/grid_sampler.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner::rules_test {
namespace {

StudyConfig read(const std::string& text) {
    StudySource source;
    source.text = text;
    Result<StudyConfig> config = read_study(source);
    EXPECT_TRUE(config) << (config ? "" : config.error().text());
    return config ? std::move(*config) : StudyConfig();
}

std::unique_ptr<Sampler> sampler_of(const Space& space, const char* type, std::uint64_t seed = 7) {
    StudyConfig config = read(std::string("sampler: ") + type);
    if (config.sampler.is("tpe")) config.sampler.edit<TpeOptions>().startup = 5;
    if (config.sampler.is("gp")) config.sampler.edit<GpOptions>().startup = 5;
    if (config.sampler.is("grid")) config.sampler.edit<GridOptions>().points = 5;
    return make_sampler(space, config.sampler, Goal::kMinimize, seed);
}

/// Standard normal.
double phi(double z) {
    return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

/// The largest distance between the values' distribution and `cdf` (Kolmogorov and Smirnov).
template <class Cdf>
double distance(std::vector<double> values, Cdf cdf) {
    std::sort(values.begin(), values.end());
    double largest = 0;
    const auto n = static_cast<double>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        largest = std::max({largest, std::abs(cdf(values[i]) - static_cast<double>(i) / n),
                            std::abs(cdf(values[i]) - static_cast<double>(i + 1) / n)});
    return largest;
}

std::vector<double> draws_of(const Space& space, const char* type, std::size_t count) {
    const auto sampler = sampler_of(space, type);
    std::vector<double> values;
    for (std::uint64_t n = 0; n < count; ++n) values.push_back(sampler->suggest(n)[0]);
    return values;
}

TEST(Priors, RandomAndSobolDrawFromThem) {
    const Space normal = read("space: {x: {normal: [1, 2], low: -2, high: 9}}").space;
    const double low = phi(-1.5);
    const double mass = phi(4) - low;
    const auto cdf = [&](double x) { return (phi((x - 1) / 2) - low) / mass; };
    EXPECT_LT(distance(draws_of(normal, "random", 4000), cdf), 1.63 / std::sqrt(4000.0));
    EXPECT_LT(distance(draws_of(normal, "qmc", 4096), cdf), 0.001);
    const Space lognormal = read("space: {x: {lognormal: [0.01, 1.5]}}").space;
    const auto log_cdf = [&](double x) { return phi(std::log(x / 0.01) / 1.5); };
    EXPECT_LT(distance(draws_of(lognormal, "random", 4000), log_cdf), 1.63 / std::sqrt(4000.0));
}

TEST(Priors, WeightsAreShares) {
    const Space space = read("space: {x: {choice: [a, b, c], weights: [5, 3, 2]}, y: 0..1}").space;
    for (const char* type : {"random", "qmc", "tpe", "gp"}) {
        std::vector<double> counts(3, 0);
        for (const double value : draws_of(space, type, 2000))
            ++counts[static_cast<std::size_t>(value)];
        double chi = 0;
        const double expected[] = {1000, 600, 400};
        for (std::size_t i = 0; i < 3; ++i)
            chi += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
        EXPECT_LT(chi, 13.8) << type;  // 2 degrees of freedom, p = 0.001
    }
}

/// What is good is taken from the prior as long as little is known, and from the data later.
TEST(Priors, GuideTpeAndGp) {
    const Space wide = read("space: {x: {float: [-100, 100]}}").space;
    const Space told = read("space: {x: {float: [-100, 100], normal: [3, 4]}}").space;
    for (const char* type : {"tpe", "gp", "random"}) {
        double best[2] = {0, 0};
        for (int which = 0; which < 2; ++which)
            for (std::uint64_t seed = 0; seed < 10; ++seed) {
                const auto sampler = sampler_of(which == 0 ? wide : told, type, seed);
                double least = INFINITY;
                for (std::uint64_t n = 0; n < 15; ++n) {
                    const Point point = sampler->suggest(n);
                    const double value = std::abs(point[0] - 2);
                    least = std::min(least, value);
                    ASSERT_TRUE(sampler->observe({.number = n,
                                                  .state = Observation::State::kComplete,
                                                  .point = point,
                                                  .value = value}));
                }
                best[which] += std::log(least + 1e-3);
            }
        EXPECT_LT(best[1], best[0]) << type;
    }
}

TEST(Rules, NothingForbiddenIsProposed) {
    const Space spaces[] = {
        read("space: {opt: {choice: [sgd, adam]}, lr: {float: [1e-5, 1], log: true}, n: {int: [1, "
             "64]},\n"
             "  m: {float: [0, 1], when: {opt: sgd}}}\n"
             "derive: {s: lr * n}\n"
             "forbid: [\"opt == 'sgd' and lr > 0.001\", s > 0.5, m > 0.2 and n > 8]\n")
            .space,
        // A sliver that chance hits once in 10^5.
        read("space: {x: 0..1, y: 0..1}\nforbid: [abs(x - y) > 0.00001]\n").space,
    };
    for (const Space& space : spaces)
        for (const char* type : {"random", "qmc", "tpe", "gp", "cmaes", "nsga2", "auto"}) {
            const auto sampler = sampler_of(space, type);
            for (std::uint64_t n = 0; n < 25; ++n) {
                const Point point = sampler->suggest(n);
                const Result<void> checked = space.check(point);
                ASSERT_TRUE(checked) << type << n << checked.error().text();
                EXPECT_EQ(space.to_json(sampler->suggest(n)), space.to_json(point)) << type;
                ASSERT_TRUE(sampler->observe({.number = n,
                                              .state = Observation::State::kComplete,
                                              .point = point,
                                              .value = point[1]}));
            }
        }
}

/// Where chance hits once in 10^4 or 10^6, searching ends at bounds, or at one and the same
/// example; trials must not have the same point for that.
TEST(Rules, PointsOfASliverDiffer) {
    const Space spaces[] = {
        read("space: {x: 0..1, y: 0..1}\nforbid: [x + y > 0.01]\n").space,
        read("space: {a: {int: [1, 1000]}, b: {int: [1, 1000]}, x: 0..1}\n"
             "forbid: ['a != 77', 'b != 912']\n")
            .space,
    };
    for (const Space& space : spaces)
        for (const char* type : {"random", "qmc", "tpe", "gp", "cmaes", "nsga2", "auto"}) {
            const auto sampler = sampler_of(space, type);
            std::set<Point> points;
            for (std::uint64_t n = 0; n < 30; ++n) {
                const Point point = sampler->suggest(n);
                ASSERT_TRUE(space.check(point)) << type << n;
                points.insert(point);
                ASSERT_TRUE(sampler->observe({.number = n,
                                              .state = Observation::State::kComplete,
                                              .point = point,
                                              .value = point.back()}));
            }
            EXPECT_EQ(points.size(), 30u) << type;
        }
}

TEST(Rules, PointsOfASliverAreUniform) {
    const Space space = read("space: {x: 0..1}\nforbid: [x > 0.0001]\n").space;
    EXPECT_LT(distance(draws_of(space, "random", 300), [](double x) { return x / 0.0001; }),
              1.63 / std::sqrt(300.0));
}

/// Rejection leaves the distribution as it is elsewhere.
TEST(Rules, FeasiblePointsStayUniform) {
    const Space space = read("space: {x: 0..1}\nforbid: [x > 0.25 and x < 0.75]\n").space;
    EXPECT_LT(distance(draws_of(space, "random", 3000),
                       [](double x) { return x <= 0.5 ? std::min(2 * x, 0.5) : 2 * x - 1; }),
              1.63 / std::sqrt(3000.0));
}

TEST(Rules, FiniteSpacesAreEnumeratedWithoutTheForbidden) {
    const Space space =
        read("space: {a: {int: [1, 6]}, b: {int: [1, 6]}}\nforbid: [a + b > 7]\n").space;
    for (const char* type : {"random", "grid", "tpe", "qmc", "gp"}) {
        const auto sampler = sampler_of(space, type);
        std::set<std::pair<double, double>> seen;
        std::uint64_t n = 0;
        for (; !sampler->is_exhausted() && n < 100; ++n) {
            const Point point = sampler->suggest(n);
            ASSERT_TRUE(space.check(point)) << type;
            seen.emplace(point[0], point[1]);
            ASSERT_TRUE(sampler->observe({.number = n,
                                          .state = Observation::State::kComplete,
                                          .point = point,
                                          .value = point[0]}));
        }
        EXPECT_EQ(n, 21u) << type;
        EXPECT_EQ(seen.size(), 21u) << type;
    }
}

TEST(Rules, ValuesThatAreGivenAreKeptOrRefused) {
    const Space space =
        read("space: {a: 0..1, b: 0..1}\nforbid: [a > 0.5 and b > 0.01, a > 0.9]\n").space;
    for (const char* type : {"random", "qmc", "tpe"}) {
        const auto sampler = sampler_of(space, type);
        const Point point = sampler->suggest(3, {0.7, kInactive});
        EXPECT_EQ(point[0], 0.7);
        EXPECT_TRUE(space.check(point)) << type;
        EXPECT_FALSE(space.check(sampler->suggest(3, {0.95, kInactive}))) << type;
    }
}

TEST(FirstPoints, ComeFirstWhateverElseWasRun) {
    const Space space = read(
                            "space: {x: {float: [0, 1], init: 0.5}, opt: {choice: [a, b]}}\n"
                            "initial: [{x: 0.1, opt: b}, {opt: a}]\n")
                            .space;
    for (const char* type : {"random", "qmc", "tpe", "gp"}) {
        const auto sampler = sampler_of(space, type);
        // A trial that the user gave takes number 0.
        const auto tell = [&](std::uint64_t n, Point point) {
            EXPECT_TRUE(sampler->observe({.number = n, .point = std::move(point)}));
        };
        tell(0, {0.9, 0});
        EXPECT_EQ(sampler->suggest(1), (Point{0.1, 1})) << type;
        EXPECT_EQ(sampler->suggest(2), (Point{0.1, 1})) << type;  // not run yet
        tell(1, {0.1, 1});
        EXPECT_EQ(sampler->suggest(1), (Point{0.1, 1})) << type;  // its own does not count
        EXPECT_EQ(sampler->suggest(2), (Point{0.5, 0})) << type;
        tell(2, {0.5, 0});
        EXPECT_NE(sampler->suggest(3)[0], 0.5) << type;
    }
}

TEST(Large, TenThousandParameters) {
    std::string text = "space:\n";
    for (int i = 0; i < 10'000; ++i) text += "  p" + std::to_string(i) + ": 0..1\n";
    text += "derive: {sum: p0 + p9999}\nforbid: [sum > 1]\ninitial: [{p5: 0.25}]\n";
    const Space space = read(text).space;
    ASSERT_EQ(space.size(), 10'000u);
    for (const char* type : {"random", "qmc", "tpe", "nsga2"}) {
        const auto sampler = sampler_of(space, type);
        for (std::uint64_t n = 0; n < 12; ++n) {
            const Point point = sampler->suggest(n);
            ASSERT_TRUE(space.check(point)) << type;
            EXPECT_TRUE(n > 0 || point[5] == 0.25);
            ASSERT_TRUE(sampler->observe({.number = n,
                                          .state = Observation::State::kComplete,
                                          .point = point,
                                          .value = point[0]}));
        }
    }
}

TEST(Large, CmaesAndTheGaussianProcessRefuseWhatTheyCannotHandle) {
    const auto refusal = [](int floats, const std::string& more, std::string_view type) {
        std::string text = "space:\n" + more;
        for (int i = 0; i < floats; ++i) text += "  p" + std::to_string(i) + ": 0..1\n";
        SamplerConfig config = sampler_named(type);
        const Result<void> checked = check_sampler(read(text).space, config);
        return checked ? "" : checked.error().message;
    };
    EXPECT_EQ(refusal(500, "", "gp"), "");
    EXPECT_EQ(refusal(500, "  c: {choice: [a, b]}\n", "cmaes"), "");
    EXPECT_EQ(refusal(501, "", "cmaes"),
              "sampler cmaes takes at most 500 numbers, as its work grows with their cube; the "
              "space has 501. tpe, nsga2, qmc and random have no such bound.");
    EXPECT_NE(refusal(500, "  c: {choice: [a, b]}\n", "gp").find("has 501"), std::string::npos);
    EXPECT_EQ(refusal(501, "", "tpe"), "");
}

TEST(OnePoint, HasItsTrialAndNoMore) {
    const Space space = read(
                            "space: {a: {const: 1}, b: {float: [2, 2]}, c: {choice: [x]}}\n"
                            "derive: {d: a + b}\nforbid: [d > 3]\n")
                            .space;
    for (const char* type : {"random", "grid", "tpe", "qmc", "gp"}) {
        const auto sampler = sampler_of(space, type);
        const Point point = sampler->suggest(0);
        EXPECT_EQ(space.to_json(point)["d"], 3.0);
        ASSERT_TRUE(sampler->observe({.number = 0, .point = point}));
        EXPECT_TRUE(sampler->is_exhausted()) << type;
    }
}

}  // namespace
}  // namespace tune::tuner::rules_test
