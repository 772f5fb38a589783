// Random searches by metrics while everything that changes runs continues: what columns in memory
// find is, page by page, what SQL finds in the same snapshot.

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <thread>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {
namespace {

/// More than are listed by SQL without columns.
constexpr int kFirstRuns = 1'400;
constexpr int kReaders = 2;

/// TUNE_SEQUENCES: changes made meanwhile; some hundred are a second.
int change_count() {
    const char* text = std::getenv("TUNE_SEQUENCES");
    return text == nullptr ? 600 : std::atoi(text);
}

class Dice {
public:
    explicit Dice(unsigned seed) : random_(seed) {}
    std::size_t pick(std::size_t count) { return random_() % count; }
    bool chance(unsigned percent) { return pick(100) < percent; }
    template <class Item>
    const Item& one_of(const std::vector<Item>& items) {
        return items[pick(items.size())];
    }
    double value() {
        if (chance(8)) return std::nan("");
        if (chance(4)) return std::numeric_limits<double>::infinity() * (chance(50) ? 1 : -1);
        return static_cast<double>(pick(9)) / 4 - 1;
    }
    Metric metric() {
        const auto step = static_cast<std::int64_t>(pick(50));
        return {one_of(keys_), value(), step, step};
    }
    std::string clause() {
        const std::string key = "metrics." + one_of(keys_) + one_of(endings_);
        return key + one_of(comparators_) + std::to_string(static_cast<double>(pick(9)) / 4 - 1);
    }

private:
    std::mt19937 random_;
    const std::vector<std::string> keys_ = {"a", "b", "c"};
    const std::vector<std::string> endings_ = {"", "", ".min", ".max"};
    const std::vector<std::string> comparators_ = {" < ", " <= ", " > ", " >= ", " = ", " != "};
};

SearchRuns random_search(Dice& dice) {
    SearchRuns query{.experiment_ids = {0}};
    if (dice.chance(40)) query.experiment_ids.push_back(1);
    query.view_type = dice.one_of<ViewType>(
        {ViewType::kActiveOnly, ViewType::kActiveOnly, ViewType::kAll, ViewType::kDeletedOnly});
    query.max_results = static_cast<std::int64_t>(1 + dice.pick(dice.chance(20) ? 2'000 : 60));
    query.filter = dice.clause();
    if (dice.chance(40)) query.filter += (dice.chance(50) ? " OR NOT " : " AND ") + dice.clause();
    if (dice.chance(20)) query.filter = "(" + query.filter + ") AND params.p = '1'";
    const std::size_t key_count = dice.pick(3);
    for (std::size_t i = 0; i < key_count; ++i)
        query.order_by.push_back(std::string(i == 0 ? "metrics.a" : "metrics.b") +
                                 (dice.chance(30) ? ".min" : "") +
                                 (dice.chance(50) ? " ASC" : " DESC"));
    if (key_count > 0 && dice.chance(30)) query.filter.clear();
    return query;
}

/// The same order, written in a way that columns do not know.
SearchRuns by_sql(SearchRuns query) {
    query.order_by.emplace_back("attributes.start_time DESC");
    return query;
}

class MetricColumnsPropertyTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        create_experiment("other");
        Dice dice(1);
        Atomic group;
        for (int i = 0; i < kFirstRuns; ++i) {
            const std::string id = "run" + std::to_string(i);
            group.commands.emplace_back(CreateRun{
                .experiment_id = i % 20 == 0 ? 1 : 0, .run_id = id, .start_time_ms = i / 7});
            LogBatch batch{.run_id = id, .params = {{"p", std::to_string(i % 3)}}};
            for (std::size_t k = 0; k < dice.pick(4); ++k) batch.metrics.push_back(dice.metric());
            group.commands.emplace_back(std::move(batch));
            ids_.push_back(id);
        }
        run<AtomicOutcome>(std::move(group));
    }

    /// Sends one random change; many of them are refused, which is a case too.
    void change(Dice& dice, int number) {
        const std::string known = dice.one_of(ids_);
        const std::size_t kind = dice.pick(20);
        if (kind < 8) {
            LogBatch batch{.run_id = known};
            for (std::size_t k = 0; k <= dice.pick(6); ++k) batch.metrics.push_back(dice.metric());
            send(std::move(batch));
        } else if (kind < 11) {
            ids_.push_back("new" + std::to_string(number));
            send(CreateRun{.run_id = ids_.back(),
                           .start_time_ms = static_cast<std::int64_t>(dice.pick(300))});
            send(LogMetric{ids_.back(), dice.metric()});
        } else if (kind < 13) {
            send(DeleteRun{known});
        } else if (kind == 13) {
            send(RestoreRun{known});
        } else if (kind == 14) {
            send(UpdateRun{.run_id = known,
                           .start_time_ms = static_cast<std::int64_t>(dice.pick(300))});
        } else if (kind == 15) {
            if (dice.chance(50))
                send(DeleteExperiment{1});
            else
                send(RestoreExperiment{1});
        } else if (kind < 18) {
            send(DeleteRun{ids_.back()});
            send(Operation(PurgeRuns{{ids_.back(), known}, std::int64_t{1} << 60}));
            send(Operation(PurgeRows{static_cast<std::int64_t>(1 + dice.pick(20))}));
        } else if (kind == 18) {
            import_run(dice, dice.chance(50) ? known : "import" + std::to_string(number));
        } else {
            Atomic fails;
            fails.commands.emplace_back(LogMetric{known, dice.metric()});
            fails.commands.emplace_back(CreateRun{.run_id = "gone" + std::to_string(number)});
            fails.commands.emplace_back(LogMetric{"nobody", dice.metric()});
            send(std::move(fails));
        }
    }

    void import_run(Dice& dice, const std::string& id) {
        ImportRun import;
        import.run.info.run_id = id;
        import.run.info.experiment_id = static_cast<std::int64_t>(dice.pick(2));
        import.run.info.start_time_ms = static_cast<std::int64_t>(dice.pick(300));
        import.is_update = true;
        send(ImportRows(std::move(import)));
        ImportMetrics metrics{id, {{"a", {{1, 1, dice.value()}, {2, 2, dice.value()}}}}};
        send(ImportRows(std::move(metrics)));
        send(ImportRows(FinishImportedRun{id, LifecycleStage::kActive, {}}));
        ids_.push_back(id);
    }

    /// Every tenth is waited for, so that groups of all sizes are committed.
    void send(Command command) {
        if (++sent_ % 10 == 0)
            static_cast<void>(store_->execute(std::move(command)));
        else
            store_->submit(std::move(command), nullptr);
    }

    /// Up to three pages of one search, both ways. The number of runs on them.
    Result<std::size_t> compare(const ReadSnapshot& snapshot, SearchRuns query) {
        SearchRuns reference = by_sql(query);
        std::size_t count = 0;
        for (int page = 0; page < 3; ++page) {
            TUNE_TRY(found, find_runs(snapshot, query));
            TUNE_TRY(expected, find_runs(snapshot, reference));
            EXPECT_EQ(found.rows, expected.rows)
                << query.filter << " by " << testing::PrintToString(query.order_by) << " page "
                << page << " of " << query.max_results;
            EXPECT_EQ(found.next_page_token.empty(), expected.next_page_token.empty());
            count += found.rows.size();
            if (found.next_page_token.empty() || expected.next_page_token.empty()) break;
            query.page_token = found.next_page_token;
            reference.page_token = expected.next_page_token;
        }
        return count;
    }

    std::size_t compare_once(Dice& dice) {
        const Result<std::size_t> count = store_->snapshot(
            [&](auto& snapshot) { return compare(snapshot, random_search(dice)); });
        EXPECT_TRUE(count) << count.error().text();
        return count ? *count : 0;
    }

    std::vector<std::string> ids_;
    int sent_ = 0;
};

TEST_F(MetricColumnsPropertyTest, PagesAreThoseOfSqlWhateverChanges) {
    std::atomic<bool> is_over{false};
    std::atomic<std::size_t> compared{0};
    std::vector<std::thread> readers;
    for (unsigned seed = 0; seed < kReaders; ++seed)
        readers.emplace_back([&, seed] {
            Dice dice(100 + seed);
            while (!is_over && !HasFailure()) compared += compare_once(dice);
        });
    Dice dice(7);
    for (int number = 0; number < change_count() && !HasFailure(); ++number) change(dice, number);
    is_over = true;
    for (std::thread& reader : readers) reader.join();
    for (int i = 0; i < 100; ++i) compared += compare_once(dice);
    EXPECT_GT(compared, 1'000u);
    std::printf("compared %zu runs\n", compared.load());
}

/// Many runs that only their ids tell apart.
TEST_F(MetricColumnsPropertyTest, IdsDecideAmongEqualRuns) {
    Atomic group;
    for (int i = 0; i < 6'000; ++i) {
        const std::string id = "twin" + std::to_string(i * 7'919 % 6'000);
        group.commands.emplace_back(CreateRun{.run_id = id, .start_time_ms = 5'000});
        group.commands.emplace_back(LogMetric{id, {"t", i < 5'000 ? 1.0 : 2.0, 1, 1}});
        if (i % 1'000 == 999) run<AtomicOutcome>(std::exchange(group, {}));
    }
    for (const char* filter : {"metrics.t = 1", "metrics.t = 2", "metrics.t > 0"})
        for (const std::int64_t max_results : {10, 900}) {
            SearchRuns query{.experiment_ids = {0}, .filter = filter, .max_results = max_results};
            for (const bool is_ordered : {false, true}) {
                if (is_ordered) query.order_by = {"metrics.t DESC"};
                const auto count =
                    store_->snapshot([&](auto& snapshot) { return compare(snapshot, query); });
                ASSERT_TRUE(count);
                EXPECT_GE(*count, static_cast<std::size_t>(max_results));
            }
        }
}

}  // namespace
}  // namespace tune::tracker
