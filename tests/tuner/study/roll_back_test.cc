// What a trial's earlier attempts measured: kept by an attempt that resumes, not by one that begins
// anew.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class RollBackTest : public ::testing::Test {
protected:
    void create(const std::string& fields = "") {
        ASSERT_TRUE(
            world_
                .create(R"("budget": {"trials": 5}, "retry": {"max": 5, "on": ["failed"]})" +
                        (fields.empty() ? "" : ", " + fields))
                .has_value());
        ASSERT_TRUE(world_.register_agent("a").has_value());
    }
    Lease begin() {
        const auto reply = world_.lease("a");
        EXPECT_TRUE(reply.has_value()) << reply.error().text();
        return reply && !reply->leases.empty() ? reply->leases[0] : Lease{};
    }
    void end(const Lease& lease, Outcome outcome) {
        EXPECT_TRUE(world_.finish("a", token(lease), {.outcome = outcome}).has_value());
    }
    void log(const Lease& lease, std::int64_t step, double loss) {
        world_.advance_ms(10);
        world_.log(lease.run_id, "loss", step, loss);
    }
    /// An attempt that logs (step, loss) and ends so.
    void attempt(const std::vector<std::pair<std::int64_t, double>>& rows, Outcome outcome) {
        const Lease lease = begin();
        for (const auto& [step, loss] : rows) log(lease, step, loss);
        end(lease, outcome);
    }
    World world_;
};

TEST_F(RollBackTest, AnAttemptThatBeginsAnewHasOnlyWhatItMeasured) {
    create();
    attempt({{1, 0.001}, {2, 0.5}}, Outcome::kFailed);
    attempt({{1, 0.9}}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).attempt, 2);
    EXPECT_EQ(world_.trial(0).value, 0.9);
}

TEST_F(RollBackTest, WithoutStepsItBeginsAnew) {
    create();
    attempt({{0, 0.001}}, Outcome::kFailed);
    attempt({{0, 0.9}, {0, 0.8}}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.8);
}

TEST_F(RollBackTest, AnAttemptThatResumesHasWhatItsCheckpointHad) {
    create();
    attempt({{1, 0.5}, {2, 0.3}, {3, 0.001}}, Outcome::kPreempted);  // the checkpoint is of step 2
    attempt({{3, 0.9}, {4, 0.8}}, Outcome::kFailed);
    attempt({{5, 0.7}}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.3);
}

TEST_F(RollBackTest, TheValueOfALaterStepIsGoneWithItsAttempt) {
    create(R"("metric": {"name": "loss", "take": "last"})");
    attempt({{1, 0.5}, {9, 0.001}}, Outcome::kFailed);
    attempt({{1, 0.9}, {2, 0.8}}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.8);
}

TEST_F(RollBackTest, AnAttemptThatMeasuresNothingMoreTakesNothingBack) {
    create();
    attempt({{1, 0.5}}, Outcome::kPreempted);
    attempt({}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.5);
}

TEST_F(RollBackTest, AServerThatComesBackKnowsWhatWasTakenBack) {
    create();
    attempt({{1, 0.001}, {2, 0.002}}, Outcome::kFailed);
    const Lease second = begin();
    log(second, 1, 0.9);
    world_.store().wait_for_observers();
    world_.reopen();
    ASSERT_TRUE(world_.register_agent("a", {token(second)}).has_value());
    log(second, 2, 0.8);
    end(second, Outcome::kFailed);
    world_.reopen();
    // The third resumes behind the second's only step.
    ASSERT_TRUE(world_.register_agent("a").has_value());
    attempt({{3, 0.95}}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.8);
}

TEST_F(RollBackTest, AServerThatComesBackBeforeTheFirstRowWaitsForIt) {
    create();
    attempt({{1, 0.001}, {2, 0.002}}, Outcome::kFailed);
    const Lease second = begin();
    world_.reopen();
    ASSERT_TRUE(world_.register_agent("a", {token(second)}).has_value());
    log(second, 1, 0.9);
    end(second, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.9);
}

TEST_F(RollBackTest, AnAttemptThatMeasuresNothingHasNothingOfOneThatFailed) {
    create();
    attempt({{1, 0.001}}, Outcome::kFailed);
    attempt({}, Outcome::kPreempted);
    world_.store().wait_for_observers();
    world_.reopen();
    ASSERT_TRUE(world_.register_agent("a").has_value());
    attempt({}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).state, TrialState::kFailed);
    EXPECT_THAT(world_.trial(0).reason, HasSubstr("What attempt 1 measured before it failed"));
    attempt({{1, 0.001}}, Outcome::kFailed);
    attempt({}, Outcome::kDone);
    EXPECT_EQ(world_.trial(1).state, TrialState::kFailed);
}

