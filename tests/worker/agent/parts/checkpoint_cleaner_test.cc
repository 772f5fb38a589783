#include "worker/agent/checkpoints/checkpoint_cleaner.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

class CheckpointCleanerTest : public testing::Test {
protected:
    void make(const std::string& study, int count) {
        for (int i = 0; i < count; ++i)
            std::filesystem::create_directories(root_.path() / study / ("0" + std::to_string(i)) /
                                                "deep");
    }
    std::set<std::string> left(const std::string& study) {
        std::set<std::string> names;
        for (const auto& item : std::filesystem::directory_iterator(root_.path() / study))
            names.insert(item.path().filename().string());
        return names;
    }

    Scratch root_;
};

TEST_F(CheckpointCleanerTest, WhatEitherOfTwoWaitingAnswersCallsNeedlessGoes) {
    make("a", 10);
    make("b", 3);
    CheckpointCleaner cleaner(root_.path());
    cleaner.submit({"a", 0, 6, {1, 3}});
    cleaner.submit({"a", 2, 9, {3, 7}});
    cleaner.submit({"b", 0, 3, {0}});
    // An answer that was overtaken.
    cleaner.submit({"b", 0, 2, {0, 1}});
    cleaner.start();
    cleaner.stop();
    // Before 2 the second one says nothing.
    EXPECT_EQ(left("a"), (std::set<std::string>{"00", "01", "03", "07", "09"}));
    EXPECT_EQ(left("b"), (std::set<std::string>{"00"}));
}

TEST_F(CheckpointCleanerTest, StopsAtOnceWithNothingToDoAndTwice) {
    CheckpointCleaner idle(root_.path());
    idle.start();
    idle.stop();
    idle.stop();
    CheckpointCleaner never_started(root_.path());
    never_started.submit({"nothing", 0, 9, {}});
}

}  // namespace
}  // namespace tune::worker
