#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/store/metrics/read_metrics.h"

namespace tune::tracker {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class HistoryTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        id_ = create_run();
    }

    void log_all(const std::vector<Metric>& metrics, std::size_t batch = 1'000) {
        for (std::size_t i = 0; i < metrics.size(); i += batch) {
            const std::size_t end = std::min(metrics.size(), i + batch);
            run(LogBatch{.run_id = id_,
                         .metrics = {metrics.begin() + static_cast<std::ptrdiff_t>(i),
                                     metrics.begin() + static_cast<std::ptrdiff_t>(end)}});
        }
    }

    std::string sample(std::int64_t max_results, std::optional<StepRange> range = {}) {
        const std::vector<std::string> ids = {id_};
        const auto all = store_->metric_history_bulk_interval(ids, "a", range, max_results);
        EXPECT_TRUE(all) << text_of(all);
        return all && !all->empty() ? text(all->front().metrics) : "";
    }

    std::vector<SeriesBucket> buckets(std::int64_t count) {
        const std::vector<std::string> ids = {id_};
        const auto all = store_->series(ids, "a", count);
        EXPECT_TRUE(all) << text_of(all);
        return all && !all->empty() ? all->front().buckets : std::vector<SeriesBucket>{};
    }

    std::string id_;
};

/// The model of a history: what MLflow's table would hold, in its order.
std::vector<Metric> sorted_unique(std::vector<Metric> metrics) {
    const auto key = [](const Metric& m) {
        const bool is_nan = std::isnan(m.value);
        return std::tuple(m.timestamp_ms, m.step, is_nan ? 0 : m.value, is_nan);
    };
    std::sort(metrics.begin(), metrics.end(),
              [&](const Metric& a, const Metric& b) { return key(a) < key(b); });
    metrics.erase(std::unique(metrics.begin(), metrics.end(),
                              [&](const Metric& a, const Metric& b) { return key(a) == key(b); }),
                  metrics.end());
    return metrics;
}

TEST_F(HistoryTest, IsOrderedByTimeStepValue) {
    log(id_, "a", 1, 5, 10);
    log(id_, "a", 2, 4, 10);
    log(id_, "a", 3, 9, 5);
    log(id_, "a", 0, 5, 10);
    EXPECT_EQ(history(id_, "a"), "9:3@5 4:2@10 5:0@10 5:1@10");
    EXPECT_EQ(history(id_, "unknown"), "");
    EXPECT_EQ(history("no run", "a"), "");
}

