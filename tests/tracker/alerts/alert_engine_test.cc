// Rules over a real store: what is logged marks the run.

#include "tracker/alerts/alert_engine.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tracker/store/store_fixture.h"

namespace tune::tracker {
namespace {

class AlertEngineTest : public StoreTest {
protected:
    void SetUp() override { start(); }
    void TearDown() override {
        engine_->stop();
        store_->stop();
        engine_.reset();
    }
    void start() {
        open();
        engine_ = AlertEngine::open(*store_, hub_, clock_).value();
        engine_->start();
    }
    void restart() {
        engine_->stop();
        store_.reset();
        engine_.reset();
        start();
    }

    std::string add(const std::string& json) {
        const Result<AlertRule> made =
            engine_->create(alert_rule_from_json(Json::parse(json)).value());
        EXPECT_TRUE(made) << made.error().text();
        return made->alert_id;
    }
    std::string tag(const std::string& run_id, const std::string& kind) {
        for (const Tag& one : get(run_id).tags)
            if (one.key == "tune.alert." + kind) return one.value;
        return "";
    }
    /// Until `is_so` holds, which the engine's thread makes true; false after a minute.
    template <class Condition>
    bool eventually(Condition is_so) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
        while (!is_so()) {
            if (std::chrono::steady_clock::now() > end) return false;
            std::this_thread::yield();
        }
        return true;
    }
    bool is_marked(const std::string& run_id, const std::string& kind) {
        return eventually([&] { return !tag(run_id, kind).empty(); });
    }
    /// Until the engine has looked at everything committed so far.
    void settle() {
        store_->wait_for_observers();
        EXPECT_TRUE(eventually([&] { return engine_->stats().waiting == 0; }));
        store_->wait_for_observers();
    }
    std::uint64_t given(AlertKind kind) {
        return engine_->stats().given[static_cast<std::size_t>(kind)];
    }

