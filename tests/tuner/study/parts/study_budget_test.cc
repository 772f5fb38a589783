#include "tuner/study/budget/study_budget.h"

#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

struct BudgetTable : Table {
    explicit BudgetTable(const std::string& fields) : Table(fields) {}

    void fail_and_count(const std::string& reason) {
        Trial& trial = start();
        budget.begin_time(trial.start_ms);
        budget.pay_attempt(trial, 2000);
        end(trial, TrialState::kFailed).reason = reason;
        budget.trial_ended(trial);
        beginning.trial_ended(trial);
    }

    FailedBeginning beginning{config(), trials, log};
    StudyBudget budget{definition, trials, beginning};
};

TEST(StudyBudget, WithoutLimitsNothingIsUsed) {
    BudgetTable table("");
    table.fail_and_count("a");
    EXPECT_EQ(table.budget.trials_left(), std::nullopt);
    EXPECT_FALSE(table.budget.over(1'000'000'000));
    EXPECT_FALSE(table.budget.is_full());
    EXPECT_FALSE(table.budget.deadline_ms(3000));
    EXPECT_EQ(table.budget.paid(), 0);
}

TEST(StudyBudget, CountsTrialsThatExistAndThoseThatRun) {
    BudgetTable table(R"("budget": {"trials": 2, "parallel": 1})");
    EXPECT_EQ(table.budget.trials_left(), 2u);
    table.add();
    EXPECT_FALSE(table.budget.is_full());
    table.start();
    EXPECT_TRUE(table.budget.is_full());
    EXPECT_TRUE(table.budget.has_used_trials());
    const Result<void> more = table.budget.check_enqueue();
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().message,
              "study 's' has used its budget of 2 trials; raise budget.trials to enqueue more");
}

TEST(StudyBudget, TimeRunsFromTheFirstStart) {
    BudgetTable table(R"("budget": {"time": "1m"})");
    EXPECT_FALSE(table.budget.over(1'000'000));
    EXPECT_FALSE(table.budget.deadline_ms(0));
    table.budget.begin_time(5000);
    table.budget.begin_time(4000);
    EXPECT_EQ(table.budget.started_ms(), 5000) << "whatever the clock says later";
    EXPECT_FALSE(table.budget.over(64'999));
    EXPECT_EQ(table.budget.over(65'000)->note, "the time budget of 1m is over");
    EXPECT_EQ(table.budget.deadline_ms(6000), 65'000);
}

TEST(StudyBudget, WhatIsExcusedUsesUpNothing) {
    BudgetTable table(
        R"("stop_after_failures": 2,
           "budget": {"trials": 3, "cost": {"of": "seconds", "max": 10}})");
    table.fail_and_count("a");
    table.fail_and_count("a");
    EXPECT_EQ(table.budget.paid(), 2) << "a second each";
    EXPECT_EQ(table.budget.trials_left(), 1u);
    table.beginning.stop();
    ASSERT_TRUE(table.beginning.excuse());
    table.budget.recount();
    EXPECT_EQ(table.budget.paid(), 0);
    EXPECT_EQ(table.budget.trials_left(), 3u);
    EXPECT_EQ(table.budget.started_ms(), 0) << "its time begins anew";
}

TEST(StudyBudget, IsTheSameWhenItIsMadeAnew) {
    BudgetTable table(
        R"("budget": {"cost": {"of": "seconds", "max": 3600}, "no_progress": {"trials": 3}})");
    for (int i = 0; i < 20; ++i) {
        Trial& trial = table.start();
        trial.attempt_start_ms = 1000 + i;
        table.budget.pay_attempt(trial, 1100 + 7 * i * i);
        table.end(trial, TrialState::kComplete, i % 2 == 0 ? i : -i);
        table.budget.trial_ended(trial);
        const double paid = table.budget.paid();
        const bool is_over = table.budget.over(5000).has_value();
        table.budget.forget();
        EXPECT_DOUBLE_EQ(table.budget.paid(), paid);
        EXPECT_EQ(table.budget.over(5000).has_value(), is_over);
    }
}

}  // namespace
}  // namespace tune::tuner
