#include "tracker/api/ui/ui.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/tracker/api/test_api.h"

namespace tune::tracker {
namespace {

class Ui : public testing::Test {
protected:
    Answer ui(const std::string& path) { return api.call(Method::kGet, "/api/ui/" + path); }

    std::string create_experiment(const std::string& name) {
        return api.post("experiments/create", {{"name", name}})
            .json["experiment_id"]
            .get<std::string>();
    }

    /// Logs `values` under consecutive steps in batches.
    void log_metric(const std::string& run_id, const std::string& key,
                    const std::vector<double>& values) {
        for (std::size_t first = 0; first < values.size(); first += 1000) {
            LogBatch batch{.run_id = run_id};
            for (std::size_t i = first; i < std::min(first + 1000, values.size()); ++i)
                batch.metrics.push_back({.key = key,
                                         .value = values[i],
                                         .timestamp_ms = static_cast<std::int64_t>(1000 + i),
                                         .step = static_cast<std::int64_t>(i)});
            ASSERT_TRUE(api.store->execute(std::move(batch)).has_value());
        }
    }

    TestApi api;
};

TEST_F(Ui, ExperimentsShowTheirRunsLatestActivityFirst) {
    const std::string quiet = create_experiment("quiet");
    const std::string busy = create_experiment("busy");
    const std::string ended = api.create_run(busy);
    api.create_run(busy);
    api.post("runs/update", {{"run_id", ended}, {"status", "FINISHED"}, {"end_time", 9}});
    log_metric(ended, "loss", {1, 2});
    const Json rows = ui("experiments").json["experiments"];
    ASSERT_EQ(rows.size(), 3u);
    const auto row = std::find_if(rows.begin(), rows.end(),
                                  [&](const Json& r) { return r["experiment_id"] == busy; });
    ASSERT_NE(row, rows.end());
    EXPECT_EQ((*row)["name"], "busy");
    EXPECT_EQ((*row)["runs"], 2);
    EXPECT_EQ((*row)["running"], 1);
    for (std::size_t i = 1; i < rows.size(); ++i)
        EXPECT_GE(rows[i - 1]["last_activity_ms"], rows[i]["last_activity_ms"]);
}

TEST_F(Ui, DeletedExperimentsAreNotListed) {
    const std::string id = create_experiment("gone");
    api.post("experiments/delete", {{"experiment_id", id}});
    EXPECT_EQ(ui("experiments").json["experiments"].size(), 1u);
}

TEST_F(Ui, RunsComeAsColumns) {
    const std::string id = create_experiment("digits");
    const std::string first = api.create_run(id);
    const std::string second = api.create_run(id);
    api.post("runs/log-parameter", {{"run_id", first}, {"key", "lr"}, {"value", "0.1"}});
    api.post("runs/log-parameter", {{"run_id", second}, {"key", "lr"}, {"value", "0.2"}});
    log_metric(first, "loss", {3, 2, 1});
    const Json json = ui("experiments/" + id + "/runs").json;
    EXPECT_EQ(json["experiment"]["name"], "digits");
    EXPECT_EQ(json["count"], 2);
    EXPECT_EQ(json["truncated"], false);
    const auto& ids = json["attributes"]["run_id"];
    const std::size_t row = ids[0] == first ? 0 : 1;
    EXPECT_EQ(json["params"]["lr"][row], "0.1");
    EXPECT_EQ(json["params"]["lr"][1 - row], "0.2");
    EXPECT_EQ(json["metrics"]["loss"][row], 1.0);
    EXPECT_EQ(json["metrics"]["loss"][1 - row], nullptr);
}

TEST_F(Ui, ManyRunsComeWholeAndOnce) {
    const std::string id = create_experiment("many");
    const ExperimentId number = parse_experiment_id(id).value();
    constexpr int kRuns = 6'000;
    for (int done = 0; done < kRuns; done += 1'000) {
        Atomic batch;
        for (int i = 0; i < 1'000; ++i)
            batch.commands.push_back(CreateRun{
                .experiment_id = number, .run_name = "r", .start_time_ms = 1000 + (done + i) / 7});
        ASSERT_TRUE(api.store->execute(std::move(batch)).has_value());
    }
    const Json json = ui("experiments/" + id + "/runs").json;
    std::set<std::string> ids;
    for (const Json& run_id : json["attributes"]["run_id"]) ids.insert(run_id.get<std::string>());
    EXPECT_EQ(json["count"], kRuns);
    EXPECT_EQ(ids.size(), static_cast<std::size_t>(kRuns));
}

TEST_F(Ui, TheViewChoosesDeletedRuns) {
    const std::string kept = api.create_run();
    const std::string deleted = api.create_run();
    api.post("runs/delete", {{"run_id", deleted}});
    const auto ids = [&](const std::string& query) {
        return ui("experiments/0/runs" + query).json["attributes"]["run_id"];
    };
    EXPECT_EQ(ids(""), Json::array({kept}));
    EXPECT_EQ(ids("?view=deleted"), Json::array({deleted}));
    EXPECT_EQ(ids("?view=all").size(), 2u);
    EXPECT_EQ(ui("experiments/0/runs?view=all").json["attributes"]["deleted"].size(), 1u);
}

TEST_F(Ui, AnUnchangedTableIsNotSentAgain) {
    api.create_run();
    const Answer first = ui("experiments/0/runs");
    ASSERT_FALSE(first.response.etag.empty());
    const auto again = [&] {
        auto request = std::make_shared<Request>();
        request->path = request->raw_path = "/api/ui/experiments/0/runs";
        request->headers = {{"If-None-Match", first.response.etag}};
        return api.send(std::move(request));
    };
    EXPECT_EQ(again().response.etag, first.response.etag);
    api.create_run();
    EXPECT_NE(again().response.etag, first.response.etag);
    EXPECT_EQ(again().json["count"], 2);
}

TEST_F(Ui, BadRequestsForRunsAreRefused) {
    EXPECT_EQ(ui("experiments/77/runs").status, 404);
    EXPECT_EQ(ui("experiments/77/runs").code(), "RESOURCE_DOES_NOT_EXIST");
    EXPECT_EQ(ui("experiments/abc/runs").status, 400);
    EXPECT_EQ(ui("experiments/0/runs?view=best").status, 400);
}

TEST_F(Ui, AShortSeriesIsSentPointByPoint) {
    const std::string run = api.create_run();
    log_metric(run, "loss", {3, 2.5, std::nan("")});
    const Json series =
        ui("series?run_ids=" + run + "&metric=loss").json["metrics"][0]["series"][0];
    EXPECT_EQ(series["run_id"], run);
    EXPECT_EQ(series["count"], 3);
    EXPECT_EQ(series["nan_count"], 1);
    EXPECT_EQ(series["step"], Json({0, 1, 2}));
    EXPECT_EQ(series["time"], Json({1000, 1001, 1002}));
    EXPECT_EQ(series["last"], Json({3.0, 2.5, nullptr}));
    EXPECT_FALSE(series.contains("min"));
}

TEST_F(Ui, ALongSeriesKeepsItsExtrema) {
    const std::string run = api.create_run();
    std::vector<double> values(20'000, 1.0);
    values[7'777] = -42;
    values[13'131] = 99;
    log_metric(run, "loss", values);
    const Json series =
        ui("series?run_ids=" + run + "&metric=loss&buckets=100").json["metrics"][0]["series"][0];
    EXPECT_EQ(series["count"], 20'000);
    const std::size_t parts = series["step"].size();
    EXPECT_LE(parts, 100u);
    EXPECT_GE(parts, 50u);
    for (const char* name : {"time", "last", "min", "max", "counts"})
        EXPECT_EQ(series[name].size(), parts) << name;
    EXPECT_EQ(*std::min_element(series["min"].begin(), series["min"].end()), -42.0);
    EXPECT_EQ(*std::max_element(series["max"].begin(), series["max"].end()), 99.0);
    EXPECT_EQ(series["step"].back(), 19'999);
    std::int64_t points = 0;
    for (const Json& count : series["counts"]) points += count.get<std::int64_t>();
    EXPECT_EQ(points, 20'000);
}

TEST_F(Ui, SeveralRunsAndMetricsComeInOneAnswer) {
    const std::string a = api.create_run();
    const std::string b = api.create_run();
    log_metric(a, "loss", {1});
    log_metric(b, "loss", {2});
    log_metric(b, "acc/val x", {3});
    const Json metrics =
        ui("series?run_ids=" + a + "," + b + "&metric=loss&metric=acc/val+x&metric=none")
            .json["metrics"];
    ASSERT_EQ(metrics.size(), 3u);
    EXPECT_EQ(metrics[0]["series"].size(), 2u);
    EXPECT_EQ(metrics[1]["metric"], "acc/val x");
    EXPECT_EQ(metrics[1]["series"].size(), 1u);
    EXPECT_EQ(metrics[2]["series"].size(), 0u);
}

TEST_F(Ui, BadRequestsForSeriesAreRefused) {
    const std::string run = api.create_run();
    std::string many = run;
    for (std::size_t i = 0; i < kBulkRunsMax; ++i) many += "," + run;
    const std::string one = "run_ids=" + run;
    const std::vector<std::string> queries = {
        "metric=loss",
        one,
        "run_ids=,,&metric=loss",
        "run_ids=" + many + "&metric=loss",
        one + "&metric=loss&buckets=0",
        one + "&metric=loss&buckets=99999",
        one + "&metric=loss&buckets=x",
        one + "&metric=loss&buckets=5x",
    };
    for (const std::string& query : queries) {
        const Answer answer = ui("series?" + query);
        EXPECT_EQ(answer.status, 400) << query;
        EXPECT_EQ(answer.code(), "INVALID_PARAMETER_VALUE") << query;
        EXPECT_FALSE(answer.message().empty()) << query;
    }
}

TEST_F(Ui, AStoppingServerReportsIt) {
    api.store->stop();
    EXPECT_EQ(ui("experiments").status, 429);
}

}  // namespace
}  // namespace tune::tracker
