#include "worker/agent/server/server_contact.h"

#include <gtest/gtest.h>

namespace tune::worker {
namespace {

class ServerContactTest : public testing::Test {
protected:
    ServerContactTest() { contact_.set_lease_ttl(30); }

    std::unique_ptr<Loop> loop_ = Loop::create().value();
    std::int64_t away_ms_ = 0;
    ServerContact contact_{*loop_, 20, [this](std::int64_t away_ms) {
                               away_ms_ = away_ms;
                               loop_->quit();
                           }};
};

TEST_F(ServerContactTest, SaysWhenTheLeasesMustBeGone) {
    EXPECT_TRUE(contact_.note(true));
    EXPECT_FALSE(contact_.note(true));
    EXPECT_TRUE(contact_.note(false));
    EXPECT_FALSE(contact_.is_connected());
    contact_.update();
    loop_->run();
    EXPECT_GE(away_ms_, 50);
}

TEST_F(ServerContactTest, AnAnswerEndsTheAbsence) {
    contact_.begin();
    contact_.update();
    loop_->at(loop_->now_ms() + 10, [this] {
        contact_.note(true);
        contact_.update();
    });
    loop_->at(loop_->now_ms() + 100, [this] { loop_->quit(); });
    loop_->run();
    EXPECT_EQ(away_ms_, 0);
}

TEST_F(ServerContactTest, AnAnswerThatNobodyAnnouncedCounts) {
    contact_.begin();
    contact_.update();
    const std::int64_t began = loop_->now_ms();
    std::int64_t answered = 0;
    loop_->at(began + 30, [&] {
        contact_.note(true);
        contact_.note(false);
        answered = loop_->now_ms();
    });
    loop_->run();
    EXPECT_GE(loop_->now_ms() - answered, 50) << "from the last answer on";
}

}  // namespace
}  // namespace tune::worker
