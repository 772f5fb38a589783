#include "tracker/maintenance/garbage_collector.h"

#include <fstream>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

class GarbageCollectorTest : public StoreTest {
protected:
    void SetUp() override {
        StoreTest::SetUp();
        artifacts_ = ArtifactStore::open(directory_.path() / "artifacts").value();
    }

    std::string full_run(ExperimentId experiment, int points) {
        const std::string id = create_run(experiment);
        for (int i = 0; i < points; i += 500) {
            LogBatch batch{.run_id = id, .params = {{"p", "1"}}};
            for (int k = i; k < i + 500; ++k) batch.metrics.push_back({"m-" + id, 0.5, k, k});
            run(batch);
        }
        EXPECT_TRUE(artifacts_->put(std::to_string(experiment) + "/" + id + "/artifacts/a/b.txt",
                                    "content"));
        return id;
    }

    bool has_folder(ExperimentId experiment, const std::string& id) {
        return std::filesystem::exists(directory_.path() / "artifacts" /
                                       std::to_string(experiment) / id);
    }

    Result<GarbageReport> collect(GarbageChoice choice) {
        return collect_garbage(*store_, *artifacts_, choice, [](const Progress&) { return true; });
    }

    std::unique_ptr<ArtifactStore> artifacts_;
};

TEST_F(GarbageCollectorTest, RemovesRunsExperimentsModelsAndTheirFiles) {
    const ExperimentId experiment = create_experiment("gone");
    const std::string in_experiment = full_run(experiment, 1'000);
    const std::string alone = full_run(0, 2'000);
    const std::string kept = full_run(0, 500);
    const auto model = run<LoggedModel>(CreateLoggedModel{.experiment_id = 0});
    run(DeleteLoggedModel{model.model_id});
    run(DeleteExperiment{experiment});
    run(DeleteRun{alone});
    const GarbageChoice choice{clock_.now_ms()};
    const auto counted =
        count_garbage(*store_, choice, [](const Progress&) { return true; }).value();
    EXPECT_EQ(counted.runs, 2);
    EXPECT_EQ(counted.metric_points, 3'000);
    EXPECT_TRUE(has_folder(0, alone));
    const GarbageReport report = collect(choice).value();
    EXPECT_EQ(report.runs, 2);
    EXPECT_EQ(report.experiments, 1);
    EXPECT_EQ(report.logged_models, 1);
    EXPECT_EQ(report.metric_points, 3'000);
    EXPECT_EQ(report.names, 2);
    EXPECT_EQ(report.folders, 4);
    EXPECT_FALSE(has_folder(0, alone));
    EXPECT_FALSE(has_folder(experiment, in_experiment));
    EXPECT_TRUE(has_folder(0, kept));
    EXPECT_EQ(store_->metric_history(kept, "m-" + kept)->items.size(), 500u);
    const GarbageReport again = collect(choice).value();
    EXPECT_EQ(again.runs + again.experiments + again.logged_models + again.folders, 0);
}

TEST_F(GarbageCollectorTest, TheFileKeepsWhatLivesBetweenTheGarbage) {
    std::vector<std::string> kept;
    std::vector<std::string> gone;
    for (int i = 0; i < 24; ++i) (i % 3 == 0 ? kept : gone).push_back(create_run());
    // Blocks of all runs take turns in the file.
    for (int batch = 0; batch < 6; ++batch)
        for (const auto* ids : {&kept, &gone})
            for (const std::string& id : *ids) {
                LogBatch log{.run_id = id};
                for (int k = 0; k < 1'000; ++k)
                    log.metrics.push_back({"m" + std::to_string(k % 2), 0.1 * k, batch * 1'000 + k,
                                           batch * 1'000 + k});
                run(log);
            }
    for (const std::string& id : gone) run(DeleteRun{id});
    const GarbageReport report = collect({clock_.now_ms()}).value();
    EXPECT_EQ(report.runs, 16);
    EXPECT_EQ(report.metric_points, 16 * 6'000);
    EXPECT_EQ(report.free_bytes, 0);
    EXPECT_LT(report.file_bytes, report.file_bytes_before / 2);
    for (const std::string& id : kept)
        for (const char* key : {"m0", "m1"})
            EXPECT_EQ(store_->metric_history(id, key)->items.size(), 3'000u);
    const auto check = store_->snapshot([](sqlite::Connection& c) -> Result<std::string> {
        TUNE_TRY(select, c.prepare("PRAGMA integrity_check"));
        TUNE_TRY_VOID(select.step());
        return std::string(select.text(0));
    });
    EXPECT_EQ(check.value(), "ok");
    log(kept.front(), "m0", 7, 6'000, 6'000);
    EXPECT_EQ(store_->metric_history(kept.front(), "m0")->items.size(), 3'001u);
}

TEST_F(GarbageCollectorTest, TheUndeleteWindowIsKept) {
    const std::string id = full_run(0, 500);
    run(DeleteRun{id});
    EXPECT_EQ(collect({clock_.now_ms() - 1})->runs, 0);
    run(RestoreRun{id});
    EXPECT_EQ(collect({clock_.now_ms()})->runs, 0);
    EXPECT_EQ(store_->metric_history(id, "m-" + id)->items.size(), 500u);
}

TEST_F(GarbageCollectorTest, NamedOnesMustBeDeleted) {
    const std::string active = full_run(0, 500);
    EXPECT_NE(text_of(collect({clock_.now_ms(), {active}})), "");
    EXPECT_NE(text_of(collect({clock_.now_ms(), {"none"}})), "");
    const std::string gone = full_run(0, 500);
    const std::string other = full_run(0, 500);
    run(DeleteRun{gone});
    run(DeleteRun{other});
    EXPECT_EQ(collect({clock_.now_ms(), {gone}})->runs, 1);
    EXPECT_TRUE(has_folder(0, other));
    EXPECT_EQ(text_of(store_->get_run(other)), "");
}

TEST_F(GarbageCollectorTest, ArtifactsElsewhereAreLeftAlone) {
    const auto id = run<ExperimentId>(CreateExperiment{"s3", "s3://bucket/x"});
    create_run(id);
    run(DeleteExperiment{id});
    const GarbageReport report = collect({clock_.now_ms()}).value();
    EXPECT_EQ(report.folders_elsewhere, 1);
    EXPECT_EQ(report.folders, 0);
}

TEST_F(GarbageCollectorTest, AStoppedCollectionIsGoneOnWith) {
    const std::string gone = full_run(0, 20'000);
    const std::string kept = full_run(0, 500);
    run(DeleteRun{gone});
    int reports = 0;
    const auto stopped = collect_garbage(*store_, *artifacts_, {clock_.now_ms()},
                                         [&](const Progress&) { return ++reports < 2; });
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code, Code::kCancelled);
    reopen();
    const GarbageReport report = collect({clock_.now_ms()}).value();
    EXPECT_EQ(report.folders, 1);
    EXPECT_FALSE(has_folder(0, gone));
    EXPECT_EQ(store_->metric_history(kept, "m-" + kept)->items.size(), 500u);
}

TEST_F(GarbageCollectorTest, AFolderThatIsUsedAgainStays) {
    const std::string id = full_run(0, 500);
    run(DeleteRun{id});
    run<PurgeProgress>(Operation(PurgeRuns{{id}, clock_.now_ms()}));
    create_run(0, id);
    EXPECT_EQ(collect({clock_.now_ms()})->folders, 0);
    EXPECT_TRUE(has_folder(0, id));
}

}  // namespace
}  // namespace tune::tracker
