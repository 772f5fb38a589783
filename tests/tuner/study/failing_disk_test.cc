// Leases while the disk takes nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class FailingDisk : public ::testing::Test {
protected:
    FailingDisk() {
        world_.close();
        world_.set_database_bytes_max(4'000'000);
        world_.open();
        EXPECT_TRUE(world_.create(R"("budget": {"trials": 50})").has_value());
        EXPECT_TRUE(world_.register_agent("a").has_value());
        EXPECT_TRUE(world_.register_agent("b").has_value());
    }
    World world_;
};

TEST_F(FailingDisk, AsksForLeasesAreAnsweredWithTheErrorAndUseUpNoAttempts) {
    EXPECT_THAT(world_.lease("a")->leases, SizeIs(1));
    world_.fill_disk();
    for (int i = 0; i < 200; ++i) {
        const auto refused = world_.lease("a", 2);
        ASSERT_FALSE(refused.has_value()) << "an answer without trials is asked for again at once";
        EXPECT_EQ(refused.error().code, Code::kTemporarilyUnavailable);
        EXPECT_THAT(refused.error().message, HasSubstr("is full"));
    }
    world_.advance_ms(2'000);  // what could not be written is tried again
    world_.store().wait_for_observers();
    EXPECT_FALSE(world_.lease("a").has_value());
    EXPECT_EQ(world_.count(TrialState::kRunning), 1u);
    EXPECT_LE(world_.count(TrialState::kQueued), 2u);
    EXPECT_LE(world_.trial(1).attempt, 1);
    EXPECT_LE(world_.trial(2).attempt, 1);
}

TEST_F(FailingDisk, AWriteThatIsRefusedForGoodDoesNotSayThatItWorksAgain) {
    ASSERT_THAT(world_.lease("a")->leases, SizeIs(1));
    std::string parent;
    ASSERT_TRUE(world_.studies()
                    .read("s", [&](const Study& study) { parent = study.identity().run_id; })
                    .has_value());
    ASSERT_TRUE(world_.store().execute(tracker::DeleteRun{parent}).has_value());
    world_.fill_disk();
    EXPECT_FALSE(world_.lease("b").has_value());
    for (int priority = 1; priority < 6; ++priority) {
        Answer<void> answer;
        world_.studies().set_priority("s", priority, answer.done());
        static_cast<void>(answer.get());  // its run is gone, and there may be room for its document
        EXPECT_FALSE(world_.lease("b").has_value());
        EXPECT_LE(world_.trial(1).attempt, 1) << "an attempt was begun that cannot be written";
    }
    world_.free_disk();
    world_.advance_ms(2'000);
    ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    EXPECT_TRUE(world_.lease("b").has_value());
}

TEST_F(FailingDisk, ThatWorksAgainGivesTheTrialsThatWaited) {
    world_.fill_disk();
    EXPECT_FALSE(world_.lease("a").has_value());
    world_.advance_ms(2'000);
    EXPECT_FALSE(world_.lease("b").has_value()) << "still full";
    world_.free_disk();
    world_.advance_ms(2'000);
    // Answered after what the tick has written again.
    ASSERT_TRUE(world_.change(Studies::Change::kPause).has_value());
    ASSERT_TRUE(world_.change(Studies::Change::kResume).has_value());
    for (const char* agent : {"a", "b"}) {
        const auto reply = world_.lease(agent);
        ASSERT_TRUE(reply.has_value()) << reply.error().text();
        EXPECT_THAT(reply->leases, SizeIs(1));
    }
    EXPECT_EQ(world_.trial(0).state, TrialState::kRunning);
    EXPECT_LE(world_.trial(0).attempt, 2) << "one for the failure, one that runs";
}

}  // namespace
}  // namespace tune::tuner
