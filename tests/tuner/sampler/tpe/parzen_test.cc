// Vectors T1 to T11 were computed from the formulas and agree with optuna 5.0.0 in every digit.

#include "tuner/sampler/tpe/parzen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/tuner/sampler/reference.h"
#include "tuner/sampler/tpe/pareto_split.h"
#include "tuner/sampler/tpe/trial_split.h"

namespace tune::tuner {
namespace {

/// An estimator over one or more inline words, fed with internal values.
class Estimator {
public:
    Estimator(const std::vector<std::string>& words, const std::vector<std::vector<double>>& rows)
        : estimator_(axes_of(words)) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            std::vector<double> positions;
            for (std::size_t j = 0; j < words.size(); ++j)
                positions.push_back(estimator_.axes()[j].position(rows[i][j]));
            estimator_.insert(i, positions);
        }
    }

    double log_p(const std::vector<double>& values) const {
        std::vector<double> positions;
        for (std::size_t j = 0; j < values.size(); ++j)
            positions.push_back(estimator_.axes()[j].position(values[j]));
        double out = 0;
        estimator_.log_density(positions, {&out, 1});
        return out;
    }

    double total(const std::vector<double>& values) const {
        double sum = 0;
        for (const double value : values) sum += std::exp(log_p({value}));
        return sum;
    }

    const ParzenEstimator& get() const { return estimator_; }

private:
    static std::vector<Axis> axes_of(const std::vector<std::string>& words) {
        std::vector<Axis> axes;
        for (const std::string& word : words) axes.push_back(axis_of(word));
        return axes;
    }

    ParzenEstimator estimator_;
};

std::vector<double> counted(int low, int high) {
    std::vector<double> values(static_cast<std::size_t>(high - low + 1));
    std::iota(values.begin(), values.end(), low);
    return values;
}

constexpr double kDigits = 1e-11;

TEST(Parzen, T1Float) {
    const Estimator e({"x=0..10"}, {{1}, {4}, {9}});
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[0], 3);
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[1], 5);
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[2], 5);
    EXPECT_NEAR(e.log_p({0.5}), -2.230297912268, kDigits);
    EXPECT_NEAR(e.log_p({4.2}), -2.219661863230, kDigits);
    EXPECT_NEAR(e.log_p({9.9}), -2.595036044426, kDigits);
}

TEST(Parzen, NarrowFloorsAreOfContinuousAxesOnly) {
    const std::vector<Axis> axes = {axis_of("x=0..10"), axis_of("k=1..10:int")};
    for (const auto& [floor, shares] : {std::pair(Floor::kOptuna, std::pair(1.0 / 12, 1.0 / 100)),
                                        std::pair(Floor::kNarrow, std::pair(1.0 / 12, 0.02)),
                                        std::pair(Floor::kNarrowest, std::pair(0.02, 0.02))}) {
        ParzenEstimator estimator(axes, Weights::kAge, floor);
        for (std::uint64_t n = 0; n < 200; ++n) {
            estimator.insert(n, std::vector<double>{5, 5});
            if (n != 9 && n != 199) continue;
            const double share = n == 9 ? shares.first : shares.second;
            EXPECT_DOUBLE_EQ(estimator.kernel(0).sigma[4], 10 * share) << n;
            EXPECT_DOUBLE_EQ(estimator.kernel(1).sigma[4], n == 9 ? 10.0 / 12 : 0.1) << n;
        }
    }
}

TEST(Parzen, T2FloatWithCloseObservations) {
    const Estimator e({"x=0..10"}, {{1}, {4}, {4.5}});
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[0], 3);
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[1], 3);
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[2], 2);
    EXPECT_NEAR(e.log_p({0.5}), -2.287727993186, kDigits);
    EXPECT_NEAR(e.log_p({4.2}), -1.942220630594, kDigits);
    EXPECT_NEAR(e.log_p({9}), -3.245804494669, kDigits);
}

