// Reading rules, plateaus and silence, without a store.

#include "tracker/alerts/alert_rule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tracker/alerts/silence_watch.h"

namespace tune::tracker {
namespace {

AlertRule rule(const std::string& json) {
    Result<AlertRule> read = alert_rule_from_json(Json::parse(json));
    EXPECT_TRUE(read) << read.error().text();
    return read ? std::move(*read) : AlertRule{};
}

std::string refusal(const std::string& json) {
    const Result<AlertRule> read = alert_rule_from_json(Json::parse(json));
    if (read) return "";
    EXPECT_EQ(read.error().code, Code::kInvalidParameterValue);
    return read.error().message;
}

TEST(AlertRule, IsWrittenAsItWasRead) {
    for (const std::string json :
         {R"({"kind":"nan"})", R"({"kind":"nan","metric":"loss","experiment_id":"7"})",
          R"({"kind":"plateau","metric":"a","goal":"max","min_delta":0.5,"points":3})",
          R"({"kind":"silence","seconds":60})"}) {
        Json again = alert_rule_to_json(rule(json));
        again.erase("alert_id");
        again.erase("created");
        EXPECT_EQ(again, Json::parse(json));
    }
    EXPECT_EQ(alert_rule_to_json(rule(R"({"kind":"plateau","metric":"a","points":3})"))["goal"],
              "min");
}

TEST(AlertRule, MistakesAreNamed) {
    EXPECT_EQ(refusal("{}"), "'kind' of an alert must be nan, plateau or silence, not null.");
    EXPECT_EQ(refusal(R"({"kind":"x"})"),
              "'kind' of an alert must be nan, plateau or silence, not \"x\".");
    EXPECT_EQ(refusal(R"({"kind":"nan","seconds":5})"),
              "An alert of kind nan has no field 'seconds'.");
    EXPECT_EQ(refusal(R"({"kind":"silence"})"),
              "'seconds' of an alert must be a whole number from 1 to 31622400, not null.");
    for (const std::string bad :
         {"0", "-1", "1.5", "\"60\"", "1e9", "31622401", "true", "[]", "18446744073709551615"})
        EXPECT_NE(refusal(R"({"kind":"silence","seconds":)" + bad + "}"), "") << bad;
    for (const std::string bad :
         {R"("points":3)", R"("metric":"","points":3)", R"("metric":5,"points":3)",
          R"("metric":"a")", R"("metric":"a","points":0)", R"("metric":"a","points":3,"goal":"x")",
          R"("metric":"a","points":3,"min_delta":-1)", R"("metric":"a","points":3,"min_delta":"1")",
          R"("metric":"a","points":3,"experiment_id":"x")",
          R"("metric":"a","points":3,"experiment_id":7)"})
        EXPECT_NE(refusal(R"({"kind":"plateau",)" + bad + "}"), "") << bad;
    EXPECT_NE(refusal("[]"), "");
    EXPECT_NE(refusal("5"), "");
}

/// Points until the metric counts as flat; 0: never.
int flat_after(const AlertRule& one, const std::vector<double>& values) {
    PlateauState state;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto step = static_cast<std::int64_t>(i);
        state.add(one, {.key = "m", .value = values[i], .timestamp_ms = step, .step = step});
        if (state.is_flat(one)) return static_cast<int>(i) + 1;
    }
    return 0;
}

TEST(Plateau, CountsPointsWithoutImprovement) {
    const AlertRule falls =
        rule(R"({"kind":"plateau","metric":"m","goal":"min","min_delta":0.1,"points":3})");
    EXPECT_EQ(flat_after(falls, {5, 4, 3, 2, 1, 0}), 0);
    EXPECT_EQ(flat_after(falls, {1, 1, 1, 1}), 4);
    EXPECT_EQ(flat_after(falls, {1, 0.95, 0.91, 0.9, 0.5}), 4) << "0.1 is not more than 0.1";
    EXPECT_EQ(flat_after(falls, {1, 0.95, 0.91, 0.89, 0.88}), 0) << "small steps add up";
    EXPECT_EQ(flat_after(falls, {1, 2, 3, 0, 5, 5, 5}), 7);
    const AlertRule rises = rule(R"({"kind":"plateau","metric":"m","goal":"max","points":2})");
    EXPECT_EQ(flat_after(rises, {1, 2, 3, 3, 3}), 5);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(flat_after(rises, {nan, nan, nan}), 2);
    EXPECT_EQ(flat_after(rises, {1, nan, nan}), 3);
}

TEST(Plateau, RepeatsAndLatePointsDoNotCountAsNew) {
    const AlertRule one = rule(R"({"kind":"plateau","metric":"m","points":2})");
    PlateauState state;
    const auto add = [&](std::int64_t step, double value) {
        state.add(one, {.key = "m", .value = value, .timestamp_ms = step, .step = step});
    };
    add(5, 1);
    for (int i = 0; i < 10; ++i) add(5, 1);
    for (int i = 0; i < 5; ++i) add(i, 3);
    EXPECT_FALSE(state.is_flat(one));
    add(4, 0.5);
    EXPECT_EQ(state.best(), 0.5) << "a late improvement is one";
    add(6, 1);
    add(7, 1);
    EXPECT_TRUE(state.is_flat(one));
    EXPECT_EQ(state.best_step(), 4);
}

TEST(BadValue, IsNanOrInfiniteAsTheStoreKeepsIt) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::max()})
        EXPECT_TRUE(is_bad_value(bad));
    for (const double good : {0.0, -0.0, 1e300, -1e300, 5e-324}) EXPECT_FALSE(is_bad_value(good));
}

