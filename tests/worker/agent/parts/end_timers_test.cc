#include "worker/agent/end_timers.h"

#include <gtest/gtest.h>

#include <string>

namespace tune::worker {
namespace {

class EndTimersTest : public testing::Test {
protected:
    EndEvents events() {
        return {.load = [this] { return load_; },
                .idle =
                    [this] {
                        happened_ += "idle ";
                        loop_->quit();
                    },
                .last_lease =
                    [this] {
                        happened_ += "last_lease ";
                        load_.is_draining = true;
                        timers_->update();
                    },
                .limit =
                    [this] {
                        happened_ += "limit ";
                        loop_->quit();
                    }};
    }
    void run(std::int64_t idle_exit_ms, std::int64_t time_limit_ms) {
        timers_.emplace(*loop_, idle_exit_ms, time_limit_ms, events());
        timers_->begin();
        timers_->update();
        loop_->run();
    }

    std::unique_ptr<Loop> loop_ = Loop::create().value();
    AgentLoad load_;
    std::string happened_;
    std::optional<EndTimers> timers_;
};

TEST_F(EndTimersTest, EndsWhenThereIsNothingToDo) {
    load_.is_idle = true;
    run(20, 0);
    EXPECT_EQ(happened_, "idle ");
}

TEST_F(EndTimersTest, WorkPutsOffTheEnd) {
    load_.is_idle = true;
    loop_->at(loop_->now_ms(), [this] {
        load_.is_idle = false;
        timers_->update();
    });
    loop_->at(loop_->now_ms() + 60, [this] { loop_->quit(); });
    run(20, 0);
    EXPECT_EQ(happened_, "");
}

TEST_F(EndTimersTest, TakesNoMoreTrialsBeforeItStopsThose) {
    load_.expected_ms = 60;
    run(0, 100);
    EXPECT_EQ(happened_, "last_lease limit ");
}

TEST_F(EndTimersTest, ALimitSaysNothingToOneThatStops) {
    load_.is_stopping = true;
    loop_->at(loop_->now_ms() + 60, [this] { loop_->quit(); });
    run(0, 20);
    EXPECT_EQ(happened_, "");
}

}  // namespace
}  // namespace tune::worker
