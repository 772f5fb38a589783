#include "tuner/importance/fanova.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/system/file.h"
#include "tuner/importance/forest.h"

namespace tune::tuner {
namespace {

struct Sample {
    Space space;
    std::vector<Point> points = {};
    std::vector<double> values = {};
};

/// Uniform points of a space of floats in [0, 1] and choices.
Sample sample_of(const char* json, int count, const std::function<double(const Point&)>& value) {
    Sample sample{.space = Space::from_json(parse_json(json).value()).value()};
    std::mt19937 random(11);
    for (int i = 0; i < count; ++i) {
        Point point;
        for (const Parameter& parameter : sample.space.parameters())
            point.push_back(parameter.count() == 0
                                ? parameter.low + (parameter.high - parameter.low) *
                                                      std::uniform_real_distribution<>(0, 1)(random)
                                : parameter.low +
                                      parameter.step *
                                          std::uniform_int_distribution<>(
                                              0, static_cast<int>(parameter.count()) - 1)(random));
        sample.values.push_back(value(point));
        sample.points.push_back(std::move(point));
    }
    return sample;
}

std::vector<FanovaImportance> fanova_of(const Sample& sample, FanovaOptions options = {}) {
    return fanova(sample.space, sample.points, sample.values, options);
}

TEST(Fanova, FindsTheSharesOfAnAdditiveFunction) {
    // Variances 1/12, 4/12 and 0.
    const Sample sample =
        sample_of(R"({"a": {"float": [0, 1]}, "b": {"float": [0, 1]}, "c": {"float": [0, 1]}})",
                  600, [](const Point& p) { return p[0] + 2 * p[1]; });
    const auto found = fanova_of(sample);
    EXPECT_NEAR(found[0].share, 0.2, 0.04);
    EXPECT_NEAR(found[1].share, 0.8, 0.04);
    EXPECT_NEAR(found[2].share, 0, 0.01);
    EXPECT_LT(found[1].spread, 0.05);
}

TEST(Fanova, FindsTheSharesOfChoicesAndIntegers) {
    // The choice adds 0, 3 or 0: variance 2; the integer 0..4: variance 2; the float 2x: 1/3.
    const Sample sample = sample_of(
        R"({"k": {"choice": ["p", "q", "r"]}, "n": {"int": [0, 4]}, "x": {"float": [0, 1]}})", 800,
        [](const Point& p) { return (p[0] == 1 ? 3 : 0) + p[1] + 2 * p[2]; });
    const auto found = fanova_of(sample);
    const double whole = 2 + 2 + 1.0 / 3;
    EXPECT_NEAR(found[0].share, 2 / whole, 0.04);
    EXPECT_NEAR(found[1].share, 2 / whole, 0.04);
    EXPECT_NEAR(found[2].share, 1 / 3.0 / whole, 0.03);
}

TEST(Fanova, MeasuresLogarithmicParametersByTheirLogarithm) {
    // Linear in the logarithm: half the variance each.
    Sample sample = sample_of(R"({"l": {"float": [0, 1]}, "x": {"float": [0, 1]}})", 600,
                              [](const Point& p) { return p[0] + p[1]; });
    sample.space = Space::from_json(parse_json(R"({"l": {"float": [1e-6, 1], "log": true},
                                      "x": {"float": [0, 1]}})")
                                        .value())
                       .value();
    for (Point& point : sample.points) point[0] = std::pow(10, -6 * (1 - point[0]));
    const auto found = fanova_of(sample);
    EXPECT_NEAR(found[0].share, 0.5, 0.05);
    EXPECT_NEAR(found[1].share, 0.5, 0.05);
}

TEST(Fanova, LeavesInteractionOpen) {
    // A product of centred factors has no main effects at all.
    const Sample sample = sample_of(R"({"a": {"float": [-1, 1]}, "b": {"float": [-1, 1]}})", 800,
                                    [](const Point& p) { return p[0] * p[1]; });
    const auto found = fanova_of(sample);
    EXPECT_LT(found[0].share + found[1].share, 0.3);
}

TEST(Fanova, AgreesWithOptuna) {
    const Json golden =
        parse_json(read_file(TUNE_SOURCE_DIR "/tests/tuner/golden/importance.json").value())
            .value();
    int compared = 0;
    for (const Json& study : golden) {
        if (study.at("fanova").empty()) continue;
        Sample sample{.space = Space::from_json(study.at("space")).value()};
        for (const Json& trial : study.at("trials")) {
            if (trial.at("value").is_null()) continue;
            sample.points.push_back(sample.space.point_from_json(trial.at("params")).value());
            sample.values.push_back(trial.at("value").get<double>());
        }
        const auto found = fanova_of(sample);
        for (std::size_t i = 0; i < sample.space.size(); ++i, ++compared)
            EXPECT_NEAR(found[i].share, study.at("fanova").at(sample.space[i].name).get<double>(),
                        0.03)
                << sample.space[i].name;
    }
    EXPECT_EQ(compared, 3);
}

TEST(Fanova, IsDeterministicBySeed) {
    const Sample sample = sample_of(R"({"a": {"float": [0, 1]}, "b": {"float": [0, 1]}})", 100,
                                    [](const Point& p) { return p[0] * p[0] + p[1]; });
    EXPECT_EQ(fanova_of(sample)[0].share, fanova_of(sample)[0].share);
    EXPECT_NE(fanova_of(sample)[0].share, fanova_of(sample, {.seed = 1})[0].share);
}

TEST(Fanova, HasNoOpinionWithoutVariance) {
    Sample sample = sample_of(R"({"a": {"float": [0, 1]}, "c": {"const": 3}})", 20,
                              [](const Point&) { return 7.0; });
    EXPECT_EQ(fanova_of(sample)[0].share, 0);
    sample.values.assign(20, std::numeric_limits<double>::quiet_NaN());
    EXPECT_EQ(fanova_of(sample)[0].share, 0);
    sample.values[3] = 1;
    EXPECT_EQ(fanova_of(sample)[0].share, 0);
    EXPECT_EQ(fanova(sample.space, {}, {}).size(), 2u);
    // Values whose squares would overflow.
    sample.values.assign(20, 1e300);
    for (std::size_t i = 0; i < 10; ++i) sample.values[i] = -1e300;
    EXPECT_GT(fanova_of(sample)[0].share, 0.5);
}

TEST(Fanova, ConditionalParametersTakePart) {
    const Space space = Space::from_json(parse_json(R"({"m": {"choice": ["tree", "net"]},
        "depth": {"float": [0, 1], "when": {"m": "tree"}}})")
                                             .value())
                            .value();
    const std::size_t m = *space.find("m");
    const std::size_t depth = *space.find("depth");
    std::vector<Point> points = {};
    std::vector<double> values = {};
    for (int i = 0; i < 200; ++i) {
        Point point = space.empty_point();
        point[m] = i % 2;
        if (i % 2 == 0) point[depth] = i / 200.0;
        values.push_back(i % 2 == 0 ? point[depth] * 4 : 2);
        points.push_back(point);
    }
    const auto found = fanova(space, points, values);
    EXPECT_GT(found[depth].share, 0.1);
    EXPECT_GT(found[depth].share, found[m].share);
}

TEST(Forest, LeavesFillTheSpaceOnce) {
    const Sample sample = sample_of(R"({"a": {"float": [0, 1]}, "k": {"choice": [1, 2, 3, 4]}})",
                                    150, [](const Point& p) { return p[0] * 3 + p[1]; });
    std::vector<Feature> features(2);
    features[1].categories = 4;
    for (const Point& point : sample.points) {
        features[0].values.push_back(point[0]);
        features[1].values.push_back(point[1]);
    }
    const std::vector<Leaf> leaves = grow_tree(features, sample.values, {.seed = 5});
    EXPECT_GT(leaves.size(), 20u);
    double volume = 0;
    for (const Leaf& leaf : leaves) {
        EXPECT_NEAR(leaf.volume, leaf.length(0) * leaf.length(1), 1e-12);
        volume += leaf.volume;
    }
    EXPECT_NEAR(volume, 1, 1e-9);
    EXPECT_EQ(grow_tree(features, sample.values, {.depth_max = 0}).size(), 1u);
}

}  // namespace
}  // namespace tune::tuner