TEST(Parzen, T3LogFloat) {
    const Estimator e({"x=1e-5..1e-1:log"}, {{1e-4}, {1e-3}, {5e-3}});
    EXPECT_NEAR(e.get().kernel(0).sigma[0], 2.302585093, 1e-9);
    EXPECT_NEAR(e.get().kernel(0).sigma[1], 2.302585093, 1e-9);
    EXPECT_NEAR(e.get().kernel(0).sigma[2], 1.842068074, 1e-9);
    EXPECT_NEAR(e.log_p({2e-4}), -2.078745115450, kDigits);
    EXPECT_NEAR(e.log_p({1e-2}), -2.161618781687, kDigits);
}

TEST(Parzen, T4Int) {
    const Estimator e({"x=1..10:int"}, {{3}, {7}, {7}, {10}});
    const KernelColumns& kernel = e.get().kernel(0);
    EXPECT_DOUBLE_EQ(kernel.sigma[0], 4);
    EXPECT_DOUBLE_EQ(kernel.sigma[1], 4);
    EXPECT_DOUBLE_EQ(kernel.sigma[2], 3);
    EXPECT_DOUBLE_EQ(kernel.sigma[3], 3);
    EXPECT_NEAR(e.log_p({1}), -2.862182878969, kDigits);
    EXPECT_NEAR(e.log_p({7}), -2.093410537619, kDigits);
    EXPECT_NEAR(e.log_p({10}), -2.203997500522, kDigits);
    EXPECT_NEAR(e.total(counted(1, 10)), 1, 1e-12);
}

TEST(Parzen, T5LogInt) {
    const Estimator e({"x=1..64:int:log"}, {{2}, {8}, {32}});
    for (int i = 0; i < 3; ++i)
        EXPECT_NEAR(e.get().kernel(0).sigma[static_cast<std::size_t>(i)], 1.386294361, 1e-9);
    EXPECT_NEAR(e.log_p({1}), -1.823431996727, kDigits);
    EXPECT_NEAR(e.log_p({8}), -3.473788194603, kDigits);
    EXPECT_NEAR(e.log_p({64}), -5.939725398822, kDigits);
    EXPECT_NEAR(e.total(counted(1, 64)), 1, 1e-12);
}

TEST(Parzen, T6SteppedFloat) {
    const Estimator e({"x=0..1:0.25"}, {{.25}, {.25}, {.75}});
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[0], .25);
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[1], .5);
    EXPECT_DOUBLE_EQ(e.get().kernel(0).sigma[2], .5);
    EXPECT_NEAR(e.log_p({0}), -1.636283470275, kDigits);
    EXPECT_NEAR(e.log_p({.25}), -1.338900781229, kDigits);
    EXPECT_NEAR(e.log_p({.75}), -1.738627734912, kDigits);
    EXPECT_NEAR(e.log_p({1}), -2.028529039680, kDigits);
    EXPECT_NEAR(e.total({0, .25, .5, .75, 1}), 1, 1e-12);
}

TEST(Parzen, T7Category) {
    const Estimator e({"x=a,b,c"}, {{0}, {2}, {2}});
    EXPECT_NEAR(std::exp(e.log_p({0})), 1.0 / 3, 1e-14);
    EXPECT_NEAR(std::exp(e.log_p({1})), 4.0 / 21, 1e-14);
    EXPECT_NEAR(std::exp(e.log_p({2})), 10.0 / 21, 1e-14);
}

TEST(Parzen, T8JointOfFloatAndCategory) {
    const Estimator e({"x=0..10", "c=a,b,c"}, {{1, 0}, {4, 2}, {4.5, 2}});
    EXPECT_NEAR(e.log_p({4.2, 2}), -2.584496856864, kDigits);
    EXPECT_NEAR(e.log_p({9, 0}), -4.509443510786, kDigits);
}

TEST(Parzen, T9WeightsFallWithAge) {
    const auto weights = [](std::size_t count) {
        ParzenEstimator estimator({axis_of("x=0..1")});
        for (std::size_t i = 0; i < count; ++i) estimator.insert(i, std::vector<double>{0.5});
        std::vector<double> found(estimator.weights().data(), estimator.weights().data() + count);
        return found;
    };
    const std::vector<double> thirty = weights(30);
    EXPECT_NEAR(thirty[0], .033333, 1e-6);
    EXPECT_NEAR(thirty[1], .275, 1e-6);
    EXPECT_NEAR(thirty[2], .516667, 1e-6);
    EXPECT_NEAR(thirty[3], .758333, 1e-6);
    EXPECT_EQ(thirty[4], 1);
    EXPECT_NEAR(std::accumulate(thirty.begin(), thirty.end(), 0.0), 27.583333, 1e-6);
    EXPECT_NEAR(weights(26)[0], .038462, 1e-6);
    const std::vector<double> forty = weights(40);
    EXPECT_NEAR(std::accumulate(forty.begin(), forty.end(), 0.0), 32.6875, 1e-12);
}

