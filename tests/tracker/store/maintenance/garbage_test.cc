// Removing for good what was deleted.

#include <map>

#include "tests/tracker/store/store_fixture.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/maintenance/read_garbage.h"

namespace tune::tracker {
namespace {

class GarbageTest : public StoreTest {
protected:
    /// A run with something in every table that refers to runs.
    std::string full_run(ExperimentId experiment_id, const std::string& own_key = "m") {
        const std::string id = create_run(experiment_id);
        LogBatch batch{.run_id = id, .params = {{"p", "1"}}, .tags = {{"t", "1"}}};
        for (int i = 0; i < 900; ++i) batch.metrics.push_back({own_key, 0.5 * i, i, i});
        run(batch);
        DatasetInput input;
        input.dataset = {"d", id.substr(0, 30), "local", "file"};
        input.tags = {{"mlflow.data.context", "train"}};
        run(LogInputs{.run_id = id, .datasets = {input}, .models = {{"m-1"}}});
        run(LogOutputs{.run_id = id, .models = {{"m-2", 1}}});
        return id;
    }

    std::int64_t purge(const std::vector<std::string>& ids, std::int64_t until_ms) {
        return run<PurgeProgress>(Operation(PurgeRuns{ids, until_ms})).count;
    }

    /// PurgeRows until nothing is left; metric points that went.
    std::int64_t purge_rows(std::int64_t rows_max = 7) {
        std::int64_t points = 0;
        for (;;) {
            const auto step = run<PurgeProgress>(Operation(PurgeRows{rows_max}));
            EXPECT_LE(step.count, rows_max);
            points += step.metric_points;
            if (step.is_done) return points;
        }
    }

    std::int64_t number(const std::string& sql) {
        return *store_->snapshot([&](sqlite::Connection& connection) -> Result<std::int64_t> {
            TUNE_TRY(select, connection.prepare(sql));
            TUNE_TRY_VOID(select.step());
            return select.integer(0);
        });
    }

    /// Names of tables with a column of this name.
    std::vector<std::string> tables_with(const std::string& column) {
        return *store_->snapshot(
            [&](sqlite::Connection& connection) -> Result<std::vector<std::string>> {
                TUNE_TRY(select, connection.prepare(
                                     "SELECT s.name FROM sqlite_schema s, pragma_table_info(s.name)"
                                     " c WHERE s.type = 'table' AND c.name = ? ORDER BY s.name"));
                select.with(column);
                std::vector<std::string> tables;
                for (;;) {
                    TUNE_TRY(has_row, select.step());
                    if (!has_row) return tables;
                    tables.emplace_back(select.text(0));
                }
            });
    }

    void sweep_keys() {
        run(Operation(BeginKeySweep{}));
        run<PurgeProgress>(Operation(SweepKeys{unmarked(), true}));
    }

