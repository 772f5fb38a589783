#include "worker/agent/pools/pool_ends.h"

#include <gtest/gtest.h>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

constexpr std::int64_t kNow_ms = 1'000;

class PoolEndsTest : public testing::Test {
protected:
    PoolEndsTest() {
        pool_.first.command = {"pool"};
        pool_.first.pool.emplace();
        pool_.first.pool->size = 4;
        trial_.lease = pool_.first;
        trial_.since_ms = 400;
    }
    /// Its process has ended by itself.
    tuner::FinishRequest end_with_code(int code, const std::string& words = "") {
        pool_.is_alive = false;
        pool_.exit.emplace();
        pool_.exit->exit_code = code;
        return end_with_pool(pool_, trial_, words, kNow_ms);
    }

    Scratch folder_;
    const AttemptFiles files_{folder_.path()};
    std::unique_ptr<Loop> loop_ = Loop::create().value();
    std::unique_ptr<LogUpload> upload_ =
        LogUpload::create("http://127.0.0.1:9", [](std::uint64_t, bool, bool) {}).value();
    Pool pool_{*loop_, 1, files_, {}};
    PoolTrial trial_{
        1, tuner::Lease{}, *MetricLines::create({}, "loss"), files_,
        std::make_unique<PoolTrialLog>(*loop_, *upload_, LogJob{2, files_, {"run", 1}, "7"}, 50)};
};

TEST_F(PoolEndsTest, ATrialEndsByItsOwnLine) {
    PoolEvent event{.kind = PoolEvent::Kind::kEnded, .exit_code = 0};
    const tuner::FinishRequest done = end_by_line(pool_, trial_, event, kNow_ms);
    EXPECT_EQ(done.outcome, tuner::Outcome::kDone);
    EXPECT_EQ(done.wall_ms, 600);
    event.exit_code = 1;
    event.message = "no convergence";
    const tuner::FinishRequest failed = end_by_line(pool_, trial_, event, kNow_ms);
    EXPECT_EQ(failed.outcome, tuner::Outcome::kFailed);
    EXPECT_NE(failed.reason.find("no convergence"), std::string::npos) << failed.reason;
}

TEST_F(PoolEndsTest, OnlyTrialsThatHadBegunMayHaveEndedTheProcess) {
    pool_.has_begun_any = true;
    EXPECT_EQ(end_with_code(1, "boom").outcome, tuner::Outcome::kPreempted);
    trial_.has_begun = true;
    const tuner::FinishRequest suspect = end_with_code(1, "boom");
    EXPECT_EQ(suspect.outcome, tuner::Outcome::kLost);
    EXPECT_TRUE(suspect.reason.starts_with("its pool ended: ")) << suspect.reason;
}

TEST_F(PoolEndsTest, AProcessThatBeganNothingMayBeMisconfigured) {
    EXPECT_EQ(end_with_code(13, "no such data").outcome, tuner::Outcome::kBadConfig);
    EXPECT_EQ(end_with_code(1).outcome, tuner::Outcome::kLost) << "any of them may be why";
}

TEST_F(PoolEndsTest, AloneInItsProcessATrialEndsAsThatDoes) {
    pool_.first.pool->size = 1;
    pool_.has_begun_any = trial_.has_begun = true;
    EXPECT_EQ(end_with_code(1).outcome, tuner::Outcome::kFailed);
    const tuner::FinishRequest silent = end_with_code(0);
    EXPECT_EQ(silent.outcome, tuner::Outcome::kFailed);
    EXPECT_NE(silent.reason.find("without a word"), std::string::npos) << silent.reason;
}

TEST_F(PoolEndsTest, WhoWasAskedToEndIsNotLost) {
    trial_.has_begun = pool_.has_begun_any = true;
    trial_.intent = {Intent::kPrune, "pruned"};
    EXPECT_EQ(end_with_code(0).outcome, tuner::Outcome::kPruned);
}

}  // namespace
}  // namespace tune::worker
