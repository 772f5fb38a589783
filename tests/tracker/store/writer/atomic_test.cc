#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

using AtomicTest = StoreTest;

TEST_F(AtomicTest, DoesAllAndAnswersEach) {
    const auto all = run<AtomicOutcome>(Atomic{{
        CreateRun{.experiment_id = 0, .run_id = "trial1", .run_name = "t"},
        LogBatch{.run_id = "trial1", .metrics = {{"m", 1, 1, 1}}, .params = {{"lr", "0.1"}}},
        PutDocument{"trials", "1", "{}"},
        UpdateRun{.run_id = "trial1", .status = RunStatus::kFinished},
    }});
    ASSERT_EQ(all.outcomes.size(), 4u);
    EXPECT_EQ(std::get<Run>(all.outcomes[0]).info.run_name, "t");
    EXPECT_EQ(std::get<RunInfo>(all.outcomes[3]).status, RunStatus::kFinished);
    const Run read = get("trial1");
    EXPECT_EQ(text(read.metrics), "1:1@1");
    EXPECT_EQ(pairs(read.params), "lr=0.1");
    EXPECT_TRUE(store_->get_document("trials", "1")->has_value());
}

TEST_F(AtomicTest, DoesNothingWhenOneFails) {
    const std::string id = create_run();
    log(id, "m", 1, 1, 1);
    const std::int64_t position = store_->last_position();
    std::vector<Command> commands = {
        CreateRun{.experiment_id = 0, .run_id = "trial2"},
        LogBatch{.run_id = id, .metrics = {{"m", 2, 2, 2}, {"new key", 3, 3, 3}}},
        LogMetric{id, {"m", 4, 4, 4}},
        SetTag{id, {"new tag", "x"}},
        PutDocument{"trials", "1", "{}"},
        LogParam{"nope", {"a", "b"}},
    };
    EXPECT_EQ(refusal(Atomic{commands}), "RESOURCE_DOES_NOT_EXIST: Run with id=nope not found");
    EXPECT_EQ(history(id, "m"), "1:1@1");
    EXPECT_EQ(history(id, "new key"), "");
    EXPECT_FALSE(store_->get_run("trial2"));
    EXPECT_FALSE(store_->get_document("trials", "1")->has_value());
    EXPECT_EQ(store_->last_position(), position);
    // What was remembered of the undone commands is forgotten: the same again works.
    commands.pop_back();
    run<AtomicOutcome>(Atomic{commands});
    EXPECT_EQ(history(id, "m"), "1:1@1 2:2@2 4:4@4");
    EXPECT_EQ(history(id, "new key"), "3:3@3");
    reopen();
    EXPECT_EQ(history(id, "m"), "1:1@1 2:2@2 4:4@4");
}

TEST_F(AtomicTest, KeepsWhatCameBeforeInTheSameTransaction) {
    // All are queued before the writer sees the first: one group, with an Atomic that fails in it.
    const std::string id = create_run();
    std::vector<std::string> answers(5);
    const auto keep = [&](std::size_t i) {
        return [&answers, i](Result<Outcome> outcome) { answers[i] = text_of(outcome); };
    };
    store_->submit(LogMetric{id, {"m", 1, 1, 1}}, keep(0));
    store_->submit(LogMetric{id, {"m", 2, 2, 2}}, keep(1));
    store_->submit(Atomic{{LogMetric{id, {"m", 3, 3, 3}}, LogMetric{"nope", {"m", 3, 3, 3}}}},
                   keep(2));
    store_->submit(LogMetric{id, {"m", 1, 1, 1}}, keep(3));
    store_->submit(LogMetric{id, {"m", 4, 4, 4}}, keep(4));
    run(LogBatch{.run_id = id});
    EXPECT_EQ(history(id, "m"), "1:1@1 2:2@2 4:4@4");
    EXPECT_EQ(answers, (std::vector<std::string>{
                           "", "", "RESOURCE_DOES_NOT_EXIST: Run with id=nope not found", "", ""}));
    store_->wait_for_observers();
    EXPECT_EQ(observer_.of<MetricsLogged>().size(), 3u);
}

TEST_F(AtomicTest, HasLimits) {
    EXPECT_EQ(refusal(Atomic{{Atomic{}}}),
              "INVALID_PARAMETER_VALUE: An atomic command cannot hold another one.");
    EXPECT_EQ(refusal(Atomic{std::vector<Command>(kAtomicCommandsMax + 1, DeleteRun{"x"})}),
              "INVALID_PARAMETER_VALUE: An atomic command may hold at most 4096 commands, not "
              "4097.");
    EXPECT_TRUE(run<AtomicOutcome>(Atomic{}).outcomes.empty());
}

}  // namespace
}  // namespace tune::tracker