    std::vector<std::int64_t> unmarked() {
        return *store_->snapshot(
            [](sqlite::Connection& connection) -> Result<std::vector<std::int64_t>> {
                TUNE_TRY(last, last_key(connection));
                std::vector<bool> used(static_cast<std::size_t>(last) + 1);
                std::optional<std::int64_t> next = 0;
                while (next) {
                    TUNE_TRY(after, mark_used_keys(connection, *next, 2, used));
                    next = after;
                }
                return unmarked_keys(connection, used, 0, 1'000);
            });
    }
};

TEST_F(GarbageTest, ARunIsRemovedFromEveryTable) {
    const ExperimentId experiment = create_experiment("x");
    const std::string kept = full_run(experiment);
    const std::string gone = full_run(experiment);
    std::map<std::string, std::int64_t> before;
    for (const std::string& table : tables_with("run_row"))
        before[table] = number("SELECT count(*) FROM " + table);
    const std::int64_t tags = number("SELECT count(*) FROM input_tags");
    run(DeleteRun{gone});
    EXPECT_EQ(purge({gone}, clock_.now_ms()), 1);
    EXPECT_EQ(text_of(store_->get_run(gone)),
              "RESOURCE_DOES_NOT_EXIST: Run with id=" + gone + " not found");
    EXPECT_NE(refusal(RestoreRun{gone}), "");
    EXPECT_EQ(purge_rows(), 900);
    // Whoever adds a table that refers to runs must remove its rows too.
    for (const auto& [table, count] : before)
        EXPECT_EQ(number("SELECT count(*) FROM " + table), count / 2) << table;
    EXPECT_EQ(number("SELECT count(*) FROM input_tags"), tags / 2);
    EXPECT_EQ(get(kept).metrics.size(), 1u);
    EXPECT_EQ(store_->metric_history(kept, "m")->items.size(), 900u);
}

TEST_F(GarbageTest, WhatIsNotDeletedLongEnoughStays) {
    const std::string active = full_run(0);
    const std::string young = full_run(0);
    run(DeleteRun{young});
    const std::string restored = full_run(0);
    run(DeleteRun{restored});
    run(RestoreRun{restored});
    EXPECT_EQ(purge({active, young, restored, "none"}, clock_.now_ms() - 1), 0);
    purge_rows();
    for (const std::string& id : {active, young, restored})
        EXPECT_EQ(store_->metric_history(id, "m")->items.size(), 900u);
    clock_.advance_ms(1);
    EXPECT_EQ(purge({active, young, restored, "none"}, clock_.now_ms() - 1), 1);
}

TEST_F(GarbageTest, ANewRunOnAnOldNumberBeginsEmpty) {
    const std::string gone = full_run(0);
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    // The hidden run keeps its number while its rows are there.
    run<PurgeProgress>(Operation(PurgeRows{2}));
    const std::string early = create_run();
    EXPECT_TRUE(get(early).metrics.empty());
    purge_rows();
    const std::string late = create_run();
    log(late, "m", 7, 1, 1);
    log(early, "m", 8, 1, 1);
    EXPECT_EQ(history(late, "m"), "1:7@1");
    EXPECT_EQ(history(early, "m"), "1:8@1");
    reopen();
    EXPECT_EQ(history(late, "m"), "1:7@1");
}

TEST_F(GarbageTest, PointsOfTheSameTransactionGoToo) {
    const std::string id = create_run();
    run<AtomicOutcome>(
        Atomic{{LogMetric{id, {"m", 1, 1, 1}}, DeleteRun{id},
                Operation(PurgeRuns{{id}, clock_.now_ms()}), Operation(PurgeRows{100})}});
    EXPECT_EQ(number("SELECT count(*) FROM latest_metrics"), 0);
    const std::string next = create_run();
    log(next, "m", 2, 2, 2);
    EXPECT_EQ(history(next, "m"), "2:2@2");
}

TEST_F(GarbageTest, ACrashInTheMiddleIsGoneOnWith) {
    const std::string gone = full_run(0);
    const std::string kept = full_run(0);
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    run<PurgeProgress>(Operation(PurgeRows{3}));
    reopen();
    EXPECT_NE(text_of(store_->get_run(gone)), "");
    purge_rows();
    EXPECT_EQ(number("SELECT count(*) FROM runs"), 1);
    EXPECT_EQ(number("SELECT count(*) FROM garbage_folders"), 1);
    EXPECT_EQ(store_->metric_history(kept, "m")->items.size(), 900u);
}

TEST_F(GarbageTest, FoldersAreNotedUntilTheyAreGone) {
    const std::string gone = create_run();
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    const auto folders = *store_->snapshot(
        [](sqlite::Connection& connection) { return garbage_folders(connection, 0, 10); });
    ASSERT_EQ(folders.size(), 1u);
    EXPECT_EQ(folders[0].artifact_uri, "mlflow-artifacts:/0/" + gone);
    run(Operation(ForgetFolders{{folders[0].folder_row}}));
    EXPECT_EQ(number("SELECT count(*) FROM garbage_folders"), 0);
}

TEST_F(GarbageTest, AnExperimentGoesWhenItIsEmptyOnly) {
    const ExperimentId experiment = create_experiment("x");
    const std::string id = full_run(experiment);
    const auto model = run<LoggedModel>(CreateLoggedModel{.experiment_id = experiment});
    run(LogBatch{.run_id = id, .metrics = {{.key = "m", .value = 1, .model_id = model.model_id}}});
    run(DeleteExperiment{experiment});
    const auto purge_experiment = [&] {
        return run<PurgeProgress>(Operation(PurgeExperiment{experiment, clock_.now_ms()})).count;
    };
    EXPECT_EQ(purge_experiment(), 0);
    EXPECT_EQ(purge({id}, clock_.now_ms()), 1);
    EXPECT_EQ(purge_experiment(), 0);
    const auto models =
        run<PurgeProgress>(Operation(PurgeModels{{model.model_id}, clock_.now_ms()}));
    EXPECT_EQ(models.count, 1);
    purge_rows();
    EXPECT_EQ(purge_experiment(), 1);
    EXPECT_NE(text_of(store_->get_experiment(experiment)), "");
    for (const std::string& table : tables_with("model_row"))
        EXPECT_EQ(number("SELECT count(*) FROM " + table), 0) << table;
    EXPECT_GT(create_experiment("x"), experiment);
}

TEST_F(GarbageTest, DatasetsWithoutARunAreSwept) {
    const std::string gone = full_run(0);
    full_run(0);
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    purge_rows();
    EXPECT_EQ(number("SELECT count(*) FROM datasets"), 2);
    PurgeProgress step;
    std::int64_t count = 0;
    while (!step.is_done) {
        step = run<PurgeProgress>(Operation(SweepDatasets{step.next, 1}));
        count += step.count;
    }
    EXPECT_EQ(count, 1);
    EXPECT_EQ(number("SELECT count(*) FROM datasets"), 1);
}

TEST_F(GarbageTest, NamesThatNothingUsesAreSwept) {
    // Whoever adds a table that refers to names must mark them in mark_used_keys.
    EXPECT_EQ(tables_with("key_id"),
              (std::vector<std::string>{"keys", "latest_metrics", "marked_points", "metric_blocks",
                                        "metric_marks", "metric_spans", "params",
                                        "suggested_params", "tags"}));
    const std::string gone = full_run(0, "only here");
    const std::string kept = full_run(0);
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    purge_rows();
    const std::int64_t before = number("SELECT count(*) FROM keys");
    sweep_keys();
    EXPECT_EQ(number("SELECT count(*) FROM keys"), before - 1);
    EXPECT_EQ(number("SELECT count(*) FROM keys WHERE name = 'only here'"), 0);
    log(kept, "only here", 1, 1, 1);
    EXPECT_EQ(history(kept, "only here"), "1:1@1");
    EXPECT_EQ(store_->metric_history(kept, "m")->items.size(), 900u);
}

TEST_F(GarbageTest, ANameThatCameIntoUseMeanwhileStays) {
    const std::string gone = full_run(0, "a");
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    purge_rows();
    const std::string id = create_run();
    run(Operation(BeginKeySweep{}));
    const std::vector<std::int64_t> ids = unmarked();
    EXPECT_FALSE(ids.empty());
    log(id, "a", 1, 1, 1);
    run<PurgeProgress>(Operation(SweepKeys{ids, true}));
    EXPECT_EQ(history(id, "a"), "1:1@1");
    EXPECT_EQ(refusal(Operation(SweepKeys{ids, true})),
              "INVALID_STATE: Nobody watches which names are used; begin again.");
}

TEST_F(GarbageTest, TheFileIsMadeSmaller) {
    const std::string gone = create_run();
    for (int i = 0; i < 100; ++i) {
        LogBatch batch{.run_id = gone};
        for (int k = 0; k < 1'000; ++k)
            batch.metrics.push_back({"m" + std::to_string(k), 1.0 / (i + k + 1), i, i});
        run(batch);
    }
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    purge_rows(1'000);
    const auto use = [&] {
        return *store_->snapshot([](sqlite::Connection& c) { return file_use(c); });
    };
    const FileUse before = use();
    EXPECT_TRUE(before.can_shrink);
    EXPECT_GT(before.free_bytes, 500'000);
    while (!run<PurgeProgress>(Operation(ShrinkFile{100})).is_done) {
    }
    EXPECT_EQ(use().free_bytes, 0);
    EXPECT_LE(use().file_bytes, before.file_bytes - before.free_bytes);
}

TEST_F(GarbageTest, BlocksGoOnlyWithHiddenRuns) {
    const std::string kept = full_run(0);
    const std::string gone = full_run(0);
    const auto blocks = [&] {
        return *store_->snapshot([](sqlite::Connection& c) { return garbage_blocks(c, 1'000); });
    };
    run(DeleteRun{gone});
    EXPECT_TRUE(blocks().empty()) << "deleted is not hidden: it can be restored";
    const std::int64_t all = number("SELECT count(*) FROM metric_blocks");
    std::vector<std::int64_t> ids;
    for (std::int64_t id = 40; id >= -1; --id) ids.push_back(id);  // of both, and of nobody
    EXPECT_EQ(run<PurgeProgress>(Operation(PurgeBlocks{ids})).count, 0);
    purge({gone}, clock_.now_ms());
    EXPECT_EQ(std::ssize(blocks()), all / 2);
    std::int64_t count = 0;
    for (std::size_t done = 0; done < ids.size();) {
        const std::vector<std::int64_t> rest(ids.begin() + static_cast<std::ptrdiff_t>(done),
                                             ids.end());
        const auto step = run<PurgeProgress>(Operation(PurgeBlocks{rest}));
        count += step.count;
        done += static_cast<std::size_t>(step.next);
        EXPECT_GT(step.next, 0);
        EXPECT_EQ(step.is_done, done == ids.size());
    }
    EXPECT_EQ(count, all / 2);
    EXPECT_TRUE(blocks().empty());
    EXPECT_EQ(store_->metric_history(kept, "m")->items.size(), 900u);
    EXPECT_EQ(purge_rows(), 900) << "points are counted by the row of their metric";
    EXPECT_EQ(run<PurgeProgress>(Operation(PurgeBlocks{})).is_done, true);
    EXPECT_EQ(refusal(Operation(PurgeBlocks{std::vector<std::int64_t>(kPurgeBlocksMax + 1)})),
              "INVALID_PARAMETER_VALUE: At most 2048 blocks can be removed at once.");
}

TEST_F(GarbageTest, ANumberOfABlockThatWentMayBelongToALivingRun) {
    const std::string gone = full_run(0);
    run(DeleteRun{gone});
    purge({gone}, clock_.now_ms());
    const auto ids =
        *store_->snapshot([](sqlite::Connection& c) { return garbage_blocks(c, 1'000); });
    EXPECT_EQ(run<PurgeProgress>(Operation(PurgeBlocks{ids})).count, std::ssize(ids));
    const std::string next = full_run(0);
    EXPECT_GT(number("SELECT count(*) FROM metric_blocks WHERE block_id <= " +
                     std::to_string(ids.back())),
              0);
    EXPECT_EQ(run<PurgeProgress>(Operation(PurgeBlocks{ids})).count, 0);
    EXPECT_EQ(store_->metric_history(next, "m")->items.size(), 900u);
}

TEST_F(GarbageTest, ListingsFindWhatIsDeletedLongEnough) {
    const ExperimentId experiment = create_experiment("x");
    const std::string first = create_run(0);
    const std::string second = create_run(experiment);
    const std::string active = create_run(0);
    run(DeleteRun{first});
    run(DeleteExperiment{experiment});
    const auto runs = [&](GarbageChoice choice) {
        std::vector<std::string> ids;
        GarbagePage page;
        do {
            page = *store_->snapshot(
                [&](sqlite::Connection& c) { return garbage_runs(c, choice, page.next_row, 1); });
            ids.insert(ids.end(), page.ids.begin(), page.ids.end());
        } while (!page.ids.empty());
        return ids;
    };
    const std::int64_t now_ms = clock_.now_ms();
    EXPECT_EQ(runs({now_ms}), (std::vector<std::string>{first, second}));
    EXPECT_TRUE(runs({now_ms - 1}).empty());
    EXPECT_EQ(runs({now_ms, {first}}), std::vector<std::string>{first});
    EXPECT_EQ(runs({now_ms, {}, {experiment}}), std::vector<std::string>{second});
    EXPECT_EQ(runs({now_ms, {first, active}, {experiment}}),
              (std::vector<std::string>{first, second}));
    const auto check = [&](GarbageChoice choice) {
        return text_of(store_->snapshot([&](sqlite::Connection& c) -> Result<int> {
            TUNE_TRY_VOID(check_garbage(c, choice));
            return 0;
        }));
    };
    EXPECT_EQ(check({now_ms, {first}, {experiment}}), "");
    EXPECT_EQ(check({now_ms, {active}}),
              "INVALID_PARAMETER_VALUE: Only deleted runs can be removed for good; these are not "
              "deleted: " +
                  active + ".");
    EXPECT_EQ(check({now_ms - 1, {first}}),
              "INVALID_PARAMETER_VALUE: These runs were deleted later than older_than allows: " +
                  first + ".");
    EXPECT_EQ(check({now_ms, {"x"}}), "RESOURCE_DOES_NOT_EXIST: Run with id=x not found");
    EXPECT_EQ(check({now_ms, {}, {0}}),
              "INVALID_PARAMETER_VALUE: Only deleted experiments can be removed for good; these "
              "are not deleted: 0.");
    EXPECT_EQ(check({now_ms, {}, {77}}),
              "RESOURCE_DOES_NOT_EXIST: No Experiment with id=77 exists");
}

}  // namespace
}  // namespace tune::tracker
