// Points since a mark are known in the order in which they came, whatever their times say.

#include "tracker/store/metrics/metric_marks.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class MetricMarksTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        id_ = create_run();
    }
    void log(const std::string& key, std::int64_t timestamp_ms, double value) {
        LogBatch batch{.run_id = id_};
        batch.metrics.push_back({.key = key, .value = value, .timestamp_ms = timestamp_ms});
        run(std::move(batch));
    }
    void mark(std::optional<std::int64_t> mark) {
        run(MarkMetrics{.run_id = id_, .keys = {"a"}, .mark = mark});
    }
    MarkedHistory history(const std::string& key = "a") {
        auto found = store_->snapshot([&](sqlite::Connection& connection) {
            return marked_history(connection, id_, key);
        });
        EXPECT_TRUE(found) << found.error().text();
        return found ? *found : MarkedHistory();
    }
    std::vector<double> before() {
        std::vector<double> values;
        for (const Metric& metric : history().before) values.push_back(metric.value);
        return values;
    }
    std::vector<std::pair<std::int64_t, double>> since() {
        std::vector<std::pair<std::int64_t, double>> values;
        for (const auto& [mark, metric] : history().since) values.emplace_back(mark, metric.value);
        return values;
    }

    std::string id_;
};

TEST_F(MetricMarksTest, PointsSinceAMarkComeInTheirOrderNotInThatOfTheirTimes) {
    log("a", 100, 1);
    log("a", 90, 2);
    mark(5);
    log("a", 50, 3);
    log("a", 200, 4);
    mark(6);
    log("a", 95, 5);
    EXPECT_THAT(before(), ElementsAre(2, 1));
    EXPECT_THAT(since(), ElementsAre(Pair(5, 3), Pair(5, 4), Pair(6, 5)));
    EXPECT_EQ(history().mark, 6);
    store_.reset();
    open();
    log("a", 10, 6);
    EXPECT_THAT(since(), ElementsAre(Pair(5, 3), Pair(5, 4), Pair(6, 5), Pair(6, 6)));
}

TEST_F(MetricMarksTest, OtherMetricsAndRunsHaveNone) {
    mark(1);
    log("b", 1, 1);
    EXPECT_TRUE(history("b").since.empty());
    EXPECT_EQ(history("b").mark, std::nullopt);
    EXPECT_EQ(history("never").mark, std::nullopt);
}

TEST_F(MetricMarksTest, ObserversHearUnderWhichMarkPointsCame) {
    RecordingObserver observer;
    store_->add_observer(&observer);
    log("a", 1, 1);
    mark(3);
    log("a", 2, 2);
    log("b", 2, 2);
    store_->wait_for_observers();
    const std::vector<MetricsLogged> logged = observer.of<MetricsLogged>();
    store_->stop();
    ASSERT_EQ(logged.size(), 3u);
    EXPECT_EQ(logged[0].mark, std::nullopt);
    EXPECT_EQ(logged[1].mark, 3);
    EXPECT_EQ(logged[2].mark, std::nullopt);
}

TEST_F(MetricMarksTest, ARepeatIsNotedOnceAndARefusedBatchNotAtAll) {
    mark(1);
    log("a", 1, 1);
    log("a", 1, 1);
    std::vector<Command> refused;
    refused.push_back(MarkMetrics{.run_id = id_, .keys = {"a"}, .mark = 2});
    refused.push_back(LogMetric{id_, {.key = "a", .value = 2, .timestamp_ms = 2}});
    refused.push_back(DeleteTag{id_, "none"});
    EXPECT_FALSE(store_->execute(Atomic{std::move(refused)}));
    log("a", 3, std::nan(""));
    ASSERT_EQ(history().since.size(), 2u);
    EXPECT_EQ(history().since[0].metric.value, 1);
    EXPECT_TRUE(std::isnan(history().since[1].metric.value));
    EXPECT_EQ(history().since[1].mark, 1);
    EXPECT_TRUE(before().empty());
}

TEST_F(MetricMarksTest, WithoutMarksAllIsOneHistoryAgain) {
    log("a", 1, 1);
    mark(2);
    log("a", 2, 2);
    mark({});
    log("a", 3, 3);
    EXPECT_THAT(before(), ElementsAre(1, 2, 3));
    EXPECT_TRUE(history().since.empty());
    EXPECT_EQ(history().mark, std::nullopt);
}

}  // namespace
}  // namespace tune::tracker
