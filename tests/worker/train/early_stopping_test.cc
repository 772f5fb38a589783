#include "worker/train/early_stopping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/system/file.h"

namespace tune::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Json load(const std::string& name) {
    const auto text = read_file(TUNE_SOURCE_DIR "/tests/worker/train/vectors/" + name);
    return parse_json(text.value()).value();
}

double number(const Json& json) {
    if (json == "NaN") return kNan;
    if (json == "Infinity") return kInfinity;
    if (json == "-Infinity") return -kInfinity;
    return json.get<double>();
}

EarlyStoppingRule rule_from(const Json& json) {
    EarlyStoppingRule rule;
    rule.mode = json["mode"] == "min" ? Mode::kMin : Mode::kMax;
    rule.patience = json["patience"].get<std::int64_t>();
    rule.min_delta = json["min_delta"].get<double>();
    if (json.contains("stopping_threshold"))
        rule.stopping_threshold = json["stopping_threshold"].get<double>();
    if (json.contains("divergence_threshold"))
        rule.divergence_threshold = json["divergence_threshold"].get<double>();
    return rule;
}

/// vectors/early_stopping.json holds what lightning 2.6.6 decided.
TEST(EarlyStopping, DecidesAsLightning) {
    const Json cases = load("early_stopping.json");
    ASSERT_GT(cases.size(), 50u);
    for (const Json& test : cases) {
        EarlyStopping stopping(rule_from(test["rule"]));
        for (const Json& check : test["checks"]) {
            const auto decision = stopping.check(number(check[0]));
            EXPECT_EQ(stop_reason_name(decision.reason), check[1].get<std::string>()) << test;
            EXPECT_EQ(stopping.best_score(), number(check[2])) << test;
            EXPECT_EQ(stopping.wait_count(), check[3].get<std::int64_t>()) << test;
        }
    }
}

/// vectors/early_stopping_keras.json holds what keras 3.15.1 decided.
TEST(EarlyStopping, DecidesAsKeras) {
    const Json cases = load("early_stopping_keras.json");
    ASSERT_GT(cases.size(), 80u);
    for (const Json& test : cases) {
        const Json& given = test["rule"];
        EarlyStoppingRule rule{.mode = given["mode"] == "min" ? Mode::kMin : Mode::kMax,
                               .min_delta = given.value("min_delta", 0.0),
                               .patience = given["patience"].get<std::int64_t>(),
                               .compat = Compat::kKeras,
                               .start_from_epoch = given.value("start_from_epoch", 0)};
        if (given.contains("baseline")) rule.baseline = given["baseline"].get<double>();
        EarlyStopping stopping(rule);
        std::int64_t epoch = 0;
        for (const Json& check : test["checks"]) {
            // A stop and a start in between change nothing.
            EarlyStopping again(rule);
            again.load_state(stopping.state());
            stopping = again;
            const auto decision = stopping.check(number(check[0]), epoch++);
            EXPECT_EQ(decision.reason == StopReason::kPatienceExhausted, check[1].get<bool>())
                << test;
            EXPECT_EQ(stopping.state().has_best, !check[2].is_null()) << test;
            if (!check[2].is_null() && !std::isnan(number(check[2]))) {
                EXPECT_EQ(stopping.best_score(), number(check[2])) << test;
            }
            EXPECT_EQ(stopping.wait_count(), check[3].get<std::int64_t>()) << test;
        }
    }
}

TEST(EarlyStopping, ABaselineMustBeBeatenForTheWaitingToBeginAnew) {
    EarlyStopping stopping({.patience = 2, .baseline = 0.5});
    EXPECT_TRUE(stopping.check(1.0).improved);
    EXPECT_EQ(stopping.wait_count(), 1);
    EXPECT_EQ(stopping.check(1.5).reason, StopReason::kPatienceExhausted);
    EarlyStopping other({.patience = 2, .baseline = 0.5});
    EXPECT_TRUE(other.check(0.25).improved);
    EXPECT_EQ(other.wait_count(), 0);
}