std::vector<std::string> silent(const SilenceWatch& watch, std::int64_t now_ms) {
    std::int64_t next_ms = 1'000'000;
    std::vector<std::string> ids;
    const auto limit = [](ExperimentId id) {
        return id == 9 ? std::optional<std::int64_t>() : std::optional<std::int64_t>(100);
    };
    for (const auto& run : watch.silent(now_ms, limit, next_ms)) ids.push_back(run.run_id);
    std::sort(ids.begin(), ids.end());
    return ids;
}

using Ids = std::vector<std::string>;

TEST(SilenceWatch, FindsRunsThatAreNotWrittenTo) {
    SilenceWatch watch;
    watch.add({"a", 1, "", false, false}, 0);
    watch.add({"b", 1, "", false, false}, 50);
    watch.add({"other", 9, "", false, false}, 0);
    EXPECT_EQ(silent(watch, 99), Ids{});
    EXPECT_EQ(silent(watch, 100), Ids{"a"});
    watch.touch("a", 120);
    EXPECT_EQ(silent(watch, 150), Ids{"b"});
    watch.remove("b");
    EXPECT_EQ(silent(watch, 219), Ids{});
    EXPECT_EQ(silent(watch, 220), Ids{"a"});
    std::int64_t next_ms = 1'000'000;
    EXPECT_TRUE(watch
                    .silent(
                        150, [](ExperimentId) { return std::optional<std::int64_t>(100); }, next_ms)
                    .size() == 1)
        << "the one without a rule before";
    EXPECT_EQ(next_ms, 220);
}

TEST(SilenceWatch, AChildsWritesKeepItsParents) {
    SilenceWatch watch;
    watch.add({"root", 1, "", false, false}, 0);
    watch.add({"mid", 1, "root", false, false}, 0);
    watch.add({"leaf", 1, "mid", false, false}, 0);
    watch.touch("leaf", 90);
    EXPECT_EQ(silent(watch, 150), Ids{});
    watch.touch("mid", 180);
    EXPECT_EQ(silent(watch, 200), Ids{"leaf"});
    watch.add({"x", 1, "y", false, false}, 300);
    watch.add({"y", 1, "x", false, false}, 300);
    watch.touch("x", 310);  // a circle ends
    EXPECT_EQ(silent(watch, 405), (Ids{"leaf", "mid", "root"}));
}

TEST(SilenceWatch, AStudysOwnRunIsNotWatched) {
    SilenceWatch watch;
    EXPECT_TRUE(watch.add({"study", 1, "", false, true}, 0));
    EXPECT_EQ(watch.size(), 0u);
}

TEST(SilenceWatch, IsBounded) {
    SilenceWatch watch;
    for (std::size_t i = 0; i < kWatchedRunsMax; ++i)
        ASSERT_TRUE(watch.add({std::to_string(i), 1, "", false, false}, 0));
    EXPECT_FALSE(watch.add({"more", 1, "", false, false}, 0));
    EXPECT_TRUE(watch.add({"7", 1, "", false, false}, 0)) << "it is there already";
    watch.remove("7");
    EXPECT_TRUE(watch.add({"more", 1, "", false, false}, 0));
}

}  // namespace
}  // namespace tune::tracker
