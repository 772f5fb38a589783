#include <algorithm>
#include <cmath>
#include <random>

#include "tests/tracker/store/reads/search_fixture.h"
#include "tracker/search/filter.h"

namespace tune::tracker::search_runs_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class SearchRunsTest : public RunSearchTest {
protected:
    void create(const std::string& id, std::int64_t start_time_ms = 0,
                ExperimentId experiment = 0) {
        run<Run>(CreateRun{.experiment_id = experiment,
                           .run_id = id,
                           .run_name = "name-" + id,
                           .user_id = "user-" + id,
                           .start_time_ms = start_time_ms});
    }
};

TEST_F(SearchRunsTest, DefaultOrderIsNewestFirstThenId) {
    create("b", 5);
    create("a", 5);
    create("c", 9);
    EXPECT_EQ(ids({}), "c a b");
    EXPECT_EQ(by("start_time"), "a b c");
    EXPECT_EQ(by("start_time DESC"), "c a b");
    EXPECT_EQ(by("run_id DESC"), "c b a");
    EXPECT_EQ(by("run_name DESC"), "c b a");
}

TEST_F(SearchRunsTest, FiltersByAttributes) {
    create("a", 10);
    create("b", 20);
    run<RunInfo>(UpdateRun{.run_id = "b", .status = RunStatus::kFinished, .end_time_ms = 30});
    EXPECT_EQ(where("status = 'FINISHED'"), "b");
    EXPECT_EQ(where("attributes.status != 'FINISHED'"), "a");
    EXPECT_EQ(where("status LIKE 'RUN%'"), "a");
    EXPECT_EQ(where("run_id IN ('a', 'x')"), "a");
    EXPECT_EQ(where("run_id NOT IN ('a', 'x')"), "b");
    EXPECT_EQ(where("run_name = 'name-a'"), "a");
    EXPECT_EQ(where("attr.\"run name\" ILIKE '%-B'"), "b");
    EXPECT_EQ(where("user_id = 'user-b'"), "b");
    EXPECT_EQ(where("artifact_uri LIKE '%/a/%'"), "a");
    EXPECT_EQ(where("start_time > 10"), "b");
    EXPECT_EQ(where("start_time > 9.5 AND created <= 10"), "a");
    EXPECT_EQ(where("end_time > 0"), "b");
    EXPECT_EQ(where("end_time != 31"), "b");
    EXPECT_EQ(by("end_time"), "b a");
    EXPECT_EQ(by("end_time DESC"), "b a");
    EXPECT_EQ(by("status"), "b a");
    EXPECT_EQ(by("status DESC"), "a b");
}

TEST_F(SearchRunsTest, FiltersByParamsAndTags) {
    for (const char* id : {"a", "b", "c"}) create(id);
    run(LogParam{"a", {"p", "Abc"}});
    run(LogParam{"b", {"p", "xyz"}});
    run(SetTag{"a", {"t.x", "1"}});
    run(SetTag{"b", {"t.x", "2"}});
    EXPECT_EQ(where("params.p = 'Abc'"), "a");
    EXPECT_EQ(where("params.p = 'abc'"), "");
    EXPECT_EQ(where("params.p != 'Abc'"), "b");  // not c: a missing value matches nothing
    EXPECT_EQ(where("params.p LIKE 'A%'"), "a");
    EXPECT_EQ(where("params.p LIKE 'a%'"), "");
    EXPECT_EQ(where("params.p ILIKE 'a%'"), "a");
    EXPECT_EQ(where("params.p LIKE '_y_'"), "b");
    EXPECT_EQ(where("params.p IS NULL"), "c");
    EXPECT_EQ(where("params.p IS NOT NULL"), "a b");
    EXPECT_EQ(where("params.never IS NULL"), "a b c");
    EXPECT_EQ(where("tags.t.x = '2' AND params.p = 'xyz'"), "b");
    EXPECT_EQ(where("tags.`t.x` = '2' AND params.p = 'Abc'"), "");
    EXPECT_EQ(where("params.p = 'it''s'"), "");
    EXPECT_EQ(by("params.p"), "a b c");
    EXPECT_EQ(by("params.p DESC"), "b a c");
    EXPECT_EQ(by("tags.\"t.x\" DESC"), "b a c");
    run(DeleteTag{"a", "mlflow.runName"});
    EXPECT_EQ(where("run_name LIKE '%'"), "b c");
}

