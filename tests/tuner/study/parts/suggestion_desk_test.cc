#include "tuner/study/suggestion_desk.h"

#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

struct DeskTable : Table {
    explicit DeskTable(const std::string& fields = "") : Table(fields) {}

    void completed(double value) {
        Trial& trial = start();
        desk.trial_added();
        desk.trial_ended(end(trial, TrialState::kComplete, value));
    }

    SuggestionDesk desk{definition, trials, log};
};

constexpr const char* kFinite = R"("space": {"x": {"int": [1, 2]}}, "sampler": {"type": "grid"})";

TEST(SuggestionDesk, AsksOnceForEachPositionOfTheLog) {
    DeskTable table;
    const Point first = table.desk.next().point;
    EXPECT_EQ(table.desk.next().point, first);
    table.completed(1);
    EXPECT_NE(table.desk.next().point, first) << "for the next trial";
}

TEST(SuggestionDesk, GivesTheSameHereAndElsewhere) {
    DeskTable here(R"("sampler": {"type": "tpe", "startup": 3})");
    DeskTable elsewhere(R"("sampler": {"type": "tpe", "startup": 3})");
    elsewhere.desk.suggest_elsewhere();
    for (int i = 0; i < 8; ++i) {
        here.completed(i % 3);
        elsewhere.completed(i % 3);
    }
    SuggestionWork work = elsewhere.desk.begin({}, 3);
    EXPECT_EQ(work.news.size(), 3u);
    EXPECT_FALSE(work.is_up_to_date);
    EXPECT_TRUE(elsewhere.desk.is_suggesting());
    EXPECT_FALSE(elsewhere.desk.expects_point());
    EXPECT_TRUE(elsewhere.desk.end(work, suggest(work)));
    work = elsewhere.desk.begin({}, 100);
    EXPECT_TRUE(work.is_up_to_date);
    EXPECT_TRUE(elsewhere.desk.expects_point());
    const Suggestion made = suggest(work);
    EXPECT_EQ(made.point, here.desk.next().point);
    EXPECT_TRUE(elsewhere.desk.end(work, made));
}

TEST(SuggestionDesk, WhatAForgottenModelMadeCountsForNothing) {
    DeskTable table;
    table.desk.suggest_elsewhere();
    const SuggestionWork work = table.desk.begin({}, 100);
    table.desk.forget();
    EXPECT_FALSE(table.desk.end(work, suggest(work)));
    EXPECT_FALSE(table.desk.is_suggesting()) << "the next one may begin";
}

TEST(SuggestionDesk, EndsOfTrialsThatTheModelKnowsReachIt) {
    DeskTable table;
    table.desk.suggest_elsewhere();
    Trial& trial = table.start();
    SuggestionWork work = table.desk.begin({}, 100);
    table.desk.trial_ended(table.end(trial, TrialState::kComplete, 3));
    EXPECT_TRUE(table.desk.end(work, suggest(work)));
    work = table.desk.begin({}, 100);
    ASSERT_EQ(work.news.size(), 1u);
    EXPECT_EQ(work.news[0].value, 3);
}

TEST(SuggestionDesk, OnlyALookTellsThatAFiniteSpaceIsUsed) {
    DeskTable table(kFinite);
    table.desk.suggest_elsewhere();
    for (const double x : {1, 2}) table.end(table.start(x), TrialState::kComplete, x);
    EXPECT_FALSE(table.desk.is_space_used()) << "nobody has looked";
    EXPECT_TRUE(table.desk.needs_look());
    const SuggestionWork work = table.desk.begin({.what = SuggestionWish::For::kLook}, 100);
    EXPECT_FALSE(table.desk.needs_look()) << "somebody looks";
    EXPECT_TRUE(table.desk.end(work, suggest(work)));
    EXPECT_TRUE(table.desk.is_space_used());
    EXPECT_FALSE(table.desk.needs_look());
}

}  // namespace
}  // namespace tune::tuner
