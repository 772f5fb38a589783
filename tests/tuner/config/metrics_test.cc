// Objectives and constraints in study files: reading, writing, and every way to get them wrong.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"

namespace tune::tuner::metrics_test {
namespace {

constexpr const char* kSpace = "\nspace: {x: {float: [0, 1]}}\n";

Result<StudyConfig> read(const std::string& text) {
    StudySource source;
    source.text = text + kSpace;
    source.file = "s.yaml";
    return read_study(source);
}

std::string error_of(const std::string& text) {
    const Result<StudyConfig> config = read(text);
    return config ? "accepted" : config.error().message;
}

std::string check_error(const std::string& text) {
    const Result<StudyConfig> config = read(text);
    if (!config) return "refused by the reader: " + config.error().message;
    const Result<void> checked = check_study(*config, false);
    return checked ? "accepted" : checked.error().message;
}

TEST(Metrics, SeveralObjectivesAndConstraintsAreReadAndWrittenBack) {
    const Result<StudyConfig> config = read(
        "metric:\n  - {name: loss, goal: min, take: last}\n  - accuracy:max\n"
        "constraints: [{name: latency_ms, max: 20}, {name: recall, min: 0.5, max: 1, take: "
        "mean_last_3}]\n"
        "sampler: random");
    ASSERT_TRUE(config.has_value()) << config.error().text();
    EXPECT_EQ(config->metric, (MetricConfig{"loss", Goal::kMinimize, "", Aggregation::kLast, 1}));
    ASSERT_EQ(config->more_metrics.size(), 1u);
    EXPECT_EQ(config->more_metrics[0].name, "accuracy");
    EXPECT_EQ(config->more_metrics[0].goal, Goal::kMaximize);
    ASSERT_EQ(config->constraints.size(), 2u);
    EXPECT_EQ(config->constraints[0].max, 20.0);
    EXPECT_EQ(config->constraints[0].min, std::nullopt);
    EXPECT_EQ(config->constraints[0].metric.aggregation, Aggregation::kLast);
    EXPECT_EQ(config->constraints[1].metric.take_count, 3);
    EXPECT_EQ(violation_of(config->constraints, {20, 0.5}), 0);
    EXPECT_EQ(violation_of(config->constraints, {23, 0.25}), 3.25);
    const Result<StudyConfig> again = study_config_from_json(to_json(*config));
    ASSERT_TRUE(again.has_value()) << again.error().text();
    EXPECT_EQ(*again, *config);
    EXPECT_TRUE(check_study(*config, false).has_value());
}

TEST(Metrics, AListOfOneIsTheOneMetric) {
    const Result<StudyConfig> config = read("metric: [loss:max]");
    ASSERT_TRUE(config.has_value());
    EXPECT_TRUE(config->more_metrics.empty());
    EXPECT_TRUE(to_json(*config)["metric"].is_object()) << "as it always was written";
    EXPECT_FALSE(to_json(*config).contains("constraints"));
}

TEST(Metrics, BadOnesAreRefusedWithTheirPlace) {
    EXPECT_EQ(error_of("metric: []"),
              "line 1, column 9: metric: expected 1 to 8 objectives, found a list of 0");
    EXPECT_EQ(error_of("metric: [a, b, c, d, e, f, g, h, i]"),
              "line 1, column 9: metric: expected 1 to 8 objectives, found a list of 9");
    EXPECT_EQ(error_of("metric: [a, {goal: min}]"),
              "line 1, column 13: metric[1]: 'name' is missing: each objective needs one");
    EXPECT_EQ(error_of("metric: [a, {name: b, goal: up}]"),
              "line 1, column 29: metric[1].goal: expected min or max, found the text 'up'");
    EXPECT_EQ(error_of("metric: [a, a:max]"),
              "line 1, column 13: metric[1]: the metric 'a' is an objective twice");
    EXPECT_EQ(error_of("metric: [a, 3]"),
              "line 1, column 13: metric[1]: expected a map with the keys name, goal, step, take, "
              "found the number 3");
    EXPECT_EQ(error_of("constraints: {name: a, max: 1}"),
              "line 1, column 14: constraints: expected a list such as [{name: latency_ms, max: "
              "20}], found the map {\"max\":1,\"name\":\"a\"}");
    EXPECT_EQ(error_of("constraints: [{max: 1}]"),
              "line 1, column 15: constraints[0]: 'name' is missing: the metric that is bounded");
    EXPECT_EQ(error_of("constraints: [{name: a}]"),
              "line 1, column 15: constraints[0]: a constraint needs a bound: min, max or both, "
              "such as {name: a, max: 20}");
    EXPECT_EQ(error_of("constraints: [{name: a, min: 2, max: 1}]"),
              "line 1, column 15: constraints[0]: min is above max: no trial could be feasible");
    EXPECT_EQ(
        error_of("constraints: [{name: a, max: 1}, {name: a, min: 0}]"),
        "line 1, column 34: constraints[1]: the metric 'a' is bounded twice; give min and max "
        "in one constraint");
    EXPECT_EQ(error_of("constraints: [{name: a, max: 1, take: best}]"),
              "line 1, column 39: constraints[0].take: expected last or mean_last_N (N from 1 to "
              "1000), found the text 'best'");
    EXPECT_NE(error_of("constraints: [{name: a, max: .inf}]"), "accepted");
    EXPECT_NE(error_of("constraints: [{name: a, max: .nan}]"), "accepted");
    EXPECT_NE(error_of("constraints: [{name: 'a\t', max: 1}]"), "accepted");
    EXPECT_EQ(error_of("constraints: [{name: a, max: 1, goal: min}]"),
              "line 1, column 33: constraints[0]: unknown key 'goal'; known: name, min, max, take");
}

TEST(Metrics, SeveralObjectivesCannotBePruned) {
    EXPECT_EQ(check_error("metric: [a, b]\nsampler: random\npruner: median"),
              "pruner: a pruner compares trials by one value, and this study has 2 objectives; "
              "leave the pruner out (pruner: none), or make one objective a constraint");
    EXPECT_EQ(check_error("metric: [a, b]\nsampler: random\npruner: none"), "accepted");
    EXPECT_EQ(check_error("metric: a\nconstraints: [{name: b, max: 1}]\nsampler: random\n"
                          "pruner: median"),
              "accepted");
}

TEST(Metrics, TheFlagNamesSeveral) {
    StudyConfig config;
    config.metric.step = "epoch";
    ASSERT_TRUE(parse_metrics_flag("loss,accuracy:max", config).has_value());
    EXPECT_EQ(config.metric,
              (MetricConfig{"loss", Goal::kMinimize, "epoch", Aggregation::kBest, 1}));
    ASSERT_EQ(config.more_metrics.size(), 1u);
    EXPECT_EQ(config.more_metrics[0].goal, Goal::kMaximize);
    ASSERT_TRUE(parse_metrics_flag("loss", config).has_value());
    EXPECT_TRUE(config.more_metrics.empty());
    EXPECT_FALSE(parse_metrics_flag("a,a", config).has_value());
    EXPECT_FALSE(parse_metrics_flag("a,", config).has_value());
    EXPECT_FALSE(parse_metrics_flag("a,b,c,d,e,f,g,h,i", config).has_value());
}

}  // namespace
}  // namespace tune::tuner::metrics_test