TEST_F(SearchRunsTest, MetricsCompareTheirLatestValue) {
    for (const char* id : {"a", "b", "c", "d"}) create(id);
    log("a", "m", 9, 1);
    log("a", "m", 1, 2);
    log("b", "m", 2, 1);
    log("c", "m", kNan, 1);
    EXPECT_EQ(where("metrics.m > 1"), "b");
    EXPECT_EQ(where("metrics.m >= 1"), "a b");
    EXPECT_EQ(where("metrics.m = 2"), "b");
    EXPECT_EQ(where("metrics.m != 2"), "a c");  // NaN satisfies only !=
    EXPECT_EQ(where("metrics.m = 0"), "");
    EXPECT_EQ(where("metrics.m <= 0"), "");
    EXPECT_EQ(where("metrics.m != 0"), "a b c");
    EXPECT_EQ(where("metrics.m < 1e999"), "a b");
    EXPECT_EQ(by("metrics.m"), "a b c d");  // NaN after numbers, missing last
    EXPECT_EQ(by("metrics.m DESC"), "b a c d");
    EXPECT_EQ(by("metrics.never DESC"), "a b c d");
}

TEST_F(SearchRunsTest, FiltersByDatasets) {
    for (const char* id : {"a", "b", "c"}) create(id);
    const auto input = [](const char* name, const char* digest, const char* context) {
        return DatasetInput{{name, digest, "", "", {}, {}}, {{"mlflow.data.context", context}}};
    };
    run(LogInputs{.run_id = "a", .datasets = {input("d", "1", "train"), input("e", "2", "eval")}});
    run(LogInputs{.run_id = "b", .datasets = {input("d", "3", "eval")}});
    EXPECT_EQ(where("dataset.name = 'd'"), "a b");
    EXPECT_EQ(where("datasets.name = 'd' AND dataset.digest = '3'"), "b");
    EXPECT_EQ(where("dataset.context = 'train'"), "a");
    EXPECT_EQ(where("dataset.context IN ('eval', 'test')"), "a b");
    EXPECT_EQ(where("dataset.name LIKE 'e%'"), "a");
    EXPECT_EQ(where("dataset.name NOT IN ('d')"), "a");
}

TEST_F(SearchRunsTest, OrNotAndParenthesesJoinClausesOfAllKinds) {
    for (const char* id : {"a", "b", "c"}) create(id);
    log("a", "m", 1);
    log("b", "m", kNan);
    run(LogParam{"a", {"p", "x"}});
    run(LogParam{"c", {"p", "y"}});
    run<RunInfo>(UpdateRun{.run_id = "b", .end_time_ms = 30});
    EXPECT_EQ(where("metrics.m = 1 OR params.p = 'y'"), "a c");
    EXPECT_EQ(where("NOT (metrics.m = 1 OR params.p = 'y')"), "b");
    EXPECT_EQ(where("NOT metrics.m < 5"), "b c");    // NaN is not below, nor is nothing
    EXPECT_EQ(where("NOT end_time > 99"), "a b c");  // nor a time that is not there
    EXPECT_EQ(where("NOT (end_time > 1 AND params.p = 'x')"), "a b c");
    EXPECT_EQ(where("(params.p = 'x' OR params.p = 'y') AND NOT run_id IN ('a')"), "c");
    EXPECT_EQ(where("params.p = 'x' OR params.p = 'y' AND run_id = 'b'"), "a");
    EXPECT_EQ(where("NOT params.p IS NULL AND NOT (NOT run_id = 'c')"), "c");
}

/// SQLite's parser has a stack of its own; what the grammar allows must fit.
TEST_F(SearchRunsTest, TheDeepestFiltersFitSqlite) {
    create("a");
    run(SetTag{"a", {"t", "x"}});
    std::string nots;
    std::string groups;
    std::string mixed;
    std::string closing;
    for (int i = 0; i < search::kFilterDepthMax; ++i) {
        nots += "NOT ";
        groups += i % 2 == 0 ? "tags.t = 'x' AND (" : "tags.t = 'y' OR (";
        if (i < search::kFilterDepthMax / 2) mixed += "tags.t = 'y' OR NOT (";
        closing += ")";
    }
    EXPECT_EQ(where(nots + "tags.t = 'x'"), "a");
    EXPECT_EQ(where(groups + "dataset.context = 'x' OR tags.t = 'x'" + closing), "a");
    closing.resize(closing.size() / 2);
    EXPECT_EQ(where(mixed + "dataset.context = 'x'" + closing), "");
    std::string wide = "tags.t = 'y'";
    for (std::size_t i = 2; i < search::kFilterClausesMax; ++i) wide += " OR dataset.name = 'y'";
    EXPECT_EQ(where(wide + " OR tags.t = 'x'"), "a");
}

