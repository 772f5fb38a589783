// The Gaussian process against the textbook's formulas and scikit-learn's numbers.

#include <gtest/gtest.h>

#include <Eigen/LU>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "base/system/file.h"
#include "tuner/sampler/gp/improvement.h"
#include "tuner/sampler/gp/process.h"

namespace tune::tuner {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

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

/// With the factor that it refers to.
struct Model {
    CovarianceFactor factor;
    std::optional<GaussianProcess> process;

    explicit Model(const Case& with) : Model(with.data, with.mask, with.kernel) {}
    Model(const GpData& data, const CategoryMask& mask, const KernelParameters& kernel)
        : factor(mask) {
        factor.set(data.rows, static_cast<std::size_t>(data.values.size()), kernel);
        process.emplace(factor, data.values);
    }
    GaussianProcess* operator->() { return &*process; }
};

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
        Model model(with);
        Eigen::MatrixXd noisy = covariances(with, with.data.rows, with.data.rows);
        noisy.diagonal().array() += std::exp(with.kernel.noise) + 1e-6;
        const Eigen::MatrixXd inverse = noisy.inverse();
        const Case queries = make_case(5, 77);
        for (Eigen::Index i = 0; i < 5; ++i) {
            const Eigen::VectorXd row = queries.data.rows.row(i);
            const Eigen::VectorXd k = covariances(with, with.data.rows, row.transpose());
            const auto found = model->predict(row);
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
    Model without(fewer, with.mask, with.kernel);
    Model model(pending, with.mask, with.kernel);
    EXPECT_NEAR(model->predict(query).mean, without->predict(query).mean, 1e-9);
    EXPECT_LT(model->predict(query).variance, without->predict(query).variance / 5);
    EXPECT_NEAR(model->best_mean(), without->best_mean(), 1e-9);
}

TEST(GaussianProcess, GradientsAreThoseOfDifferences) {
    const Case with = make_case(25, 9);
    Model model(with);
    Eigen::VectorXd row = make_case(1, 123).data.rows.row(0);
    Eigen::VectorXd by_mean;
    Eigen::VectorXd by_variance;
    static_cast<void>(model->predict(row, by_mean, by_variance));
    for (const Eigen::Index j : {0, 1, 3}) {
        constexpr double kStep = 1e-6;
        Eigen::VectorXd up = row;
        Eigen::VectorXd down = row;
        up[j] += kStep;
        down[j] -= kStep;
        const auto high = model->predict(up);
        const auto low = model->predict(down);
        EXPECT_NEAR(by_mean[j], (high.mean - low.mean) / (2 * kStep), 1e-6);
        EXPECT_NEAR(by_variance[j], (high.variance - low.variance) / (2 * kStep), 1e-6);
    }
    EXPECT_EQ(by_mean[2], 0);
}

/// Rows of doubles.
Eigen::MatrixXd matrix(const Json& json) {
    const auto rows = json.get<std::vector<std::vector<double>>>();
    Eigen::MatrixXd all(static_cast<Eigen::Index>(rows.size()),
                        static_cast<Eigen::Index>(rows.front().size()));
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < rows[i].size(); ++j)
            all(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = rows[i][j];
    return all;
}

Eigen::VectorXd vector(const Json& json) {
    const auto values = json.get<std::vector<double>>();
    return Eigen::Map<const Eigen::VectorXd>(values.data(),
                                             static_cast<Eigen::Index>(values.size()));
}

TEST(GaussianProcess, EvidenceGradientAndPosteriorAreScikitLearns) {
    const std::string path = std::string(TUNE_SOURCE_DIR) + "/tests/tuner/golden/gp.json";
    const Json cases = parse_json(read_file(path).value()).value();
    const CategoryMask mask = {false, false, false, true};
    ASSERT_EQ(cases.size(), 4u);
    for (const Json& golden : cases) {
        const Eigen::VectorXd theta = vector(golden["theta"]);
        const Eigen::MatrixXd rows = matrix(golden["rows"]);
        GpData data;
        data.values = vector(golden["values"]);
        const Eigen::Index n = data.values.size();
        data.rows = rows.topRows(n);
        KernelParameters kernel{theta.head(4).array(), theta[4], theta[5]};
        Eigen::VectorXd at = theta;
        if (!golden["warp"].is_null()) {
            kernel.warping.log_a = Eigen::ArrayXd::Zero(4);
            kernel.warping.log_b = Eigen::ArrayXd::Zero(4);
            kernel.warping.log_a.head(3) = vector(golden["warp"]["log_a"]).array();
            kernel.warping.log_b.head(3) = vector(golden["warp"]["log_b"]).array();
            at.resize(14);
            at << theta, kernel.warping.log_a.matrix(), kernel.warping.log_b.matrix();
        }
        Eigen::VectorXd gradient;
        const double constant = 0.5 * static_cast<double>(n) * std::log(2 * M_PI);
        EXPECT_NEAR(-evidence_cost(data, mask, at, gradient) - constant,
                    golden["log_evidence"].get<double>(), 1e-8);
        for (Eigen::Index j = 0; j < 6; ++j)
            EXPECT_NEAR(-gradient[j], golden["gradient"][static_cast<std::size_t>(j)].get<double>(),
                        1e-7)
                << j;
        Model model(data, mask, kernel);
        const auto together = model->predict_all(rows.bottomRows(5));
        for (Eigen::Index i = 0; i < 5; ++i) {
            const auto index = static_cast<std::size_t>(i);
            const auto found = model->predict(rows.row(n + i).transpose());
            EXPECT_NEAR(found.mean, golden["mean"][index].get<double>(), 1e-8);
            EXPECT_NEAR(found.variance, golden["variance"][index].get<double>(), 1e-8);
            EXPECT_NEAR(together[index].mean, found.mean, 1e-12);
            EXPECT_NEAR(together[index].variance, found.variance, 1e-12);
        }
    }
}

TEST(GaussianProcess, TheEvidencesAndThePriorsGradientsAreThoseOfDifferences) {
    const Case with = make_case(30, 4);
    Eigen::VectorXd theta(14);
    theta << -0.5, 0.3, 0.8, 1.1, 0.2, -3, 0.4, -0.6, 0, 0.2, -0.3, 0.5, 0, 0.1;
    for (const Eigen::Index size : {6, 14}) {
        const Eigen::VectorXd at = theta.head(size);
        Eigen::VectorXd gradient;
        Eigen::VectorXd of_prior;
        Eigen::VectorXd ignored;
        static_cast<void>(evidence_cost(with.data, with.mask, at, gradient));
        static_cast<void>(prior_cost(with.mask, at, of_prior));
        for (Eigen::Index j = 0; j < size; ++j) {
            constexpr double kStep = 1e-5;
            Eigen::VectorXd up = at;
            Eigen::VectorXd down = at;
            up[j] += kStep;
            down[j] -= kStep;
            const double slope = (evidence_cost(with.data, with.mask, up, ignored) -
                                  evidence_cost(with.data, with.mask, down, ignored)) /
                                 (2 * kStep);
            EXPECT_NEAR(gradient[j], slope, 1e-4 * std::max(1.0, std::fabs(slope))) << j;
            const double prior_slope =
                (prior_cost(with.mask, up, ignored) - prior_cost(with.mask, down, ignored)) /
                (2 * kStep);
            EXPECT_NEAR(of_prior[j], prior_slope, 1e-6) << j;
        }
    }
}

TEST(GaussianProcess, TheFitFindsWhichFeaturesMatter) {
    const Case with = make_case(60, 8);  // the first number and the category
    const KernelParameters fitted = fit_kernel(with.data, with.mask, {WarpUse::kNever, {}});
    EXPECT_GT(fitted.inverse_squared_lengths[0], fitted.inverse_squared_lengths[1] + 1);
    EXPECT_GT(fitted.inverse_squared_lengths[0], fitted.inverse_squared_lengths[3] + 1);
    EXPECT_GT(fitted.inverse_squared_lengths[2], fitted.inverse_squared_lengths[3] + 1);
    EXPECT_LT(fitted.noise, -4);
}

/// Two numbers, values of deviation 1 and the noise asked for on top.
GpData noisy_data(Eigen::Index count, double deviation, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    std::normal_distribution<double> normal(0, 1);
    GpData data{Eigen::MatrixXd(count, 2), Eigen::VectorXd(count)};
    for (Eigen::Index i = 0; i < count; ++i) {
        data.rows.row(i) << uniform(random), uniform(random);
        data.values[i] = 1.5 * std::sin(3 * data.rows(i, 0)) + data.rows(i, 1) * data.rows(i, 1) +
                         deviation * normal(random);
    }
    data.values.array() -= data.values.mean();
    return data;
}

TEST(GaussianProcess, TheFitFindsTheNoise) {
    for (const double deviation : {0.1, 0.3, 0.6}) {
        double sum = 0;
        for (unsigned seed = 0; seed < 8; ++seed)
            sum += std::sqrt(
                fit_kernel(noisy_data(60, deviation, seed), {false, false}).noise_variance());
        EXPECT_NEAR(sum / 8, deviation, 0.2 * deviation);
    }
    for (unsigned seed = 0; seed < 8; ++seed)
        EXPECT_LT(std::sqrt(fit_kernel(noisy_data(60, 0, seed), {false, false}).noise_variance()),
                  0.05);
    const KernelParameters given =
        fit_kernel(noisy_data(40, 0.3, 1), {false, false}, {WarpUse::kNever, 0.01});
    EXPECT_DOUBLE_EQ(std::exp(given.noise), 0.01);
}

/// The deviation of `kernel`'s mean from `truth` on a grid.
double error_of(const GpData& data, const KernelParameters& kernel, double (*truth)(double)) {
    Model model(data, {false}, kernel);
    double sum = 0;
    for (int i = 0; i <= 200; ++i) {
        const double x = i / 200.0;
        sum += std::pow(model->predict(Eigen::VectorXd::Constant(1, x)).mean - truth(x), 2);
    }
    return std::sqrt(sum / 201);
}

TEST(Warping, RecoversABentRangeAndLeavesAStraightOne) {
    const auto bent = [](double x) { return std::sin(12 * std::pow(x, 0.3)); };
    const auto straight = [](double x) { return std::sin(9 * x); };
    for (unsigned seed = 0; seed < 6; ++seed) {
        std::mt19937_64 random(seed);
        std::uniform_real_distribution<double> uniform(0, 1);
        GpData of_bent{Eigen::MatrixXd(30, 1), Eigen::VectorXd(30)};
        for (Eigen::Index i = 0; i < 30; ++i) {
            of_bent.rows(i, 0) = uniform(random);
            of_bent.values[i] = bent(of_bent.rows(i, 0));
        }
        GpData of_straight = of_bent;
        for (Eigen::Index i = 0; i < 30; ++i)
            of_straight.values[i] = straight(of_straight.rows(i, 0));
        const KernelParameters plain = fit_kernel(of_bent, {false}, {WarpUse::kNever, {}});
        const KernelParameters warped = fit_kernel(of_bent, {false});
        ASSERT_TRUE(warped.warping.is_on()) << seed;
        EXPECT_FALSE(plain.warping.is_on());
        // x^0.3: steep at the low end, and less so at the high end.
        const auto slope = [&](double x) {
            return warp_number(x, warped.warping.log_a[0], warped.warping.log_b[0]).by_x;
        };
        EXPECT_GT(slope(0.05), 2 * slope(0.6)) << seed;
        EXPECT_LT(error_of(of_bent, warped, bent), error_of(of_bent, plain, bent)) << seed;
        EXPECT_FALSE(fit_kernel(of_straight, {false}).warping.is_on()) << seed;
    }
}

TEST(Warping, IsADistributionFunctionAndItsDerivatives) {
    for (const double a : {-1.0, 0.0, 0.7})
        for (const double b : {-0.8, 0.0, 1.2}) {
            double before = -1;
            for (int i = 0; i <= 20; ++i) {
                const double x = i / 20.0;
                const WarpedNumber at = warp_number(x, a, b);
                EXPECT_GT(at.value, before);
                before = at.value;
                EXPECT_TRUE(std::isfinite(at.by_x) && std::isfinite(at.by_log_a) &&
                            std::isfinite(at.by_log_b));
                if (i == 0 || i == 20) continue;
                constexpr double kStep = 1e-6;
                const auto value = [](double v, double c, double d) {
                    return warp_number(v, c, d).value;
                };
                EXPECT_NEAR(at.by_x, (value(x + kStep, a, b) - value(x - kStep, a, b)) / 2 / kStep,
                            1e-6);
                EXPECT_NEAR(at.by_log_a,
                            (value(x, a + kStep, b) - value(x, a - kStep, b)) / 2 / kStep, 1e-6);
                EXPECT_NEAR(at.by_log_b,
                            (value(x, a, b + kStep) - value(x, a, b - kStep)) / 2 / kStep, 1e-6);
            }
            EXPECT_NEAR(warp_number(0, a, b).value, 0, 0.03);
            EXPECT_NEAR(warp_number(1, a, b).value, 1, 0.03);
            if (a == 0 && b == 0) {
                EXPECT_NEAR(warp_number(0.3, a, b).value, 0.3, 1e-6);
            }
        }
}

TEST(CovarianceFactor, GrownIsTheSameBitsAsBuiltAnewAndItsProductIsTheInverse) {
    const Case with = make_case(150, 6);
    for (const bool is_warped : {false, true}) {
        KernelParameters kernel = with.kernel;
        if (is_warped)
            kernel.warping = {Eigen::ArrayXd::Constant(4, 0.3), Eigen::ArrayXd::Constant(4, -0.2)};
        CovarianceFactor grown(with.mask);
        // Row by row, with a part that is taken back (a running trial that ended elsewhere).
        for (const Eigen::Index n : {70, 71, 75, 72, 90, 140, 129, 150})
            grown.set(with.data.rows.topRows(n), 70, kernel);
        CovarianceFactor anew(with.mask);
        anew.set(with.data.rows, 70, kernel);
        EXPECT_TRUE((grown.inverse().array() == anew.inverse().array()).all());
        GaussianProcess lived(grown, with.data.values);
        GaussianProcess rebuilt(anew, with.data.values);
        EXPECT_EQ(lived.best_mean(), rebuilt.best_mean());
        const Eigen::VectorXd query = make_case(1, 99).data.rows.row(0);
        EXPECT_EQ(lived.predict(query).mean, rebuilt.predict(query).mean);
        EXPECT_EQ(lived.predict(query).variance, rebuilt.predict(query).variance);
        CovarianceFactor at_once(with.mask);
        at_once.set(with.data.rows, 150, kernel);
        EXPECT_LT((grown.inverse() - at_once.inverse()).cwiseAbs().maxCoeff(), 1e-8);
    }
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

}  // namespace
}  // namespace tune::tuner
