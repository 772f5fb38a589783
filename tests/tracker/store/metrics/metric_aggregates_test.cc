// metrics.x.min, .max, .last and .best in searches, and the columns they read.

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/tracker/store/reads/search_fixture.h"
#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/store/metrics/metric_extrema.h"

namespace tune::tracker::metric_aggregates_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class MetricAggregatesTest : public RunSearchTest {
protected:
    void set_goal(const std::string& metric, const std::string& goal, ExperimentId id = 0) {
        run(SetExperimentTag{id, {"tune.metric_goal." + metric, goal}});
    }

    /// Every run's history must have the extrema that filters find.
    void expect_extrema(const std::string& run_id, const std::string& key) {
        const auto page = store_->metric_history(run_id, key);
        ASSERT_TRUE(page);
        double least = kNan;
        double greatest = kNan;
        for (const Metric& metric : page->items) {
            least = std::fmin(least, metric.value);
            greatest = std::fmax(greatest, metric.value);
        }
        const auto found = [&](const char* aggregate, double value) {
            char number[40];
            std::snprintf(number, sizeof number, "%.17g", value);
            const std::string name = "metrics." + key + "." + aggregate;
            const std::string filter =
                std::isnan(value) ? "NOT " + name + " < 1e300" : name + " = " + number;
            return where(filter + " AND run_id = '" + run_id + "'");
        };
        EXPECT_EQ(found("min", least), run_id);
        EXPECT_EQ(found("max", greatest), run_id);
    }
};

TEST_F(MetricAggregatesTest, FilterAndOrderByTheWholeHistory) {
    for (const char* id : {"a", "b", "c", "d"}) create_run(0, id);
    for (const double value : {5.0, 1.0, 3.0}) log("a", "m", value, static_cast<int>(value));
    for (const double value : {4.0, kNan, 2.0}) log("b", "m", value, 1);
    log("c", "m", kNan);
    EXPECT_EQ(where("metrics.m.min < 1.5"), "a");
    EXPECT_EQ(where("metrics.m.max = 4"), "b");
    EXPECT_EQ(where("metrics.m.last = 5"), "a");
    EXPECT_EQ(where("metrics.m.min != 1"), "b c");  // only NaN: satisfies != alone, as the latest
    EXPECT_EQ(where("metrics.m.max > 0 OR metrics.m.min > 0"), "a b");
    EXPECT_EQ(by("metrics.m.min"), "a b c d");
    EXPECT_EQ(by("metrics.m.max DESC"), "a b c d");
    EXPECT_EQ(by("metrics.m.max"), "b a c d");
    EXPECT_EQ(by("metrics.`m`.max"), "b a c d");
    EXPECT_EQ(ids({.order_by = {"metrics.m.max", "metrics.m.min"}}), "b a c d");
}

TEST_F(MetricAggregatesTest, WhatWasLoggedUnderTheWholeNameWins) {
    const auto other = create_experiment("other");
    create_run(0, "a");
    create_run(0, "b");
    log("a", "m", 7, 1);
    log("a", "m", 1, 0);
    EXPECT_EQ(where("metrics.m.min = 1"), "a");
    EXPECT_EQ(where("metrics.`m.min` = 1"), "");  // in quotes: that name and no other
    EXPECT_EQ(where("metrics.\"m.min\" = 1"), "");
    EXPECT_EQ(where("metrics.max = 1"), "");  // a name, not an ending
    run(LogParam{"a", {"m.min", "a param of this name is no metric"}});
    EXPECT_EQ(where("metrics.m.min = 1"), "a");
    create_run(other, "z");
    log("z", "m.min", 5);  // in another experiment
    EXPECT_EQ(where("metrics.m.min = 1"), "a");
    log("b", "m.min", 3);
    EXPECT_EQ(where("metrics.m.min = 1"), "");
    EXPECT_EQ(where("metrics.m.min = 3"), "b");
    EXPECT_EQ(where("metrics.`m.min` = 3"), "b");
    EXPECT_EQ(where("metrics.`m`.min = 1"), "a");  // the name in quotes, the ending not
}

