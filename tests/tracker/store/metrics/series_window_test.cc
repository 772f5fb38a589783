// Down-sampled histories of any window against a look at every point.

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/metrics/metric_block.h"
#include "tracker/store/metrics/read_metrics.h"

namespace tune::tracker {
namespace {

class SeriesWindowTest : public StoreTest {
protected:
    /// Points in any order of arrival: steps that mostly grow, repeats, NaN.
    void fill(std::mt19937& random, bool is_one_step) {
        id_ = create_run();
        points_.clear();
        std::int64_t step = -500;
        while (points_.size() < point_count_) {
            LogBatch batch{.run_id = id_};
            for (int i = 0; i < 700; ++i) {
                step += static_cast<std::int64_t>(random() % 4);
                const std::int64_t late =
                    random() % 50 == 0 ? static_cast<std::int64_t>(random() % 300) : 0;
                const double value = random() % 10 == 0
                                         ? std::nan("")
                                         : static_cast<double>(random() % 100'000) / 7 - 5'000;
                const Point point{2 * step + 5'000 - late, is_one_step ? 7 : step - late, value};
                batch.metrics.push_back({"m", value, point.timestamp_ms, point.step});
                points_.push_back(point);
            }
            run(std::move(batch));
        }
        std::sort(points_.begin(), points_.end(), is_before);
        points_.erase(
            std::unique(points_.begin(), points_.end(),
                        [](const Point& a, const Point& b) { return compare_in_time(a, b) == 0; }),
            points_.end());
    }

    std::vector<SeriesBucket> buckets(std::int64_t count,
                                      const std::optional<SeriesWindow>& window) {
        const std::vector<std::string> ids = {id_};
        const auto all = store_->snapshot([&](sqlite::Connection& connection) {
            return series(connection, ids, "m", count, window);
        });
        EXPECT_TRUE(all) << all.error().text();
        return all && !all->empty() ? all->front().buckets : std::vector<SeriesBucket>();
    }

    /// What can be said of the answer without knowing where the borders of buckets lie: they hold
    /// each point of the window once, in order, and their numbers are those of their points.
    void expect_exact(std::int64_t count, const std::optional<SeriesWindow>& window) {
        const bool is_by_time =
            window ? window->is_by_time : points_.front().step == points_.back().step;
        const auto place = [&](const Point& point) {
            return is_by_time ? point.timestamp_ms : point.step;
        };
        std::vector<Point> left;
        for (const Point& point : points_)
            if (!window || (place(point) >= window->first && place(point) <= window->last))
                left.push_back(point);
        std::stable_sort(left.begin(), left.end(),
                         [&](const Point& a, const Point& b) { return place(a) < place(b); });
        const std::vector<SeriesBucket> all = buckets(count, window);
        EXPECT_LE(static_cast<std::int64_t>(all.size()), count);
        auto at = left.begin();
        for (const SeriesBucket& bucket : all) {
            if (bucket.count == 1 && all.size() == left.size()) break;  // one a point
            ASSERT_LE(bucket.count, left.end() - at);
            const std::span<const Point> mine(at, at + bucket.count);
            const BlockSummary expected = summarize(mine);
            const auto is_same = [](double a, double b) {
                return a == b || (std::isnan(a) && std::isnan(b));
            };
            EXPECT_TRUE(is_same(bucket.min, expected.min_value));
            EXPECT_TRUE(is_same(bucket.max, expected.max_value));
            EXPECT_TRUE(is_same(bucket.last, expected.final.value));
            EXPECT_EQ(bucket.nan_count, expected.nan_count);
            EXPECT_EQ(bucket.first_step, expected.min_step);
            EXPECT_EQ(bucket.last_step, expected.max_step);
            at += bucket.count;
        }
        if (all.size() == left.size()) {
            std::sort(left.begin(), left.end(),
                      [](const Point& a, const Point& b) { return compare_in_steps(a, b) < 0; });
            for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].last_step, left[i].step);
        } else {
            EXPECT_EQ(at, left.end());
        }
    }