/// Orders of arrival, each compared with the model at every stage and after reopening.
TEST_F(HistoryTest, EqualsTheModelForAnyArrival) {
    std::mt19937 random(1);
    for (int kind = 0; kind < 7; ++kind) {
        const std::string key = "kind" + std::to_string(kind);
        std::vector<Metric> metrics;
        for (int i = 0; i < 2'000; ++i) {
            const auto wild = static_cast<std::int64_t>(random() % 1'500);
            const std::int64_t resumed = i < 1'200 ? i : i - 900;  // some rows are there already
            const double value = random() % 20 == 0 ? kNan : static_cast<double>(random() % 5);
            switch (kind) {
                case 0: metrics.push_back({key, value, i, i}); break;                  // in order
                case 1: metrics.push_back({key, value, 2'000 - i, 2'000 - i}); break;  // backwards
                case 2: metrics.push_back({key, value, wild, wild}); break;            // any order
                case 3: metrics.push_back({key, value, 7, wild}); break;               // one time
                case 4: metrics.push_back({key, value, wild, 0}); break;               // one step
                case 5: metrics.push_back({key, value, resumed, resumed}); break;
                default: metrics.push_back({key, value, i, wild}); break;  // steps jump
            }
        }
        const std::size_t batch = 1 + random() % 300;
        log_all(metrics, batch);
        const std::string expected = text(sorted_unique(metrics));
        ASSERT_EQ(history(id_, key), expected) << kind;
        log_all(metrics, 700);  // all of it again
        reopen();
        ASSERT_EQ(history(id_, key), expected) << kind;
    }
}

TEST_F(HistoryTest, PagesJoinToTheWhole) {
    std::vector<Metric> metrics;
    for (int i = 0; i < 1'000; ++i) metrics.push_back({"a", i % 7 == 0 ? kNan : 1.5 * i, i / 3, i});
    log_all(metrics);
    for (const std::int64_t size : {1, 17, 256, 999, 1'000}) {
        std::vector<Metric> joined;
        std::string token;
        do {
            const auto page = store_->metric_history(id_, "a", size, token);
            ASSERT_TRUE(page) << text_of(page);
            EXPECT_LE(page->items.size(), static_cast<std::size_t>(size));
            joined.insert(joined.end(), page->items.begin(), page->items.end());
            token = page->next_page_token;
        } while (!token.empty());
        EXPECT_EQ(text(joined), history(id_, "a")) << size;
    }
}

TEST_F(HistoryTest, RefusesBadPages) {
    log_all({{"a", 1, 1, 1}, {"a", 2, 2, 2}});
    EXPECT_EQ(text_of(store_->metric_history(id_, "a", 0)),
              "INVALID_PARAMETER_VALUE: Invalid value 0 for parameter 'max_results' supplied. It "
              "must be a positive integer.");
    const auto first = store_->metric_history(id_, "a", 1);
    EXPECT_FALSE(store_->metric_history(id_, "b", 1, first->next_page_token));
    EXPECT_EQ(text_of(store_->metric_history(id_, "a", 1, "???")),
              "INVALID_PARAMETER_VALUE: Invalid page token, could not base64-decode");
}

TEST_F(HistoryTest, BulkIsOrderedByRunAndCut) {
    const std::string b = create_run(0, "bbb");
    const std::string a = create_run(0, "aaa");
    for (int i = 0; i < 3; ++i) {
        log(a, "m", i, i, i);
        log(b, "m", 10 + i, i, i);
    }
    const std::vector<std::string> ids = {b, "missing", a, b};
    const auto all = store_->metric_history_bulk(ids, "m", 25'000);
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 2u);
    EXPECT_EQ((*all)[0].run_id, "aaa");
    EXPECT_EQ(text((*all)[1].metrics), "0:10@0 1:11@1 2:12@2");
    const auto cut = store_->metric_history_bulk(ids, "m", 4);
    EXPECT_EQ(text((*cut)[1].metrics), "0:10@0");
    EXPECT_FALSE(store_->metric_history_bulk(std::vector<std::string>(101, "x"), "m", 1));
}

TEST(SamplePositions, AreThoseOfMlflow) {
    using Positions = std::vector<std::int64_t>;
    EXPECT_EQ(sample_positions(10, 3), (Positions{0, 4, 9}));
    EXPECT_EQ(sample_positions(10, 4), (Positions{0, 3, 6, 9}));
    EXPECT_EQ(sample_positions(10, 1), (Positions{9}));
    EXPECT_EQ(sample_positions(3, 10), (Positions{0, 1, 2}));
    EXPECT_EQ(sample_positions(0, 10), (Positions{}));
    EXPECT_EQ(sample_positions(7, 5), (Positions{0, 2, 4, 5, 6}));
}

TEST_F(HistoryTest, SamplesByRowInStepOrder) {
    for (int i = 0; i < 10; ++i) log(id_, "a", i, i, 100 - i);
    EXPECT_EQ(sample(3), "0:0@100 4:4@96 9:9@91");
    EXPECT_EQ(sample(1), "9:9@91");
    EXPECT_EQ(sample(2'500), history(id_, "a") == "" ? "" : sample(10));
    EXPECT_EQ(sample(2, StepRange{2, 5}), "2:2@98 5:5@95");
    EXPECT_EQ(sample(100, StepRange{20, 30}), "");
    const std::vector<std::string> ids = {"missing"};
    EXPECT_TRUE(store_->metric_history_bulk_interval(ids, "a", {}, 5)->empty());
    for (const std::int64_t bad : {0, 2'501})
        EXPECT_EQ(text_of(store_->metric_history_bulk_interval(ids, "a", {}, bad)),
                  "INVALID_PARAMETER_VALUE: max_results must be between 1 and 2500.");
}

TEST_F(HistoryTest, SamplesEqualTheModelWhateverTheBlocks) {
    std::mt19937 random(3);
    for (const bool is_ordered : {true, false}) {
        const std::string name = is_ordered ? "ordered" : "jumping";
        id_ = create_run();
        std::vector<Metric> metrics;
        for (int i = 0; i < 1'500; ++i)
            metrics.push_back(
                {"a", 0.5 * i, i, is_ordered ? i / 2 : static_cast<std::int64_t>(random() % 999)});
        log_all(metrics, 400);
        std::sort(metrics.begin(), metrics.end(), [](const Metric& a, const Metric& b) {
            return std::tuple(a.step, a.timestamp_ms, a.value) <
                   std::tuple(b.step, b.timestamp_ms, b.value);
        });
        for (const std::int64_t count : {1, 2, 100, 1'499, 1'500, 2'500}) {
            std::vector<Metric> expected;
            for (const std::int64_t position : sample_positions(1'500, count))
                expected.push_back(metrics[static_cast<std::size_t>(position)]);
            EXPECT_EQ(sample(count), text(expected)) << name << count;
        }
        std::vector<Metric> inside;
        for (const Metric& metric : metrics)
            if (metric.step >= 100 && metric.step <= 500) inside.push_back(metric);
        std::vector<Metric> expected;
        for (const std::int64_t position :
             sample_positions(static_cast<std::int64_t>(inside.size()), 50))
            expected.push_back(inside[static_cast<std::size_t>(position)]);
        EXPECT_EQ(sample(50, StepRange{100, 500}), text(expected)) << name;
    }
}

TEST_F(HistoryTest, SeriesHasOneBucketAPointWhenFew) {
    log(id_, "a", 2, 1, 10);
    log(id_, "a", kNan, 0, 5);
    const auto few = buckets(10);
    ASSERT_EQ(few.size(), 2u);
    EXPECT_EQ(few[0].first_step, 0);
    EXPECT_TRUE(std::isnan(few[0].last));
    EXPECT_EQ(few[0].nan_count, 1);
    EXPECT_EQ(few[1].max, 2);
    const std::vector<std::string> none = {"missing"};
    EXPECT_TRUE(store_->series(none, "a", 10)->empty());
    EXPECT_FALSE(store_->series(none, "a", 0));
}

/// Exact extrema: every point lies in one bucket, and each bucket says what its points are.
TEST_F(HistoryTest, SeriesIsExact) {
    std::mt19937 random(5);
    for (const int kind : {0, 1, 2}) {
        id_ = create_run();
        std::vector<Metric> metrics;
        for (int i = 0; i < 3'000; ++i) {
            const double value =
                random() % 50 == 0 ? kNan : static_cast<double>(random() % 100'000) - 5e4;
            const std::int64_t step = kind == 0   ? i
                                      : kind == 1 ? static_cast<std::int64_t>(random() % 5'000)
                                                  : 0;
            metrics.push_back({"a", value, 1'000 + i, step});
        }
        log_all(metrics, 333);
        for (const std::int64_t count : {1, 7, 100, 1'000}) {
            const auto found = buckets(count);
            ASSERT_LE(found.size(), static_cast<std::size_t>(count));
            std::int64_t total = 0;
            for (const SeriesBucket& bucket : found) {
                SeriesBucket expected;
                expected.min = expected.max = kNan;
                const Metric* last = nullptr;
                for (const Metric& metric : metrics) {
                    const bool by_time = kind == 2;
                    const bool is_inside =
                        by_time
                            ? metric.timestamp_ms >= bucket.first_timestamp_ms &&
                                  metric.timestamp_ms <= bucket.last_timestamp_ms
                            : metric.step >= bucket.first_step && metric.step <= bucket.last_step;
                    if (!is_inside) continue;
                    ++expected.count;
                    expected.nan_count += std::isnan(metric.value) ? 1 : 0;
                    expected.min = std::fmin(expected.min, metric.value);
                    expected.max = std::fmax(expected.max, metric.value);
                    if (last == nullptr || std::tuple(metric.step, metric.timestamp_ms) >
                                               std::tuple(last->step, last->timestamp_ms))
                        last = &metric;
                }
                total += bucket.count;
                ASSERT_EQ(bucket.count, expected.count);
                ASSERT_EQ(bucket.nan_count, expected.nan_count);
                if (expected.count == expected.nan_count) continue;
                ASSERT_EQ(bucket.min, expected.min);
                ASSERT_EQ(bucket.max, expected.max);
                ASSERT_TRUE(bucket.last == last->value ||
                            (std::isnan(bucket.last) && std::isnan(last->value)));
            }
            ASSERT_EQ(total, 3'000) << kind << " " << count;
        }
    }
}

}  // namespace
}  // namespace tune::tracker