TEST_F(RollBackTest, AnAttemptThatResumesAfterAFailureHasWhatItsCheckpointHad) {
    create();
    attempt({{1, 0.1}, {2, 0.3}}, Outcome::kFailed);
    attempt({{2, 0.9}}, Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.1);
}

/// Whether the server is started again before the trial ends, and whether the machine of the first
/// or the second attempt has another clock.
class RollBackAlike : public RollBackTest,
                      public ::testing::WithParamInterface<std::tuple<bool, int, int>> {
protected:
    static constexpr std::int64_t kHour_ms = 3'600'000;
    void maybe_reopen() {
        if (!std::get<0>(GetParam())) return;
        world_.store().wait_for_observers();
        world_.reopen();
        std::vector<AttemptId> running;
        if (is_running_) running.push_back(token(lease_));
        ASSERT_TRUE(world_.register_agent("a", running).has_value());
    }
    void start() {
        lease_ = begin();
        is_running_ = true;
    }
    void stop(Outcome outcome) {
        end(lease_, outcome);
        is_running_ = false;
    }
    void log_first(std::int64_t step, double loss) {
        log_with(std::get<1>(GetParam()), step, loss);
    }
    void log_second(std::int64_t step, double loss) {
        log_with(std::get<2>(GetParam()), step, loss);
    }
    void log_with(int hours, std::int64_t step, double loss) {
        world_.advance_ms(10);
        world_.log(lease_.run_id, "loss", step, loss, hours * kHour_ms);
    }
    Lease lease_;
    bool is_running_ = false;
};

TEST_P(RollBackAlike, WhatBeginsAnewHasOnlyItsOwn) {
    create();
    start();
    log_first(1, 0.001);
    log_first(5, 0.002);
    stop(Outcome::kFailed);
    maybe_reopen();
    start();
    maybe_reopen();
    log_second(1, 0.9);
    log_second(2, 0.8);
    maybe_reopen();
    stop(Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.8);
}

TEST_P(RollBackAlike, WhatResumesHasWhatCameBefore) {
    create();
    start();
    log_first(1, 0.5);
    log_first(2, 0.3);
    log_first(3, 0.001);
    stop(Outcome::kPreempted);
    maybe_reopen();
    start();
    log_second(3, 0.9);
    maybe_reopen();
    log_second(4, 0.8);
    maybe_reopen();
    stop(Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.3);
}

TEST_P(RollBackAlike, WhatIsLoggedBetweenAttemptsCountsForNone) {
    create();
    start();
    log_first(1, 0.5);
    stop(Outcome::kPreempted);
    log_first(1, 0.001);  // who lost the attempt does not know it yet
    maybe_reopen();
    start();
    maybe_reopen();
    log_second(2, 0.9);
    maybe_reopen();
    stop(Outcome::kDone);
    EXPECT_EQ(world_.trial(0).value, 0.5);
}

INSTANTIATE_TEST_SUITE_P(LiveAndRestarted, RollBackAlike,
                         ::testing::Combine(::testing::Bool(), ::testing::Values(-1, 0, 1),
                                            ::testing::Values(-1, 0, 1)));

TEST_F(RollBackTest, APrunerJudgesByTheAttemptThatRuns) {
    create(R"("pruner": {"type": "patience", "wait": 2})");
    attempt({{1, 0.1}, {2, 0.2}}, Outcome::kFailed);
    const Lease second = begin();
    for (const auto& [step, loss] : {std::pair{1, 0.9}, {2, 0.8}, {3, 0.7}, {4, 0.6}})
        log(second, step, loss);
    world_.store().wait_for_observers();
    const auto beat = world_.heartbeat("a", {token(second)});
    ASSERT_TRUE(beat.has_value());
    EXPECT_THAT(beat->directives, SizeIs(0));
    // And again where it gets no better itself.
    for (const auto& [step, loss] : {std::pair{5, 0.9}, {6, 0.9}, {7, 0.9}, {8, 0.9}})
        log(second, step, loss);
    world_.store().wait_for_observers();
    EXPECT_THAT(world_.heartbeat("a", {token(second)})->directives, SizeIs(1));
}

}  // namespace
}  // namespace tune::tuner
