// The Gaussian process against the textbook's formulas, and the sampler built on it.

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tuner/sampler/gp/improvement.h"
#include "tuner/sampler/gp/process.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Three numbers and a category.
struct Case {
    GpData data;
    CategoryMask mask = {false, false, true, false};
    KernelParameters kernel;
};

Case make_case(Eigen::Index rows, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    Case made;
    made.data.rows.resize(rows, 4);
    made.data.values.resize(rows);
    for (Eigen::Index i = 0; i < rows; ++i) {
        for (Eigen::Index j = 0; j < 4; ++j) made.data.rows(i, j) = uniform(random);
        made.data.rows(i, 2) = std::floor(3 * uniform(random));
        made.data.values[i] = std::sin(5 * made.data.rows(i, 0)) + made.data.rows(i, 2) / 2;
    }
    made.kernel.inverse_squared_lengths = Eigen::ArrayXd::LinSpaced(4, -1, 2);
    made.kernel.scale = 0.3;
    made.kernel.noise = -4;
    return made;
}

double covariance(const Case& with, const Eigen::VectorXd& a, const Eigen::VectorXd& b) {
    double r2 = 0;
    for (Eigen::Index j = 0; j < 4; ++j) {
        const double d = j == 2 ? (a[j] == b[j] ? 0 : 1) : a[j] - b[j];
        r2 += std::exp(with.kernel.inverse_squared_lengths[j]) * d * d;
    }
    const double root = std::sqrt(5 * r2);
    return std::exp(with.kernel.scale) * (1 + root + 5.0 / 3 * r2) * std::exp(-root);
}

Eigen::MatrixXd covariances(const Case& with, const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
    Eigen::MatrixXd all(a.rows(), b.rows());
    for (Eigen::Index i = 0; i < a.rows(); ++i)
        for (Eigen::Index j = 0; j < b.rows(); ++j)
            all(i, j) = covariance(with, a.row(i), b.row(j));
    return all;
}

TEST(GaussianProcess, PosteriorIsTheTextbooks) {
    for (const Eigen::Index n : {2, 7, 80}) {
        const Case with = make_case(n, 3);
        GaussianProcess model(with.data, with.mask, with.kernel);
        Eigen::MatrixXd noisy = covariances(with, with.data.rows, with.data.rows);
        noisy.diagonal().array() += std::exp(with.kernel.noise) + 1e-6;
        const Eigen::MatrixXd inverse = noisy.inverse();
        const Case queries = make_case(5, 77);
        for (Eigen::Index i = 0; i < 5; ++i) {
            const Eigen::VectorXd row = queries.data.rows.row(i);
            const Eigen::VectorXd k = covariances(with, with.data.rows, row.transpose());
            const auto found = model.predict(row);
            EXPECT_NEAR(found.mean, k.dot(inverse * with.data.values), 1e-9);
            EXPECT_NEAR(found.variance, std::exp(with.kernel.scale) - k.dot(inverse * k), 1e-9);
        }
    }
}

TEST(GaussianProcess, PendingRowsTakeUncertaintyAndLeaveTheMean) {
    Case with = make_case(20, 5);
    const Eigen::VectorXd query = with.data.rows.row(19);
    GpData fewer{with.data.rows.topRows(15), with.data.values.head(15)};
    GpData pending{with.data.rows, with.data.values.head(15)};
    GaussianProcess without(fewer, with.mask, with.kernel);
    GaussianProcess model(pending, with.mask, with.kernel);
    EXPECT_NEAR(model.predict(query).mean, without.predict(query).mean, 1e-9);
    EXPECT_LT(model.predict(query).variance, without.predict(query).variance / 5);
    EXPECT_NEAR(model.best_mean(), without.best_mean(), 1e-9);
}

