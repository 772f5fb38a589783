// PED-ANOVA against Optuna 5.0.0; tests/tuner/golden/make_importance_golden.py wrote the file.

#include "tuner/importance/ped_anova.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "base/system/file.h"
#include "tuner/importance/scott_density.h"

namespace tune::tuner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Space space_of(const char* json) {
    return Space::from_json(parse_json(json).value()).value();
}

TEST(PedAnovaGolden, IsOptunas) {
    const Json golden =
        parse_json(read_file(TUNE_SOURCE_DIR "/tests/tuner/golden/importance.json").value())
            .value();
    for (const Json& study : golden) {
        const Space space = Space::from_json(study.at("space")).value();
        PedAnova importance(space);
        const double sign = study.at("goal") == "min" ? 1 : -1;
        for (const Json& trial : study.at("trials")) {
            const Json& value = trial.at("value");
            importance.add(space.point_from_json(trial.at("params")).value(),
                           value.is_null() ? kInfinity : sign * value.get<double>());
        }
        const std::vector<double> found = importance.importances();
        for (std::size_t i = 0; i < space.size(); ++i) {
            const double expected = study.at("ped_anova").at(space[i].name).get<double>();
            EXPECT_NEAR(found[i], expected, 1e-9 * std::max(1.0, expected))
                << study.at("name") << " " << space[i].name;
        }
    }
}

TEST(PedAnova, DoesNotDependOnTheOrderOfTrials) {
    const Space space = space_of(R"({"x": {"float": [0, 1]}, "k": {"choice": ["a", "b", "c"]}})");
    std::mt19937 random(3);
    std::vector<std::pair<Point, double>> trials;
    for (int i = 0; i < 300; ++i) {
        const double x = std::uniform_real_distribution<>(0, 1)(random);
        const double k = std::uniform_int_distribution<>(0, 2)(random);
        // Rounded, so that many trials tie with the worst of the best.
        trials.emplace_back(Point{k, x}, std::round(x * 10) / 10);
    }
    PedAnova first(space);
    for (const auto& [point, loss] : trials) first.add(point, loss);
    std::shuffle(trials.begin(), trials.end(), random);
    PedAnova second(space);
    for (const auto& [point, loss] : trials) second.add(point, loss);
    EXPECT_EQ(first.importances(), second.importances());
    EXPECT_GT(first.importances()[1], 10 * first.importances()[0]);
}

TEST(PedAnova, SaysNothingOfTooFewOrEqualTrials) {
    const Space space = space_of(R"({"x": {"float": [0, 1]}, "y": {"float": [0, 1]}})");
    PedAnova importance(space);
    const std::vector<double> nothing = {0, 0};
    EXPECT_EQ(importance.importances(), nothing);
    importance.add({0.5, 0.5}, kNaN);
    importance.add({0.5, 0.5}, -kInfinity);
    importance.add({0.25, 0.5}, 1);
    EXPECT_EQ(importance.count(), 1u);
    EXPECT_EQ(importance.importances(), nothing);
    for (int i = 0; i < 50; ++i) importance.add({i / 50.0, 0.5}, 1);
    for (const double value : importance.importances()) EXPECT_NEAR(value, 0, 1e-12);
}

TEST(PedAnova, SinglePointParametersAreNeverImportant) {
    const Space space = space_of(R"({"x": {"float": [2, 2]}, "c": {"const": 1},
                                     "o": {"ordinal": [1, 2, 4]}})");
    PedAnova importance(space);
    for (int i = 0; i < 30; ++i) {
        Point point = space.empty_point();
        point[*space.find("x")] = 2;
        point[*space.find("c")] = 0;
        point[*space.find("o")] = i % 3;
        importance.add(point, i % 3);
    }
    const std::vector<double> found = importance.importances();
    EXPECT_EQ(found[*space.find("x")], 0);
    EXPECT_EQ(found[*space.find("c")], 0);
    EXPECT_GT(found[*space.find("o")], 0);
    EXPECT_EQ(shares_of(found)[*space.find("o")], 1);
    EXPECT_EQ(shares_of({0, 0}), (std::vector<double>{0, 0}));
}

TEST(ScottDensity, IsADistribution) {
    const std::vector<std::vector<std::uint32_t>> all = {
        {0, 0}, {5, 0, 0, 1}, {0, 0, 100000, 0, 0}, {1, 1, 1, 1, 1, 1, 1}};
    for (const auto& counts : all)
        for (const bool is_ordered : {true, false}) {
            double sum = 0;
            for (const double mass : scott_density(counts, is_ordered)) {
                EXPECT_GT(mass, 0);
                sum += mass;
            }
            EXPECT_NEAR(sum, 1, 1e-12);
        }
}

}  // namespace
}  // namespace tune::tuner
