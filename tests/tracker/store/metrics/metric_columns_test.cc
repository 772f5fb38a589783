// Columns of metrics in memory: never older or newer than the reader's snapshot.

#include "tracker/store/metrics/metric_columns.h"

#include <atomic>
#include <random>
#include <thread>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {
namespace {

std::shared_ptr<const MetricChunk> chunk_of(double value) {
    auto chunk = std::make_shared<MetricChunk>();
    chunk->fill(value);
    return chunk;
}

TEST(MetricColumns, KeepWhatIsCertainOnly) {
    MetricColumns columns;
    const ChunkKey key{5, Column::kLatest, 2};
    const std::vector<SeriesKey> in_chunk = {{2 * kChunkRuns + 17, 5}};
    const std::uint64_t early = columns.now();
    columns.put(key, early, chunk_of(1));
    ASSERT_NE(columns.find(key, early), nullptr);
    EXPECT_EQ(columns.find({5, Column::kMin, 2}, early), nullptr);
    EXPECT_EQ(columns.find({5, Column::kLatest, 3}, early), nullptr);

    columns.begin_change(in_chunk);
    EXPECT_EQ(columns.find(key, early), nullptr);  // the commit may be visible, or not yet
    columns.put(key, early, chunk_of(1));
    columns.end_change(in_chunk);
    EXPECT_EQ(columns.find(key, early), nullptr);
    const std::uint64_t later = columns.now();
    EXPECT_EQ(columns.find(key, later), nullptr);  // what was kept before is old
    columns.put(key, early, chunk_of(1));          // read before the change: refused
    EXPECT_EQ(columns.find(key, later), nullptr);
    columns.put(key, later, chunk_of(2));
    ASSERT_NE(columns.find(key, later), nullptr);
    EXPECT_EQ((*columns.find(key, later))[0], 2);
    EXPECT_EQ(columns.find(key, early), nullptr);  // of a snapshot that is older than the change

    const std::vector<SeriesKey> elsewhere = {{3 * kChunkRuns, 6}};
    columns.begin_change(elsewhere);
    columns.end_change(elsewhere);
    EXPECT_NE(columns.find(key, columns.now()), nullptr);
    const std::vector<SeriesKey> new_run = {{2 * kChunkRuns + 1, kAnyKey}};
    columns.begin_change(new_run);
    columns.end_change(new_run);
    EXPECT_EQ(columns.find(key, columns.now()), nullptr);
}

TEST(MetricColumns, HoldNoMoreThanTheirBound) {
    MetricColumns columns;
    const auto shared = chunk_of(1);
    const auto count = static_cast<std::int64_t>(kColumnChunksMax);
    for (std::int64_t i = 0; i <= count; ++i) {
        columns.put({1, Column::kLatest, i}, 0, shared);
        EXPECT_NE(columns.find({1, Column::kLatest, 0}, 0), nullptr);  // used, so kept
    }
    EXPECT_EQ(columns.find({1, Column::kLatest, 1}, 0), nullptr);
    EXPECT_EQ(shared.use_count(), count + 1);
}

class MetricColumnsTest : public StoreTest {};

/// Each commit gives all runs one value, so that every search finds all of them or none; and what
/// columns find is what SQL finds in the same snapshot.
TEST_F(MetricColumnsTest, SearchesSeeWholeCommits) {
    constexpr int kRuns = 12;
    Atomic first;
    for (int i = 0; i < kRuns; ++i) {
        const std::string id = "r" + std::to_string(i);
        first.commands.emplace_back(CreateRun{.run_id = id});
        first.commands.emplace_back(LogMetric{id, {"m", 0, 0, 0}});
    }
    run<AtomicOutcome>(std::move(first));
    std::atomic<int> written{0};
    std::atomic<bool> is_over{false};
    std::thread writer([&] {
        for (int value = 1; !is_over; ++value) {
            Atomic all;
            for (int i = 0; i < kRuns; ++i)
                all.commands.emplace_back(
                    LogMetric{"r" + std::to_string(i), {"m", 1.0 * value, value, value}});
            EXPECT_TRUE(store_->execute(std::move(all)));
            written = value;
        }
    });
    std::vector<std::thread> readers;
    std::atomic<int> partly{0};
    for (unsigned seed = 0; seed < 3; ++seed)
        readers.emplace_back([&, seed] {
            std::mt19937 random(seed);
            for (int round = 0; round < 400 || written <= 5; ++round) {
                const int near = written + static_cast<int>(random() % 3) - 1;
                const std::string filter = "metrics.m > " + std::to_string(near);
                const SearchRuns by_columns{.experiment_ids = {0}, .filter = filter};
                const SearchRuns by_sql{.experiment_ids = {0},
                                        .filter = filter + " OR run_id = 'none'"};
                const auto found = store_->snapshot([&](auto& snapshot) -> Result<bool> {
                    TUNE_TRY(columns, find_runs(snapshot, by_columns));
                    TUNE_TRY(rows, find_runs(snapshot, by_sql));
                    EXPECT_EQ(columns.rows, rows.rows) << filter;
                    const std::size_t count = columns.rows.size();
                    if (count != 0 && count != kRuns) ++partly;
                    return true;
                });
                EXPECT_TRUE(found);
            }
        });
    for (std::thread& reader : readers) reader.join();
    is_over = true;
    writer.join();
    EXPECT_EQ(partly, 0);
}

}  // namespace
}  // namespace tune::tracker