    EventHub hub_{clock_};
    std::unique_ptr<AlertEngine> engine_;
};

TEST_F(AlertEngineTest, NanMarksTheRunOnceAndNotifiesThePage) {
    add(R"({"kind":"nan"})");
    const std::string run_id = create_run();
    const auto page = hub_.subscribe({"run:" + run_id, "experiment:0"}, {});
    log(run_id, "loss", 1, 6);
    log(run_id, "loss", std::numeric_limits<double>::quiet_NaN(), 7);
    ASSERT_TRUE(is_marked(run_id, "nan"));
    EXPECT_EQ(tag(run_id, "nan"), "loss is NaN at step 7");
    ASSERT_TRUE(eventually([&] { return given(AlertKind::kNan) == 1; }));
    std::string frames;
    for (const auto& frame : page->take()) frames += *frame;
    EXPECT_NE(frames.find("event: alert"), std::string::npos);
    EXPECT_NE(frames.find("loss is NaN at step 7"), std::string::npos);
    log(run_id, "loss", std::numeric_limits<double>::infinity(), 8);
    settle();
    EXPECT_EQ(tag(run_id, "nan"), "loss is NaN at step 7");
    EXPECT_EQ(given(AlertKind::kNan), 1u);
}

TEST_F(AlertEngineTest, InfinityIsFoundToo) {
    add(R"({"kind":"nan","metric":"b"})");
    const std::string run_id = create_run();
    log(run_id, "a", -std::numeric_limits<double>::infinity(), 1);
    log(run_id, "b", -std::numeric_limits<double>::infinity(), 2);
    ASSERT_TRUE(is_marked(run_id, "nan"));
    EXPECT_EQ(tag(run_id, "nan"), "b is infinite at step 2");
}

TEST_F(AlertEngineTest, RulesAreOfTheirExperiment) {
    const ExperimentId other = create_experiment("other");
    add(R"({"kind":"nan","experiment_id":")" + std::to_string(other) + R"("})");
    const std::string here = create_run();
    const std::string there = create_run(other);
    log(here, "m", std::nan(""), 1);
    log(there, "m", std::nan(""), 1);
    ASSERT_TRUE(is_marked(there, "nan"));
    settle();
    EXPECT_EQ(tag(here, "nan"), "");
    EXPECT_FALSE(engine_->create(
        alert_rule_from_json(Json::parse(R"({"kind":"nan","experiment_id":"999"})")).value()));
}

TEST_F(AlertEngineTest, PlateausAreCountedOverARestart) {
    add(R"({"kind":"plateau","metric":"loss","points":4})");
    const std::string run_id = create_run();
    log(run_id, "loss", 1, 1, 1);
    log(run_id, "loss", 2, 2, 2);
    log(run_id, "loss", 2, 3, 3);
    settle();
    restart();
    log(run_id, "loss", 2, 4, 4);
    settle();
    EXPECT_EQ(tag(run_id, "plateau"), "");
    log(run_id, "loss", 2, 5, 5);
    ASSERT_TRUE(is_marked(run_id, "plateau"));
    EXPECT_EQ(tag(run_id, "plateau"),
              "loss has not improved by more than 0.0 in 4 points (best 1.0 at step 1)");
}

TEST_F(AlertEngineTest, AMetricThatImprovesIsNoPlateau) {
    add(R"({"kind":"plateau","metric":"acc","goal":"max","points":2})");
    const std::string run_id = create_run();
    for (int i = 0; i < 50; ++i) log(run_id, "acc", i, i, i);
    settle();
    EXPECT_EQ(tag(run_id, "plateau"), "");
}

TEST_F(AlertEngineTest, SilentRunsEndAsKilled) {
    add(R"({"kind":"silence","seconds":60})");
    const std::string silent = create_run();
    const std::string alive = create_run();
    const std::string done = create_run();
    run<RunInfo>(UpdateRun{.run_id = done, .status = RunStatus::kFinished});
    settle();
    clock_.advance_ms(59'000);
    log(alive, "m", 1);
    settle();
    clock_.advance_ms(2'000);
    log(alive, "m", 2, 2);
    ASSERT_TRUE(is_marked(silent, "silence"));
    EXPECT_EQ(get(silent).info.status, RunStatus::kKilled);
    EXPECT_EQ(get(silent).info.end_time_ms, clock_.now_ms());
    EXPECT_EQ(tag(silent, "silence"), "no write for 61 s; the run was ended as KILLED");
    EXPECT_EQ(get(alive).info.status, RunStatus::kRunning);
    EXPECT_EQ(get(done).info.status, RunStatus::kFinished);
    // It comes back, and falls silent again.
    run<RunInfo>(UpdateRun{.run_id = silent, .status = RunStatus::kRunning});
    settle();
    ASSERT_TRUE(eventually([&] { return engine_->stats().watched_runs == 2; }));
    clock_.advance_ms(61'000);
    log(alive, "m", 3, 3);
    ASSERT_TRUE(eventually([&] { return get(silent).info.status == RunStatus::kKilled; }));
}

TEST_F(AlertEngineTest, SilenceIsCountedFromARestart) {
    add(R"({"kind":"silence","seconds":60})");
    const std::string run_id = create_run();
    clock_.advance_ms(50'000);
    restart();
    ASSERT_TRUE(eventually([&] { return engine_->stats().watched_runs == 1; }));
    clock_.advance_ms(59'000);
    const std::string other = create_run();
    settle();
    EXPECT_EQ(get(run_id).info.status, RunStatus::kRunning);
    clock_.advance_ms(2'000);
    log(other, "m", 1);
    ASSERT_TRUE(is_marked(run_id, "silence"));
}

TEST_F(AlertEngineTest, ATrialIsMarkedButLeftToTheTuner) {
    add(R"({"kind":"silence","seconds":60})");
    const std::string study =
        run<Run>(CreateRun{.experiment_id = 0, .tags = {{"tune.kind", "study"}}}).info.run_id;
    const std::string trial =
        run<Run>(CreateRun{.experiment_id = 0,
                           .tags = {{"tune.trial", "3"}, {"mlflow.parentRunId", study}}})
            .info.run_id;
    settle();
    clock_.advance_ms(61'000);
    const std::string other = create_run();
    ASSERT_TRUE(is_marked(trial, "silence"));
    EXPECT_EQ(get(trial).info.status, RunStatus::kRunning);
    EXPECT_EQ(get(study).info.status, RunStatus::kRunning);
    EXPECT_EQ(tag(study, "silence"), "");
    restart();
    ASSERT_TRUE(eventually([&] { return engine_->stats().watched_runs == 2; }));
    clock_.advance_ms(61'000);
    create_run();
    ASSERT_TRUE(is_marked(other, "silence"));
    settle();
    EXPECT_EQ(get(trial).info.status, RunStatus::kRunning) << "also when it is read from the store";
}

TEST_F(AlertEngineTest, RulesSurviveARestartAndCanBeRemoved) {
    const std::string first = add(R"({"kind":"nan"})");
    clock_.advance_ms(5);
    add(R"({"kind":"silence","seconds":60})");
    restart();
    ASSERT_EQ(engine_->rules().size(), 2u);
    EXPECT_EQ(engine_->rules()[0].alert_id, first);
    EXPECT_TRUE(engine_->remove(first));
    const auto again = engine_->remove(first);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, Code::kResourceDoesNotExist);
    const std::string run_id = create_run();
    log(run_id, "m", std::nan(""), 1);
    settle();
    EXPECT_EQ(tag(run_id, "nan"), "");
}

TEST_F(AlertEngineTest, ThereAreAtMostAHundredRules) {
    for (std::size_t i = 0; i < kAlertRulesMax; ++i) add(R"({"kind":"nan"})");
    const auto refused =
        engine_->create(alert_rule_from_json(Json::parse(R"({"kind":"nan"})")).value());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
}

}  // namespace
}  // namespace tune::tracker