TEST(Parzen, T10WithoutObservationsThePriorIsLeft) {
    const Estimator e({"x=0..10"}, {});
    EXPECT_NEAR(e.log_p({3}), -2.281607292503, kDigits);
}

TEST(Parzen, T11GoodCount) {
    EXPECT_EQ(good_count(1), 1u);
    EXPECT_EQ(good_count(10), 1u);
    EXPECT_EQ(good_count(11), 2u);
    EXPECT_EQ(good_count(70), 7u);
    EXPECT_EQ(good_count(100), 10u);
    EXPECT_EQ(good_count(250), 25u);
    EXPECT_EQ(good_count(1000), 25u);
    EXPECT_EQ(good_count(0), 0u);
}

TEST(Parzen, T11GoodCountOfHyperopt) {
    EXPECT_EQ(root_good_count(0), 0u);
    EXPECT_EQ(root_good_count(1), 1u);
    EXPECT_EQ(root_good_count(16), 1u);
    EXPECT_EQ(root_good_count(17), 2u);
    EXPECT_EQ(root_good_count(100), 3u);  // ceil(10 / 4)
    EXPECT_EQ(root_good_count(1000), 8u);
    EXPECT_EQ(root_good_count(1'000'000), 25u);
}

TEST(Parzen, T11SeveralObjectivesHaveATenthWithoutABound) {
    Objectives objectives(Goal::kMinimize);
    objectives.goals.push_back(Goal::kMinimize);
    ParetoSplit split(objectives);
    for (std::uint64_t number = 0; number < 1000; ++number) {
        Observation observation;
        observation.number = number;
        observation.state = Observation::State::kComplete;
        observation.value = static_cast<double>(number);
        observation.more_values = {static_cast<double>(1000 - number)};
        split.insert(observation);
        EXPECT_EQ(split.good().size(), (number + 10) / 10);
    }
}

TEST(Parzen, DensityIntegratesToOne) {
    const Estimator e({"x=-2..3"}, {{-1.9}, {0.3}, {0.31}, {2.9}, {2.9}});
    constexpr int kCells = 20'000;
    double sum = 0;
    for (int i = 0; i < kCells; ++i) sum += std::exp(e.log_p({-2 + 5.0 * (i + 0.5) / kCells}));
    EXPECT_NEAR(sum * 5.0 / kCells, 1, 1e-7);
}

TEST(Parzen, CategoriesSumToOne) {
    const Estimator e({"x=a,b,c,d,e"}, {{0}, {2}, {2}, {4}});
    EXPECT_NEAR(e.total({0, 1, 2, 3, 4}), 1, 1e-14);
}

TEST(Parzen, ScalingTheDomainScalesTheBandwidth) {
    const Estimator small({"x=0..1"}, {{0.1}, {0.4}, {0.9}});
    const Estimator large({"x=0..1000"}, {{100}, {400}, {900}});
    for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(small.get().kernel(0).sigma[i] * 1000, large.get().kernel(0).sigma[i], 1e-9);
    EXPECT_NEAR(small.log_p({0.2}), large.log_p({200}) + std::log(1000.0), 1e-12);
}

TEST(Parzen, OrderDoesNotMatterWhileWeightsAreEqual) {
    const Estimator forward({"x=0..10", "y=1..9:int"}, {{1, 2}, {4, 9}, {9, 5}});
    const Estimator backward({"x=0..10", "y=1..9:int"}, {{9, 5}, {4, 9}, {1, 2}});
    EXPECT_NEAR(forward.log_p({3, 4}), backward.log_p({3, 4}), 1e-14);
}

}  // namespace
}  // namespace tune::tuner