TEST_F(SearchRunsTest, ExperimentsAndViewsBoundTheSearch) {
    const auto other = create_experiment("other");
    create("a", 1);
    create("b", 2, other);
    create("c", 3, other);
    run(DeleteRun{"c"});
    EXPECT_EQ(ids({.experiment_ids = {other}}), "b");
    EXPECT_EQ(ids({.experiment_ids = {0, other, 77}}), "b a");
    EXPECT_EQ(ids({.experiment_ids = {other}, .view_type = ViewType::kDeletedOnly}), "c");
    EXPECT_EQ(ids({.experiment_ids = {other}, .view_type = ViewType::kAll}), "c b");
    const auto none = store_->search_runs({.experiment_ids = {}});
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->items.empty());
}

TEST_F(SearchRunsTest, RefusesBadQueries) {
    EXPECT_EQ(ids({.max_results = 0}),
              "INVALID_PARAMETER_VALUE: Invalid value 0 for parameter 'max_results' supplied. It "
              "must be a positive integer");
    EXPECT_EQ(ids({.max_results = 50'001}),
              "INVALID_PARAMETER_VALUE: Invalid value 50001 for parameter 'max_results' supplied. "
              "It must be at most 50000");
    EXPECT_EQ(by("metrics.a b c"),
              "INVALID_PARAMETER_VALUE: Invalid order_by clause 'metrics.a b c'. Could not be "
              "parsed.");
    create("a");
    create("b");
    const auto page = store_->search_runs({.experiment_ids = {0}, .max_results = 1});
    EXPECT_EQ(ids({.filter = "metrics.a > 1", .page_token = page->next_page_token}),
              "INVALID_PARAMETER_VALUE: Invalid page token, it belongs to another search");
}

TEST_F(SearchRunsTest, TextsOfUsersAreNeverSql) {
    create("a");
    const std::string evil = "x'); DROP TABLE runs; --";
    run(SetTag{"a", {"t", evil}});
    EXPECT_EQ(where("tags.t = \"" + evil + "\""), "a");
    EXPECT_EQ(where("tags.`" + evil + "` = 'x'"), "");
    EXPECT_EQ(by("tags.`" + evil + "`"), "a");
    EXPECT_EQ(ids({}), "a");
}

/// Every order, forwards and backwards, page by page, against a sort of our own.
TEST_F(SearchRunsTest, PagesOfAnyOrderJoinToTheWhole) {
    std::mt19937 random(1);
    for (int i = 0; i < 60; ++i) {
        const std::string id = "r" + std::to_string(i);
        create(id, static_cast<std::int64_t>(random() % 3));
        if (random() % 3 != 0)
            log(id, "m", random() % 4 == 0 ? kNan : static_cast<double>(random() % 4) - 1.5);
        if (random() % 3 != 0) run(LogParam{id, {"p", std::string(random() % 3, 'x')}});
        if (random() % 2 == 0)
            run<RunInfo>(
                UpdateRun{.run_id = id, .end_time_ms = static_cast<std::int64_t>(random() % 4)});
    }
    const std::vector<std::vector<std::string>> orders = {
        {},
        {"metrics.m"},
        {"metrics.m DESC"},
        {"params.p DESC", "metrics.m"},
        {"end_time DESC", "params.p", "start_time"},
        {"status", "metrics.m DESC", "run_id DESC"},
    };
    for (const auto& order : orders) {
        const std::string whole = ids({.order_by = order});
        for (const std::int64_t size : {1, 7, 59, 60}) {
            std::string joined;
            SearchRuns query{.experiment_ids = {0}, .order_by = order, .max_results = size};
            do {
                const auto page = store_->search_runs(query);
                ASSERT_TRUE(page) << text_of(page);
                for (const Run& one : page->items)
                    joined += (joined.empty() ? "" : " ") + one.info.run_id;
                query.page_token = page->next_page_token;
            } while (!query.page_token.empty());
            EXPECT_EQ(joined, whole) << size;
        }
    }
}

TEST_F(SearchRunsTest, ARunInsertedMeanwhileMovesNoOther) {
    for (int i = 0; i < 6; ++i) create("r" + std::to_string(i), i);
    const auto first = store_->search_runs({.experiment_ids = {0}, .max_results = 3});
    create("new", 99);
    run(DeleteRun{"r4"});
    const auto second = store_->search_runs(
        {.experiment_ids = {0}, .max_results = 3, .page_token = first->next_page_token});
    ASSERT_TRUE(second);
    ASSERT_EQ(second->items.size(), 3u);
    EXPECT_EQ(second->items[0].info.run_id, "r2");
    EXPECT_EQ(second->items[2].info.run_id, "r0");
}

}  // namespace
}  // namespace tune::tracker::search_runs_test
