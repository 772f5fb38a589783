#include "tuner/study/trial/trial_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TrialTable, CountsAndSetsFollowTheStates) {
    Table table;
    Trial& first = table.add();
    Trial& second = table.add();
    EXPECT_THAT(table.trials.queued(), ElementsAre(0, 1));
    EXPECT_EQ(table.trials.next_queued(), &first);
    table.trials.move(first, TrialState::kRunning);
    EXPECT_THAT(table.trials.queued(), ElementsAre(1));
    EXPECT_THAT(table.trials.running(), ElementsAre(0));
    table.trials.move(first, TrialState::kQueued);
    EXPECT_EQ(table.trials.next_queued(), &first) << "the oldest first, not who came last";
    table.end(first, TrialState::kPruned);
    table.end(second, TrialState::kCancelled);
    EXPECT_THAT(table.trials.counts(), ElementsAre(0, 0, 0, 1, 0, 1));
    EXPECT_EQ(table.trials.success_count(), 1u);
    EXPECT_EQ(table.trials.next_queued(), nullptr);
    EXPECT_EQ(table.trials.last_end_ms(), 2000);
    EXPECT_EQ(table.trials.find(1), &second);
    EXPECT_EQ(table.trials.find(2), nullptr);
}

TEST(TrialTable, AnEndedTrialNeverChanges) {
    Table table;
    Trial& trial = table.complete(1);
    EXPECT_DEATH(table.trials.move(trial, TrialState::kQueued), "an ended trial cannot change");
}

TEST(TrialTable, FindsWhatARequestAskedFor) {
    Table table;
    for (int i = 0; i < 3; ++i) {
        Trial& trial = table.start();
        table.trials.note_asked(trial, i < 2 ? "a" : "");
    }
    EXPECT_THAT(table.trials.started_by_request("a"), ElementsAre(0, 1));
    EXPECT_THAT(table.trials.started_by_request(""), IsEmpty());
    table.trials.move(*table.trials.find(0), TrialState::kQueued);
    EXPECT_THAT(table.trials.started_by_request("a"), ElementsAre(1)) << "another's by now";
    table.trials.note_asked(*table.trials.find(1), "b");
    EXPECT_THAT(table.trials.started_by_request("a"), IsEmpty());

    table.trials.note_enqueued(table.add(), {0.25}, "e");
    EXPECT_EQ(table.trials.enqueued_by_request("e"), 3u);
    EXPECT_EQ(table.trials.enqueued_by_request("f"), std::nullopt);
    EXPECT_EQ(table.trials.find(3)->fixed, Point{0.25});
}

TEST(TrialTable, KnowsRequestsOfTrialsThatLivedBefore) {
    Trial lived;
    lived.state = TrialState::kRunning;
    lived.ask_request = "a";
    lived.enqueue_request = "e";
    lived.end_ms = 7;
    TrialTable trials;
    trials.add(std::move(lived));
    EXPECT_THAT(trials.started_by_request("a"), ElementsAre(0));
    EXPECT_EQ(trials.enqueued_by_request("e"), 0u);
    EXPECT_THAT(trials.running(), ElementsAre(0));
    EXPECT_EQ(trials.last_end_ms(), 7);
}

}  // namespace
}  // namespace tune::tuner
