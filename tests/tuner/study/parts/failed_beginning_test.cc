#include "tuner/study/budget/failed_beginning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;

struct BeginningTable : Table {
    BeginningTable() : Table(R"("stop_after_failures": 2)") {}

    void failed(const std::string& reason) {
        const Trial& trial = fail(reason);
        EXPECT_FALSE(beginning.trial_ended(trial));
    }

    FailedBeginning beginning{config(), trials, log};
};

TEST(FailedBeginning, StopsWhenFailuresAreAlike) {
    BeginningTable table;
    table.failed("a");
    EXPECT_FALSE(table.beginning.should_stop());
    table.failed("a");
    EXPECT_TRUE(table.beginning.should_stop());
    table.beginning.forget();
    EXPECT_TRUE(table.beginning.should_stop()) << "it is a function of the trials";
}

TEST(FailedBeginning, TheFirstSuccessExcusesFailuresBeforeItOnce) {
    BeginningTable table;
    table.failed("a");
    table.failed("b");
    EXPECT_TRUE(table.beginning.trial_ended(table.complete(1)));
    EXPECT_EQ(table.beginning.count(), 2u);
    EXPECT_TRUE(table.beginning.take_excused());
    EXPECT_FALSE(table.beginning.take_excused());
    table.failed("c");
    EXPECT_FALSE(table.beginning.trial_ended(table.complete(1)));
    EXPECT_EQ(table.beginning.count(), 2u) << "the later one counts";
    EXPECT_FALSE(table.beginning.excuses(table.trials[3]));
    EXPECT_EQ(table.beginning.excuse(), std::nullopt);
}

TEST(FailedBeginning, AResumedStudyTriesThePointsAgain) {
    BeginningTable table;
    table.failed("a");
    Trial& waits = table.add(0.75);
    Trial& asked = table.end(table.start(0.1), TrialState::kCancelled);
    table.failed("a");
    table.beginning.stop();
    table.end(waits, TrialState::kCancelled);
    EXPECT_EQ(table.beginning.count(), 0u) << "nobody has resumed it";
    const auto points = table.beginning.excuse();
    ASSERT_TRUE(points);
    EXPECT_THAT(*points, ElementsAre(Point{0.5}, Point{0.75}, Point{0.5}));
    EXPECT_FALSE(table.beginning.excuses(asked)) << "its user cancelled it before";
    EXPECT_EQ(table.beginning.count(), 3u);
    EXPECT_FALSE(table.beginning.should_stop());
    const auto again = table.beginning.excuse();
    EXPECT_EQ(again, std::nullopt) << "all are excused already";
}

TEST(FailedBeginning, ARestartFindsTheSameTrials) {
    BeginningTable table;
    table.failed("a");
    table.failed("b");
    ASSERT_TRUE(table.beginning.excuse());
    table.failed("c");
    FailedBeginning restored(table.config(), table.trials, table.log);
    restored.restore(table.beginning.ends());
    for (const Trial& trial : table.trials) restored.restored(trial);
    EXPECT_EQ(restored.count(), table.beginning.count());
    for (const Trial& trial : table.trials)
        EXPECT_EQ(restored.excuses(trial), table.beginning.excuses(trial)) << trial.number;
}

}  // namespace
}  // namespace tune::tuner
