#include <algorithm>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using RunsTest = StoreTest;

TEST_F(RunsTest, CreatesWithGeneratedIdAndName) {
    const Run run1 = run<Run>(CreateRun{.experiment_id = 0,
                                        .user_id = "me",
                                        .start_time_ms = 42,
                                        .tags = {{"b", "2"}, {"a", "1"}}});
    EXPECT_EQ(run1.info.run_id.size(), 32u);
    EXPECT_EQ(run1.info.run_id.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(std::count(run1.info.run_name.begin(), run1.info.run_name.end(), '-'), 2)
        << run1.info.run_name;
    EXPECT_LE(run1.info.run_name.size(), 20u);
    EXPECT_EQ(run1.info.artifact_uri, "mlflow-artifacts:/0/" + run1.info.run_id + "/artifacts");
    EXPECT_EQ(run1.info.status, RunStatus::kRunning);
    EXPECT_EQ(pairs(run1.tags), "a=1 b=2 mlflow.runName=" + run1.info.run_name);
    const Run read = get(run1.info.run_id);
    EXPECT_EQ(read.info.run_name, run1.info.run_name);
    EXPECT_EQ(read.info.user_id, "me");
    EXPECT_EQ(read.info.start_time_ms, 42);
    EXPECT_FALSE(read.info.end_time_ms);
    EXPECT_EQ(read.tags, run1.tags);
    EXPECT_NE(create_run(), create_run());
}

TEST_F(RunsTest, NameAndTagAreOne) {
    const Run by_name = run<Run>(CreateRun{.experiment_id = 0, .run_name = "a"});
    EXPECT_EQ(pairs(by_name.tags), "mlflow.runName=a");
    const Run by_tag = run<Run>(CreateRun{.experiment_id = 0, .tags = {{"mlflow.runName", "b"}}});
    EXPECT_EQ(by_tag.info.run_name, "b");
    EXPECT_EQ(
        refusal(CreateRun{.experiment_id = 0, .run_name = "a", .tags = {{"mlflow.runName", "b"}}}),
        "INVALID_PARAMETER_VALUE: Both 'run_name' argument and 'mlflow.runName' tag are "
        "specified, but with different values (run_name='a', mlflow.runName='b').");
    const std::string id = by_name.info.run_id;
    run(SetTag{id, {"mlflow.runName", "c"}});
    EXPECT_EQ(get(id).info.run_name, "c");
    EXPECT_EQ(run<RunInfo>(UpdateRun{.run_id = id, .run_name = "d"}).run_name, "d");
    EXPECT_EQ(pairs(get(id).tags), "mlflow.runName=d");
    run<RunInfo>(UpdateRun{.run_id = id, .run_name = ""});
    run(SetTag{id, {"mlflow.runName", ""}});
    EXPECT_EQ(get(id).info.run_name, "d");
    EXPECT_EQ(pairs(get(id).tags), "mlflow.runName=d");
    run(LogBatch{.run_id = id, .tags = {{"mlflow.runName", "e"}}});
    EXPECT_EQ(get(id).info.run_name, "e");
}

TEST_F(RunsTest, TheCallerMayChooseTheId) {
    EXPECT_EQ(create_run(0, "my-Run_1"), "my-Run_1");
    EXPECT_EQ(refusal(CreateRun{.experiment_id = 0, .run_id = "my-Run_1"}),
              "RESOURCE_ALREADY_EXISTS: Run with id=my-Run_1 already exists.");
    EXPECT_EQ(refusal(CreateRun{.experiment_id = 0, .run_id = "-x"}),
              "INVALID_PARAMETER_VALUE: Invalid value \"-x\" for parameter 'run_id' supplied.");
    EXPECT_FALSE(refusal(CreateRun{.experiment_id = 0, .run_id = "a/b"}).empty());
    EXPECT_FALSE(refusal(CreateRun{.experiment_id = 0, .run_id = std::string(257, 'a')}).empty());
}

TEST_F(RunsTest, TagsAtCreationMayHaveAnyKey) {
    const Run created = run<Run>(CreateRun{
        .experiment_id = 0, .run_name = "n", .tags = {{"odd@key", std::string(9'000, 'x')}}});
    EXPECT_EQ(get(created.info.run_id).tags[1].value.size(), 8'000u);
    EXPECT_EQ(refusal(CreateRun{.experiment_id = 0, .tags = {{std::string(251, 'k'), "v"}}}),
              "INVALID_PARAMETER_VALUE: 'key' exceeds the maximum length of 250 characters");
}

TEST_F(RunsTest, UpdatesOnlyWhatIsGiven) {
    const std::string id = create_run();
    RunInfo info =
        run<RunInfo>(UpdateRun{.run_id = id, .status = RunStatus::kFailed, .end_time_ms = 77});
    EXPECT_EQ(info.status, RunStatus::kFailed);
    EXPECT_EQ(info.end_time_ms, 77);
    info = run<RunInfo>(UpdateRun{.run_id = id, .status = RunStatus::kRunning});
    EXPECT_EQ(info.end_time_ms, 77);
    info = run<RunInfo>(UpdateRun{.run_id = id, .start_time_ms = 5});
    EXPECT_EQ(info.start_time_ms, 5);
    const auto read = store_->get_run_info(id);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->status, RunStatus::kRunning);
    EXPECT_EQ(read->end_time_ms, 77);
    EXPECT_EQ(read->start_time_ms, 5);
}

TEST_F(RunsTest, QueuedRunsAreScheduled) {
    const Run queued = run<Run>(CreateRun{.experiment_id = 0, .status = RunStatus::kScheduled});
    EXPECT_EQ(get(queued.info.run_id).info.status, RunStatus::kScheduled);
}

TEST_F(RunsTest, MissingOnesAreReportedAsMissing) {
    const std::string expected = "RESOURCE_DOES_NOT_EXIST: Run with id=nope not found";
    EXPECT_EQ(text_of(store_->get_run("nope")), expected);
    EXPECT_EQ(text_of(store_->get_run_info("nope")), expected);
    for (const Command& command :
         {Command(UpdateRun{.run_id = "nope"}), Command(DeleteRun{"nope"}),
          Command(RestoreRun{"nope"}), Command(LogMetric{"nope", {"a", 1, 1, 1}}),
          Command(LogParam{"nope", {"a", "1"}}), Command(SetTag{"nope", {"a", "1"}}),
          Command(DeleteTag{"nope", "a"}), Command(LogBatch{.run_id = "nope"}),
          Command(LogInputs{.run_id = "nope"}), Command(LogOutputs{.run_id = "nope"})})
        EXPECT_EQ(refusal(command), expected);
}

TEST_F(RunsTest, DeletedOnesAreReadButNotWritten) {
    const std::string id = create_run();
    log(id, "a", 1);
    run(DeleteRun{id});
    run(DeleteRun{id});
    EXPECT_EQ(get(id).info.lifecycle_stage, LifecycleStage::kDeleted);
    EXPECT_EQ(history(id, "a"), "0:1@0");
    const std::string expected = "INVALID_PARAMETER_VALUE: The run " + id +
                                 " must be in the 'active' state. Current state is deleted.";
    for (const Command& command :
         {Command(UpdateRun{.run_id = id}), Command(LogMetric{id, {"a", 1, 1, 1}}),
          Command(LogParam{id, {"a", "1"}}), Command(SetTag{id, {"a", "1"}}),
          Command(DeleteTag{id, "a"}), Command(LogBatch{.run_id = id}),
          Command(LogInputs{.run_id = id}), Command(LogOutputs{.run_id = id})})
        EXPECT_EQ(refusal(command), expected);
    run(RestoreRun{id});
    run(RestoreRun{id});
    log(id, "a", 2, 1);
    EXPECT_EQ(get(id).info.lifecycle_stage, LifecycleStage::kActive);
}

TEST_F(RunsTest, ObserversSeeEachStep) {
    const std::string id = create_run();
    run<RunInfo>(UpdateRun{.run_id = id, .status = RunStatus::kFinished});
    run(DeleteRun{id});
    run(DeleteRun{id});  // no change, no event
    store_->wait_for_observers();
    ASSERT_EQ(observer_.of<RunCreated>().size(), 1u);
    EXPECT_EQ(observer_.of<RunCreated>()[0].info.run_id, id);
    const auto updates = observer_.of<RunUpdated>();
    ASSERT_EQ(updates.size(), 2u);
    EXPECT_EQ(updates[0].info.status, RunStatus::kFinished);
    EXPECT_EQ(updates[1].info.lifecycle_stage, LifecycleStage::kDeleted);
}

TEST_F(RunsTest, SurviveReopening) {
    const std::string id = create_run();
    log(id, "a", 0.5, 3, 9);
    run(LogParam{id, {"p", "1"}});
    run(SetTag{id, {"t", "2"}});
    const std::int64_t position = store_->last_position();
    reopen();
    EXPECT_EQ(store_->last_position(), position);
    const Run read = get(id);
    EXPECT_EQ(text(read.metrics), "3:0.5@9");
    EXPECT_EQ(pairs(read.params), "p=1");
    create_run();
    EXPECT_EQ(store_->last_position(), position + 1);
}

TEST_F(RunsTest, NamesOfStatesRoundTrip) {
    for (const RunStatus status : {RunStatus::kRunning, RunStatus::kScheduled, RunStatus::kFinished,
                                   RunStatus::kFailed, RunStatus::kKilled})
        EXPECT_EQ(status_from_name(status_name(status)), status);
    EXPECT_FALSE(status_from_name("BOGUS"));
    EXPECT_TRUE(is_terminal(RunStatus::kKilled));
    EXPECT_FALSE(is_terminal(RunStatus::kScheduled));
    EXPECT_EQ(logged_model_status_from_name("LOGGED_MODEL_READY"), LoggedModelStatus::kReady);
}

}  // namespace
}  // namespace tune::tracker
