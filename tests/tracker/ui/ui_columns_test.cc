#include "tracker/api/ui/ui_columns.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json.h"

namespace tune::tracker {
namespace {

Json columns_of(const std::vector<Run>& runs) {
    RunColumns columns;
    for (const Run& run : runs) columns.add(run);
    return parse_json("{" + columns.to_json_fields() + "}").value();
}

Run make_run(std::string id) {
    Run run;
    run.info.run_id = std::move(id);
    run.info.run_name = "name";
    run.info.start_time_ms = 5;
    return run;
}

TEST(RunColumns, AnEmptyExperimentHasEmptyColumns) {
    const Json json = columns_of({});
    EXPECT_EQ(json["count"], 0);
    EXPECT_EQ(json["attributes"]["run_id"], Json::array());
    EXPECT_EQ(json["params"], Json::object());
}

TEST(RunColumns, AttributesStandSideBySide) {
    tracker::Run first = make_run("a");
    first.info.status = RunStatus::kFinished;
    first.info.end_time_ms = 9;
    tracker::Run second = make_run("b");
    second.info.lifecycle_stage = LifecycleStage::kDeleted;
    const Json attributes = columns_of({first, second})["attributes"];
    EXPECT_EQ(attributes["run_id"], Json({"a", "b"}));
    EXPECT_EQ(attributes["status"], Json({3, 1}));
    EXPECT_EQ(attributes["start_ms"], Json({5, 5}));
    EXPECT_EQ(attributes["end_ms"], Json({9, nullptr}));
    EXPECT_EQ(attributes["deleted"], Json::array({1}));
}

TEST(RunColumns, AKeyThatHalfOfTheRunsHaveIsDenseOneThatFewHaveIsSparse) {
    std::vector<tracker::Run> runs;
    for (int i = 0; i < 4; ++i) runs.push_back(make_run(std::to_string(i)));
    runs[1].params = {{"half", "x"}, {"one", "y"}};
    runs[3].params = {{"half", "z"}};
    const Json params = columns_of(runs)["params"];
    EXPECT_EQ(params["half"], Json({nullptr, "x", nullptr, "z"}));
    EXPECT_EQ(params["one"], Json({{"rows", {1}}, {"values", {"y"}}}));
}

TEST(RunColumns, MetricsKeepEveryDigitAndNaN) {
    tracker::Run run = make_run("a");
    run.metrics = {{.key = "huge", .value = std::numeric_limits<double>::max()},
                   {.key = "nan", .value = std::nan("")},
                   {.key = "third", .value = 1.0 / 3.0}};
    const Json metrics = columns_of({run})["metrics"];
    EXPECT_EQ(metrics["third"][0].get<double>(), 1.0 / 3.0);
    EXPECT_EQ(metrics["huge"][0].get<double>(), std::numeric_limits<double>::max());
    EXPECT_EQ(metrics["nan"][0], "NaN");
}

TEST(RunColumns, HostileTextStaysText) {
    tracker::Run run = make_run("a");
    run.info.run_name = "</script><img src=x onerror=alert(1)>\"\\\n\x01";
    run.params = {{"k\"ey", "\xff\xfe broken"}};
    const Json json = columns_of({run});
    EXPECT_EQ(json["attributes"]["name"][0], run.info.run_name);
    EXPECT_EQ(json["params"]["k\"ey"][0], "\xef\xbf\xbd\xef\xbf\xbd broken");
}

TEST(RunColumns, LongTagsAreCutBetweenCharacters) {
    tracker::Run run = make_run("a");
    std::string text(kUiTagBytesMax - 1, 'x');
    run.tags = {{"long", text + "\xe2\x82\xac tail"}, {"mlflow.log-model.history", "[]"}};
    const Json tags = columns_of({run})["tags"];
    EXPECT_EQ(tags["long"][0], text);
    EXPECT_FALSE(tags.contains("mlflow.log-model.history"));
}

TEST(JsonNumber, IsTheShortestThatReadsBack) {
    const auto text = [](double value) {
        std::string out;
        append_json_number(out, value, "null");
        return out;
    };
    EXPECT_EQ(text(0.1), "0.1");
    EXPECT_EQ(text(1e-300), "1e-300");
    EXPECT_EQ(text(-0.0), "-0");
    EXPECT_EQ(text(std::nan("")), "null");
    EXPECT_EQ(text(std::numeric_limits<double>::infinity()), "null");
}

}  // namespace
}  // namespace tune::tracker