TEST(GaussianProcess, GradientsAreThoseOfDifferences) {
    const Case with = make_case(25, 9);
    GaussianProcess model(with.data, with.mask, with.kernel);
    Eigen::VectorXd row = make_case(1, 123).data.rows.row(0);
    Eigen::VectorXd by_mean;
    Eigen::VectorXd by_variance;
    static_cast<void>(model.predict(row, by_mean, by_variance));
    for (const Eigen::Index j : {0, 1, 3}) {
        constexpr double kStep = 1e-6;
        Eigen::VectorXd up = row;
        Eigen::VectorXd down = row;
        up[j] += kStep;
        down[j] -= kStep;
        const auto high = model.predict(up);
        const auto low = model.predict(down);
        EXPECT_NEAR(by_mean[j], (high.mean - low.mean) / (2 * kStep), 1e-6);
        EXPECT_NEAR(by_variance[j], (high.variance - low.variance) / (2 * kStep), 1e-6);
    }
    EXPECT_EQ(by_mean[2], 0);
}

TEST(GaussianProcess, TheEvidencesGradientToo) {
    const Case with = make_case(30, 4);
    Eigen::VectorXd theta(6);
    theta << -0.5, 0.3, 0.8, 1.1, 0.2, -3;
    Eigen::VectorXd gradient;
    Eigen::VectorXd ignored;
    static_cast<void>(kernel_cost(with.data, with.mask, theta, gradient));
    for (Eigen::Index j = 0; j < theta.size(); ++j) {
        constexpr double kStep = 1e-5;
        Eigen::VectorXd up = theta;
        Eigen::VectorXd down = theta;
        up[j] += kStep;
        down[j] -= kStep;
        const double slope = (kernel_cost(with.data, with.mask, up, ignored) -
                              kernel_cost(with.data, with.mask, down, ignored)) /
                             (2 * kStep);
        EXPECT_NEAR(gradient[j], slope, 1e-4 * std::max(1.0, std::fabs(slope))) << j;
    }
}

TEST(GaussianProcess, TheFitFindsWhichFeaturesMatter) {
    const Case with = make_case(60, 8);  // the first number and the category
    const KernelParameters fitted = fit_kernel(with.data, with.mask);
    EXPECT_GT(fitted.inverse_squared_lengths[0], fitted.inverse_squared_lengths[1] + 1);
    EXPECT_GT(fitted.inverse_squared_lengths[0], fitted.inverse_squared_lengths[3] + 1);
    EXPECT_GT(fitted.inverse_squared_lengths[2], fitted.inverse_squared_lengths[3] + 1);
    EXPECT_LT(fitted.noise, -4);
}

TEST(LogImprovement, IsTheLogarithmWhereThatCanBeComputedAndFiniteElsewhere) {
    for (const double mean : {-2.0, 0.0, 0.5, 3.0}) {
        const double deviation = 0.7;
        const double z = (0.2 - mean) / deviation;
        const double direct = deviation * (std::exp(-z * z / 2) / std::sqrt(2 * M_PI) +
                                           z * 0.5 * std::erfc(-z / std::sqrt(2.0)));
        EXPECT_NEAR(log_expected_improvement(mean, 0.49, 0.2).value, std::log(direct), 1e-10);
    }
    double before = kInf;
    for (double mean = 0; mean < 100; mean += 0.25) {  // across all the branches
        const LogImprovement at = log_expected_improvement(mean, 1, 0);
        ASSERT_TRUE(std::isfinite(at.value)) << mean;
        ASSERT_LT(at.value, before) << mean;
        before = at.value;
        constexpr double kStep = 1e-5;
        const double slope = (log_expected_improvement(mean + kStep, 1, 0).value -
                              log_expected_improvement(mean - kStep, 1, 0).value) /
                             (2 * kStep);
        EXPECT_NEAR(at.by_mean, slope, 2e-3 * std::fabs(slope)) << mean;
        const double by_variance = (log_expected_improvement(mean, 1 + kStep, 0).value -
                                    log_expected_improvement(mean, 1 - kStep, 0).value) /
                                   (2 * kStep);
        EXPECT_NEAR(at.by_variance, by_variance, 2e-3 * std::fabs(by_variance) + 1e-6) << mean;
    }
}

// --- the sampler ---------------------------------------------------------------------------------

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
}  // namespace tune::tuner
