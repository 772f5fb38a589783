// What an agent does with metrics that the server answers with an error.

#include "base/clock.h"
#include "tests/worker/agent/agent_fixture.h"

namespace tune::worker {
namespace {

using tuner::Outcome;

/// 200 points, each a line of its own.
constexpr const char* kPoints =
    "i=0; while [ $i -lt 200 ]; do echo \"tune: {\\\"a\\\": $i, \\\"step\\\": $i}\"; "
    "i=$((i + 1)); done";

std::string all_points() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "a@" + std::to_string(i) + "=" + std::to_string(i) + " ";
    return text;
}

TEST_F(AgentTest, MetricsThatTheServerCannotTakeNowAreSentAgainInOrder) {
    start();
    for (const Code code : {Code::kTemporarilyUnavailable, Code::kInternalError,
                            Code::kRequestLimitExceeded, Code::kResourceExhausted}) {
        const std::string run = "r" + std::to_string(static_cast<int>(code));
        server_.refuse_reports(code, 3);
        offer(shell(run, kPoints));
        EXPECT_EQ(server_.wait_for_finish(run).request.outcome, Outcome::kDone);
        EXPECT_EQ(server_.metrics(run), all_points()) << code_name(code);
    }
    drain();
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, AnAgentThatTakesOverSendsWhatWasKept) {
    start();
    server_.refuse_reports(Code::kTemporarilyUnavailable, 1'000'000);
    offer(shell("r1", std::string(kPoints) + "; " + gate("go")));
    server_.wait_for_refusals(2);
    agent_->stop(StopMode::kDetach);
    EXPECT_TRUE(agent_->wait());
    agent_.reset();
    server_.refuse_reports(Code::kTemporarilyUnavailable, 0);
    start();
    open_gate("go");
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
    EXPECT_EQ(server_.metrics("r1"), all_points());
}

TEST_F(AgentTest, MetricsAreKeptNoLongerThanTheirLease) {
    start();
    server_.refuse_reports(Code::kTemporarilyUnavailable, 1'000'000);
    offer(shell("r1", std::string(kPoints) + "; sleep 1000"));
    server_.wait_for_refusals(2);
    server_.take_away("r1");
    drain();
    EXPECT_EQ(server_.finish_calls("r1"), 0);
    EXPECT_EQ(server_.metrics("r1"), "");
    EXPECT_FALSE(left_behind());
}

TEST_F(AgentTest, MetricsThatTheServerNeverTakesHoldUpNothing) {
    start();
    server_.refuse_reports(Code::kInvalidParameterValue, 1);
    set_log_level(LogLevel::kWarning);
    testing::internal::CaptureStderr();
    offer(shell("r1", "echo 'tune: {\"a\": 1}'"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
    const std::string log = testing::internal::GetCapturedStderr();
    set_log_level(LogLevel::kError);
    EXPECT_NE(log.find("the server refused 1 value of attempt 1 of run r1: not now"),
              std::string::npos)
        << log;
    EXPECT_EQ(server_.metrics("r1"), "");
}

TEST_F(AgentTest, AServerThatHasNothingAndDoesNotWaitIsNotAskedInALoop) {
    server_.answer_leases_empty(5);
    const std::int64_t begin_ms = SystemClock().monotonic_ms();
    start();
    offer(shell("r1", "exit 0"));
    EXPECT_EQ(server_.wait_for_finish("r1").request.outcome, Outcome::kDone);
    // 50, 100, 200, 400 and 800 ms, each less at most a fifth.
    EXPECT_GE(SystemClock().monotonic_ms() - begin_ms, 1'240);
}

}  // namespace
}  // namespace tune::worker