TEST(EarlyStopping, EarlyEpochsMayBeLeftOut) {
    EarlyStopping stopping({.patience = 1, .start_from_epoch = 2});
    EXPECT_EQ(stopping.check(kNan, 0).reason, StopReason::kNotStopped);
    EXPECT_EQ(stopping.check(0.0, 1).reason, StopReason::kNotStopped);
    EXPECT_TRUE(stopping.check(9.0, 2).improved);
    EXPECT_EQ(stopping.check(9.0, 3).reason, StopReason::kPatienceExhausted);
}

// The rows of the rule table, one test each.

TEST(EarlyStopping, ChangeOfExactlyMinDeltaIsNoImprovement) {
    EarlyStopping stopping({.min_delta = 0.25, .patience = 2});
    EXPECT_TRUE(stopping.check(1.0).improved);
    EXPECT_FALSE(stopping.check(0.75).improved);
    EXPECT_TRUE(stopping.check(0.625).improved);
}

TEST(EarlyStopping, PatienceCountsChecksWithoutImprovementInARow) {
    EarlyStopping stopping({.patience = 2});
    EXPECT_EQ(stopping.check(1.0).reason, StopReason::kNotStopped);
    EXPECT_EQ(stopping.check(1.0).reason, StopReason::kNotStopped);
    EXPECT_EQ(stopping.check(0.5).reason, StopReason::kNotStopped);
    EXPECT_EQ(stopping.check(0.5).reason, StopReason::kNotStopped);
    EXPECT_EQ(stopping.check(0.5).reason, StopReason::kPatienceExhausted);
}

TEST(EarlyStopping, NonFiniteIsTestedFirst) {
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
        // -infinity would be below the stopping threshold.
        EarlyStopping stopping({.stopping_threshold = 1.0, .divergence_threshold = 2.0});
        EXPECT_EQ(stopping.check(bad).reason, StopReason::kNonFinite);
        EXPECT_EQ(stopping.wait_count(), 0);
    }
}

TEST(EarlyStopping, ThresholdsAreStrictAndComeBeforePatience) {
    EarlyStopping at({.patience = 1, .stopping_threshold = 0.5});
    EXPECT_TRUE(at.check(0.5).improved) << "reaching the threshold is not enough";
    EXPECT_EQ(at.check(0.25).reason, StopReason::kStoppingThreshold);
    EXPECT_EQ(at.best_score(), 0.5) << "the value that stops does not become the best score";

    EarlyStopping max({.mode = Mode::kMax, .patience = 1, .divergence_threshold = 0.5});
    EXPECT_EQ(max.check(0.75).reason, StopReason::kNotStopped);
    EXPECT_EQ(max.check(0.25).reason, StopReason::kDivergenceThreshold);
}

TEST(EarlyStopping, ContinuesFromItsState) {
    const EarlyStoppingRule rule{.patience = 3};
    EarlyStopping whole(rule);
    EarlyStopping first(rule);
    const double values[] = {1.0, 0.5, 0.75, 0.75};
    for (const double value : values) {
        EXPECT_EQ(whole.check(value).reason, first.check(value).reason);
        EarlyStopping second(rule);
        second.load_state(first.state());
        first = second;
    }
    EXPECT_EQ(whole.check(0.75).reason, StopReason::kPatienceExhausted);
    EXPECT_EQ(first.check(0.75).reason, StopReason::kPatienceExhausted);
}

TEST(EarlyStopping, ReadsMetricAndMode) {
    EXPECT_EQ(parse_early_stopping("val_loss:min")->mode, Mode::kMin);
    EXPECT_EQ(parse_early_stopping("val_f1:max")->mode, Mode::kMax);
    EXPECT_EQ(parse_early_stopping("val_f1:max")->metric, "val_f1");
    EXPECT_EQ(parse_early_stopping("val_accuracy")->mode, Mode::kMax);
    EXPECT_EQ(parse_early_stopping("val_mae:auto")->mode, Mode::kMin);
    EXPECT_EQ(parse_early_stopping("val_loss")->patience, 3);
    for (const char* bad : {"", ":min", "val_loss:up", "val_f1", "val_f1:auto"})
        EXPECT_FALSE(parse_early_stopping(bad)) << bad;
    EXPECT_EQ(parse_early_stopping("val_f1").error().message,
              "early_stopping: whether 'val_f1' should fall or rise does not follow from its "
              "name; write 'val_f1:min' or 'val_f1:max'");
}

}  // namespace
}  // namespace tune::train
