// The write-ahead log begins anew, also while others read all the time.

#include <atomic>
#include <thread>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/store/stats.h"

namespace tune::tracker {
namespace {

class LogCareTest : public StoreTest {
protected:
    /// Writes about `megabytes` in transactions of 64 kB; the log's size at the end, in MB.
    double log_after(int megabytes) {
        const std::string text = "\"" + std::string(64'000, 'x') + "\"";
        for (int i = 0; i < megabytes * 16; ++i)
            run(PutDocument{"large", std::to_string(i % 50), text});
        return static_cast<double>(store_->statistics().log_bytes) / 1e6;
    }
};

TEST_F(LogCareTest, TheLogBeginsAnewWhenNobodyReads) {
    EXPECT_LT(log_after(60), 40);
    EXPECT_EQ(store_->list_documents("large", "")->size(), 50u);
}

TEST_F(LogCareTest, ReadersAreHeldBackForALongLog) {
    std::atomic<bool> is_over{false};
    std::atomic<int> reads{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i)
        readers.emplace_back([&] {
            while (!is_over) {
                const auto found = store_->list_documents("large", "");
                if (found) ++reads;
            }
        });
    const double log_mb = log_after(160);
    is_over = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_LT(log_mb, 130);
    EXPECT_GT(reads, 0);
}

}  // namespace
}  // namespace tune::tracker