TEST_F(MetricAggregatesTest, BestIsByTheGoalOfTheExperiment) {
    create_run(0, "a");
    create_run(0, "b");
    for (const double value : {1.0, 9.0}) log("a", "acc", value, static_cast<int>(value));
    log("b", "acc", 5);
    EXPECT_EQ(where("metrics.acc.best > 8"),
              "INVALID_PARAMETER_VALUE: metrics.acc.best: none of the experiments says whether "
              "less or more of 'acc' is better. Set the tag 'tune.metric_goal.acc' of the "
              "experiment to 'min' or 'max' (a study sets it for its objective).");
    set_goal("acc", "max");
    EXPECT_EQ(where("metrics.acc.best > 8"), "a");
    EXPECT_EQ(by("metrics.acc.best DESC"), "a b");
    set_goal("acc", "min");
    EXPECT_EQ(where("metrics.acc.best > 3"), "b");
    set_goal("acc", "up");
    EXPECT_EQ(where("metrics.acc.best > 3"),
              "INVALID_PARAMETER_VALUE: The tag 'tune.metric_goal.acc' of experiment 0 must be "
              "'min' or 'max' for metrics.acc.best; it is 'up'.");
    const auto other = create_experiment("other");
    set_goal("acc", "max");
    EXPECT_EQ(ids({.experiment_ids = {0, other}, .filter = "metrics.acc.best > 8"}), "a");
    set_goal("acc", "min", other);
    EXPECT_EQ(ids({.experiment_ids = {0, other}, .filter = "metrics.acc.best > 8"}),
              "INVALID_PARAMETER_VALUE: Experiments 0 and " + std::to_string(other) +
                  " have opposite goals for metrics.acc.best (tag 'tune.metric_goal.acc'); search "
                  "them one by one, or by .min or .max.");
}

/// Any order of arrival, repeats, tails, folded and split blocks, savepoints that are undone.
TEST_F(MetricAggregatesTest, ExtremaAreExactWhateverIsLogged) {
    std::mt19937 random(7);
    for (int i = 0; i < 6; ++i) {
        const std::string id = create_run();
        const int count = i == 0 ? 1 : static_cast<int>(random() % 1'500);
        for (int sent = 0; sent < count;) {
            LogBatch batch{.run_id = id};
            const int size = 1 + static_cast<int>(random() % 300);
            for (int k = 0; k < size; ++k, ++sent) {
                const double value =
                    random() % 5 == 0 ? kNan : static_cast<double>(random() % 20'000) / 7 - 1'000;
                const auto time = static_cast<std::int64_t>(random() % 5'000);
                batch.metrics.push_back({"m", i == 5 ? kNan : value, time, time % 50});
            }
            if (random() % 4 == 0) {
                LogBatch lost = batch;
                lost.metrics.push_back({"m", -1e9, 1, 1});
                const auto refused =
                    store_->execute(Atomic{{std::move(lost), LogParam{"no such run", {"a", "b"}}}});
                ASSERT_FALSE(refused);
            }
            run(std::move(batch));
        }
        expect_extrema(id, "m");
    }
}

TEST_F(MetricAggregatesTest, OlderDatabasesAreFilled) {
    std::mt19937 random(3);
    std::vector<std::string> runs;
    for (const int count : {1, 10, 17, 600}) {
        runs.push_back(create_run());
        LogBatch batch{.run_id = runs.back()};
        for (int sent = 0; sent < count; ++sent) {
            const double value = random() % 3 == 0 ? kNan : static_cast<double>(random() % 1'000);
            batch.metrics.push_back({"m", value, sent, sent});
        }
        run(std::move(batch));
        log(runs.back(), "m", kNan, 1'000);  // the last block and the tail are both in use
    }
    store_.reset();
    {
        auto opened = sqlite::Connection::open((directory_.path() / "tune.db").string(), {});
        ASSERT_TRUE(opened);
        ASSERT_TRUE((*opened)->execute("UPDATE latest_metrics SET min_value = 7, max_value = 7"));
        auto transaction = sqlite::Transaction::begin_write(**opened);
        ASSERT_TRUE(transaction);
        ASSERT_TRUE(fill_extrema(**opened));
        ASSERT_TRUE(transaction->commit());
    }
    open();
    for (const std::string& id : runs) expect_extrema(id, "m");
    log(runs[0], "m", -5, 1);
    expect_extrema(runs[0], "m");
}

}  // namespace
}  // namespace tune::tracker::metric_aggregates_test
