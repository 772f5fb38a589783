// Points that are older than others of their metric: how often a block is read to see whether they
// are there already. Counted, not timed.

#include <cmath>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/store/metrics/block_cache.h"
#include "tracker/store/metrics/metric_log.h"

namespace tune::tracker {
namespace {

class LatePoints : public StoreTest {
protected:
    static constexpr int kPast = 300;  // points of each metric: more than a block
    static constexpr int kLate = 100;

    void SetUp() override {
        StoreTest::SetUp();
        store_.reset();
        auto opened = sqlite::Connection::open((directory_.path() / "tune.db").string(), {});
        ASSERT_TRUE(opened);
        connection_ = std::move(*opened);
    }

    /// Reads for each late point, of a run that logs so many metrics one after the other and whose
    /// clock was put back.
    double reads_a_point(int metric_count) {
        MetricLog log(*connection_);
        auto transaction = sqlite::Transaction::begin_write(*connection_);
        EXPECT_TRUE(transaction);
        const auto log_row = [&](std::int64_t timestamp_ms, double value) {
            for (int key = 1; key <= metric_count; ++key) {
                const Result<bool> added = log.add({7, key}, {timestamp_ms, timestamp_ms, value});
                EXPECT_TRUE(added && *added);
            }
            EXPECT_TRUE(log.flush());
        };
        for (int step = 0; step < kPast; ++step) log_row(step, 1);
        const std::uint64_t reads_before = log.late_reads();
        for (int step = 0; step < kLate; ++step) log_row(step, 2);
        EXPECT_TRUE(transaction->commit());
        return static_cast<double>(log.late_reads() - reads_before) / kLate / metric_count;
    }

    std::unique_ptr<sqlite::Connection> connection_;
};

TEST_F(LatePoints, OfARunOf1100MetricsNeedAFewReadsEach) {
    EXPECT_LT(reads_a_point(1'100), 0.05);
}

TEST_F(LatePoints, OfMoreMetricsThanTheCacheHoldsNeedNoReadEach) {
    EXPECT_LT(reads_a_point(static_cast<int>(BlockCache::kBlocksMax) * 5 / 4), 0.6);
}

}  // namespace
}  // namespace tune::tracker