    std::int64_t number(const std::string& sql) {
        return *store_->snapshot([&](sqlite::Connection& connection) -> Result<std::int64_t> {
            TUNE_TRY(select, connection.prepare(sql));
            TUNE_TRY_VOID(select.step());
            return select.integer(0);
        });
    }

    void expect_exact_anywhere(std::mt19937& random) {
        for (const std::int64_t count : {1, 800}) expect_exact(count, {});
        for (int round = 0; round < 10; ++round) {
            const auto first = static_cast<std::int64_t>(random() % 60'000) - 1'000;
            expect_exact(1 + static_cast<std::int64_t>(random() % 300),
                         SeriesWindow{random() % 2 == 0, first, first + 30'000});
        }
    }

    std::size_t point_count_ = 3'000;
    std::string id_;
    std::vector<Point> points_;
};

TEST_F(SeriesWindowTest, AnyWindowHasExactExtrema) {
    std::mt19937 random(5);
    for (const bool is_one_step : {false, true}) {
        fill(random, is_one_step);
        for (const std::int64_t count : {1, 2, 13, 400, 10'000}) expect_exact(count, {});
        for (int round = 0; round < 60; ++round) {
            SeriesWindow window;
            window.is_by_time = random() % 2 == 0;
            window.first = static_cast<std::int64_t>(random() % 9'000) - 1'000;
            window.last = window.first + static_cast<std::int64_t>(random() % 4'000);
            if (random() % 8 == 0) window.first = INT64_MIN;
            if (random() % 8 == 0) window.last = INT64_MAX;
            expect_exact(1 + static_cast<std::int64_t>(random() % 50), window);
        }
    }
}

TEST_F(SeriesWindowTest, SpansOfBlocksFollowEveryChange) {
    std::mt19937 random(8);
    point_count_ = 40'000;
    fill(random, false);
    EXPECT_GT(number("SELECT count(*) FROM metric_spans"), 1);
    expect_exact_anywhere(random);

    // A point in the middle changes a block that a span covers.
    const Point middle = points_[points_.size() / 2];
    points_.push_back({middle.timestamp_ms, middle.step, 1e9});
    std::sort(points_.begin(), points_.end(), is_before);
    const std::int64_t spans = number("SELECT count(*) FROM metric_spans");
    log(id_, "m", 1e9, middle.step, middle.timestamp_ms);
    for (std::int64_t i = 0; i < 20; ++i) {  // until the tail is folded into blocks
        const Point end{10'000'000 + i, 10'000'000 + i, 1};
        points_.push_back(end);
        log(id_, "m", end.value, end.step, end.timestamp_ms);
    }
    EXPECT_LT(number("SELECT count(*) FROM metric_spans"), spans);
    expect_exact_anywhere(random);
}

TEST_F(SeriesWindowTest, AnOlderDatabaseGetsItsSpans) {
    std::mt19937 random(9);
    point_count_ = 30'000;
    fill(random, false);
    store_.reset();
    {
        auto connection = *sqlite::Connection::open((directory_.path() / "tune.db").string(), {});
        ASSERT_TRUE(connection->execute("DROP TABLE metric_spans"));
        for (const char* later : {"suggested_params", "users", "roles", "role_permissions",
                                  "user_roles", "user_sessions", "metric_marks", "marked_points"})
            ASSERT_TRUE(connection->execute(std::string("DROP TABLE ") + later));
        ASSERT_TRUE(connection->execute("DELETE FROM schema_version WHERE version >= 6"));
    }
    open();
    EXPECT_GT(number("SELECT count(*) FROM metric_spans"), 1);
    expect_exact_anywhere(random);
}

TEST_F(SeriesWindowTest, AWindowWithoutPointsIsLeftOut) {
    std::mt19937 random(6);
    fill(random, false);
    const std::vector<std::string> ids = {id_};
    const auto none = store_->snapshot([&](sqlite::Connection& connection) {
        return series(connection, ids, "m", 10, SeriesWindow{false, 1'000'000, 2'000'000});
    });
    ASSERT_TRUE(none);
    EXPECT_TRUE(none->empty());
}

}  // namespace
}  // namespace tune::tracker
