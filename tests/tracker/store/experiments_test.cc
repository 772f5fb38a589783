#include <filesystem>
#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using ExperimentsTest = StoreTest;

TEST_F(ExperimentsTest, DefaultIsAlwaysThere) {
    const auto experiment = store_->get_experiment(0);
    ASSERT_TRUE(experiment);
    EXPECT_EQ(experiment->name, "Default");
    EXPECT_EQ(experiment->artifact_location, "mlflow-artifacts:/0");
    EXPECT_EQ(experiment->creation_time_ms, 1'000);
    reopen();
    EXPECT_TRUE(store_->get_experiment(0));
}

TEST_F(ExperimentsTest, CreatesWithTagsAndLocation) {
    clock_.advance_ms(5);
    const auto id = run<ExperimentId>(
        CreateExperiment{.name = "a / b: \xc3\xa4", .tags = {{"z", "1"}, {"a", "2"}, {"z", "3"}}});
    EXPECT_EQ(id, 1);
    const auto experiment = store_->get_experiment(id);
    ASSERT_TRUE(experiment);
    EXPECT_EQ(experiment->name, "a / b: \xc3\xa4");
    EXPECT_EQ(experiment->artifact_location, "mlflow-artifacts:/1");
    EXPECT_EQ(pairs(experiment->tags), "a=2 z=3");
    EXPECT_EQ(experiment->creation_time_ms, 1'005);
    const auto own =
        run<ExperimentId>(CreateExperiment{.name = "own", .artifact_location = "s3://bucket/path"});
    EXPECT_EQ(store_->get_experiment(own)->artifact_location, "s3://bucket/path");
    EXPECT_EQ(store_->get_experiment_by_name("own")->experiment_id, own);
}

TEST_F(ExperimentsTest, MissingOnesAreReportedAsMissing) {
    EXPECT_EQ(text_of(store_->get_experiment(999)),
              "RESOURCE_DOES_NOT_EXIST: No Experiment with id=999 exists");
    EXPECT_EQ(text_of(store_->get_experiment_by_name("x")),
              "RESOURCE_DOES_NOT_EXIST: Could not find experiment with name 'x'");
    for (const Command& command :
         {Command(DeleteExperiment{9}), Command(RestoreExperiment{9}),
          Command(RenameExperiment{9, "x"}), Command(SetExperimentTag{9, {"a", "b"}}),
          Command(DeleteExperimentTag{9, "a"}), Command(CreateRun{.experiment_id = 9})})
        EXPECT_EQ(refusal(command), "RESOURCE_DOES_NOT_EXIST: No Experiment with id=9 exists");
}

TEST_F(ExperimentsTest, NamesAreUniqueAmongActiveOnes) {
    const auto id = create_experiment("a");
    EXPECT_EQ(refusal(CreateExperiment{.name = "a"}),
              "RESOURCE_ALREADY_EXISTS: Experiment(name=a) already exists.");
    const auto other = create_experiment("b");
    EXPECT_TRUE(refusal(RenameExperiment{other, "a"}).starts_with("RESOURCE_ALREADY_EXISTS"));
    run(DeleteExperiment{id});
    run(RenameExperiment{other, "a"});
    run(RenameExperiment{other, "b"});
    run(RenameExperiment{other, "c"});
    EXPECT_EQ(store_->get_experiment(other)->name, "c");
}

TEST_F(ExperimentsTest, TheNameOfADeletedOneIsFree) {
    const auto first = create_experiment("a");
    run(DeleteExperiment{first});
    EXPECT_EQ(store_->get_experiment_by_name("a")->experiment_id, first);
    const auto second = create_experiment("a");
    EXPECT_GT(second, first);
    EXPECT_EQ(store_->get_experiment_by_name("a")->experiment_id, second);
    EXPECT_EQ(refusal(CreateExperiment{.name = "a"}),
              "RESOURCE_ALREADY_EXISTS: Experiment(name=a) already exists.");
    EXPECT_EQ(refusal(RestoreExperiment{first}),
              "RESOURCE_ALREADY_EXISTS: Cannot restore experiment " + std::to_string(first) +
                  ": its name 'a' is used by experiment " + std::to_string(second) +
                  " by now. Rename or delete that one first.");
    clock_.advance_ms(1);
    run(DeleteExperiment{second});
    EXPECT_EQ(store_->get_experiment_by_name("a")->experiment_id, second) << "deleted last";
    run(RestoreExperiment{first});
    EXPECT_EQ(store_->get_experiment_by_name("a")->experiment_id, first);
    EXPECT_TRUE(refusal(RestoreExperiment{second}).starts_with("RESOURCE_ALREADY_EXISTS"));
    run(RenameExperiment{first, "b"});
    run(RestoreExperiment{second});
    EXPECT_EQ(store_->get_experiment_by_name("b")->experiment_id, first);
}

TEST_F(ExperimentsTest, NamesAreChecked) {
    EXPECT_EQ(refusal(CreateExperiment{.name = ""}),
              "INVALID_PARAMETER_VALUE: Invalid experiment name: ''");
    EXPECT_EQ(refusal(CreateExperiment{.name = std::string(501, 'x')}),
              "INVALID_PARAMETER_VALUE: 'name' exceeds the maximum length of 500 characters");
    std::string umlauts;
    for (int i = 0; i < 500; ++i) umlauts += "\xc3\xa4";
    create_experiment(umlauts);
    EXPECT_EQ(refusal(RenameExperiment{0, ""}),
              "INVALID_PARAMETER_VALUE: Invalid experiment name: ''");
}

TEST_F(ExperimentsTest, DeletingCascadesAndRestoringBringsAllBack) {
    const auto id = create_experiment("a");
    const std::string first = create_run(id);
    const std::string second = create_run(id);
    run(DeleteRun{first});
    clock_.advance_ms(7);
    run(DeleteExperiment{id});
    EXPECT_EQ(store_->get_experiment(id)->lifecycle_stage, LifecycleStage::kDeleted);
    EXPECT_EQ(store_->get_experiment(id)->last_update_time_ms, 1'007);
    EXPECT_EQ(get(second).info.lifecycle_stage, LifecycleStage::kDeleted);
    EXPECT_EQ(refusal(DeleteExperiment{id}),
              "RESOURCE_DOES_NOT_EXIST: No Experiment with id=1 exists");
    EXPECT_EQ(refusal(LogMetric{second, {"a", 1, 1, 1}}),
              "INVALID_PARAMETER_VALUE: The run " + second +
                  " must be in the 'active' state. Current state is deleted.");
    run(RestoreExperiment{id});
    EXPECT_EQ(get(first).info.lifecycle_stage, LifecycleStage::kActive);
    EXPECT_EQ(get(second).info.lifecycle_stage, LifecycleStage::kActive);
    log(second, "a", 1);
    EXPECT_EQ(refusal(RestoreExperiment{id}),
              "RESOURCE_DOES_NOT_EXIST: No Experiment with id=1 exists");
}

TEST_F(ExperimentsTest, DeletedOnesRefuseChanges) {
    const auto id = create_experiment("a");
    run(DeleteExperiment{id});
    const std::string expected =
        "INVALID_PARAMETER_VALUE: The experiment 1 must be in the 'active' state. Current state is "
        "deleted.";
    EXPECT_EQ(refusal(CreateRun{.experiment_id = id}), expected);
    EXPECT_EQ(refusal(SetExperimentTag{id, {"a", "b"}}), expected);
    EXPECT_EQ(refusal(DeleteExperimentTag{id, "a"}), expected);
    EXPECT_EQ(refusal(CreateLoggedModel{.experiment_id = id}), expected);
    EXPECT_EQ(refusal(RenameExperiment{id, "b"}),
              "INVALID_PARAMETER_VALUE: Cannot rename a non-active experiment.");
}

TEST_F(ExperimentsTest, TagsAreSetAndDeleted) {
    run(SetExperimentTag{0, {"a", "1"}});
    run(SetExperimentTag{0, {"a", "2"}});
    EXPECT_EQ(pairs(store_->get_experiment(0)->tags), "a=2");
    run(DeleteExperimentTag{0, "a"});
    EXPECT_EQ(pairs(store_->get_experiment(0)->tags), "");
    EXPECT_EQ(refusal(DeleteExperimentTag{0, "a"}),
              "RESOURCE_DOES_NOT_EXIST: No tag with name: a in experiment with id 0");
    run(SetExperimentTag{0, {"long", std::string(20'000, 'x')}});
    EXPECT_EQ(refusal(SetExperimentTag{0, {"long", std::string(20'001, 'x')}}),
              "INVALID_PARAMETER_VALUE: 'value' exceeds the maximum length of 20000 characters");
}

TEST_F(ExperimentsTest, CustomViewsAreLimited) {
    for (int i = 0; i < 50; ++i)
        run(SetExperimentTag{0, {"mlflow.customView.view" + std::to_string(i), "{}"}});
    EXPECT_EQ(refusal(SetExperimentTag{0, {"mlflow.customView.viewX", "{}"}}),
              "INVALID_PARAMETER_VALUE: Unable to create another custom view for experiment 0; the "
              "maximum number of custom views per experiment is 50. Delete an existing custom view "
              "before creating a new one.");
    run(SetExperimentTag{0, {"mlflow.customView.view7", "changed"}});
}

TEST_F(ExperimentsTest, ArtifactLocationsAreChecked) {
    const auto refused = [&](const std::string& location) {
        return refusal(CreateExperiment{.name = "x", .artifact_location = location});
    };
    EXPECT_EQ(refused("runs:/abc/x"),
              "INVALID_PARAMETER_VALUE: Artifact location cannot be a runs:/ URI. Given: "
              "'runs:/abc/x'");
    EXPECT_EQ(
        refused("s3://b/p#f"),
        "INVALID_PARAMETER_VALUE: 'artifact_location' URL can't include fragments or params.");
    EXPECT_EQ(
        refused("/b/p;a=b"),
        "INVALID_PARAMETER_VALUE: 'artifact_location' URL can't include fragments or params.");
    EXPECT_EQ(refused("s3://b/p?a=%252e%252e/x"), "INVALID_PARAMETER_VALUE: Invalid query string");
    EXPECT_TRUE(refused("HTTP://host/x")
                    .starts_with("INVALID_PARAMETER_VALUE: 'artifact_location' cannot use the "
                                 "'http' scheme"));
    EXPECT_TRUE(refused("mlflow-artifacts://host/x")
                    .starts_with("INVALID_PARAMETER_VALUE: 'artifact_location' cannot use the "
                                 "'mlflow-artifacts' scheme"));
    EXPECT_EQ(refused(std::string(2049, 'a')),
              "INVALID_PARAMETER_VALUE: Invalid artifact path length. The length of the artifact "
              "path cannot be greater than 2048 characters.");
    EXPECT_EQ(refused("mlflow-artifacts:/mine"), "");
}

TEST_F(ExperimentsTest, LocalLocationsAreMadeAbsolute) {
    const std::string here = std::filesystem::current_path().string();
    const auto stored = [&](const std::string& location) {
        const auto id = run<ExperimentId>(
            CreateExperiment{.name = "at " + location, .artifact_location = location});
        return store_->get_experiment(id)->artifact_location;
    };
    EXPECT_EQ(stored("a/./b"), here + "/a/b");
    EXPECT_EQ(stored("file:a"), "file://" + here + "/a");
    EXPECT_EQ(stored("/abs"), "/abs");
    EXPECT_EQ(stored("file:///abs"), "file:///abs");
    EXPECT_EQ(stored("gs://b/p;v=1"), "gs://b/p;v=1");
}

TEST_F(ExperimentsTest, IdsAreParsedStrictly) {
    EXPECT_EQ(*parse_experiment_id("12"), 12);
    for (const char* bad : {"", "abc", "1.5", "1 ", "99999999999999999999"})
        EXPECT_EQ(text_of(parse_experiment_id(bad)),
                  "INVALID_PARAMETER_VALUE: Invalid experiment "
                  "ID '" +
                      std::string(bad) +
                      "'. Experiment ID must be a valid "
                      "integer.");
}

TEST_F(ExperimentsTest, StatisticsCountRuns) {
    const auto id = create_experiment("a");
    run<Run>(CreateRun{.experiment_id = id, .start_time_ms = 5'000});
    const std::string done = create_run(id);
    run<RunInfo>(UpdateRun{.run_id = done, .status = RunStatus::kFinished, .end_time_ms = 9'000});
    run(DeleteRun{create_run(id)});
    const auto all = store_->experiment_statistics();
    ASSERT_TRUE(all);
    ASSERT_EQ(all->size(), 2u);
    EXPECT_EQ((*all)[0].run_count, 0);
    EXPECT_EQ((*all)[0].last_activity_ms, 1'000);
    EXPECT_EQ((*all)[1].experiment_id, id);
    EXPECT_EQ((*all)[1].run_count, 2);
    EXPECT_EQ((*all)[1].running_count, 1);
    EXPECT_EQ((*all)[1].last_activity_ms, 9'000);
}

TEST_F(ExperimentsTest, ObserversSeeTheNewState) {
    const auto id = create_experiment("a");
    run(SetExperimentTag{id, {"k", "v"}});
    run(DeleteExperiment{id});
    store_->wait_for_observers();
    const auto events = observer_.of<ExperimentChanged>();
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].experiment.artifact_location, "mlflow-artifacts:/1");
    EXPECT_EQ(pairs(events[1].experiment.tags), "k=v");
    EXPECT_EQ(events[2].experiment.lifecycle_stage, LifecycleStage::kDeleted);
}

}  // namespace
}  // namespace tune::tracker
