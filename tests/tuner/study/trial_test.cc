#include "tuner/study/trial/trial.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tune::tuner {
namespace {

TEST(TrialDocument, KeepsEverything) {
    Trial trial;
    trial.number = 12;
    trial.state = TrialState::kPruned;
    trial.attempt = 3;
    trial.run_id = "r";
    trial.point = {0.1, kInactive, 1e-300};
    trial.created_ms = 1;
    trial.start_ms = 2;
    trial.end_ms = 3;
    trial.value = 0.1 + 0.2;
    trial.more_values = {0.1, std::numeric_limits<double>::infinity()};
    trial.constraint_values = {-1e300};
    trial.last_step = 9;
    trial.last_value = std::nan("");
    trial.reason = "pruned at step 9";
    trial.worker = "host";
    trial.user_failures = 1;
    trial.lost_attempts = 2;
    trial.asked_at = 5;
    trial.ended_at = 6;
    trial.origin = {.parent = 0, .member = 3, .generation = 2};
    trial.ask_request = "q";
    trial.finish_request = "f";
    trial.finish_attempt = 3;
    const std::string document = trial_to_document(trial);
    const Result<Trial> read = trial_from_document(document);
    ASSERT_TRUE(read.has_value()) << read.error().text();
    EXPECT_EQ(trial_to_document(*read), document);
    EXPECT_EQ(read->point[0], 0.1);
    EXPECT_FALSE(is_active(read->point[1]));
    EXPECT_EQ(read->point[2], 1e-300);
    EXPECT_EQ(read->value, 0.1 + 0.2);
    EXPECT_EQ(read->more_values, trial.more_values);
    EXPECT_EQ(read->constraint_values, trial.constraint_values);
    EXPECT_TRUE(std::isnan(read->last_value));
    EXPECT_EQ(read->ended_at, 6);
    EXPECT_EQ(read->origin, trial.origin);
}

TEST(TrialDocument, KeepsWhoHoldsARunningAttempt) {
    Trial trial;
    trial.state = TrialState::kRunning;
    trial.run_id = "r";
    trial.progress = std::make_unique<TrialProgress>(StudyConfig{});
    trial.progress->holder = {
        .agent_id = "a", .request_id = "q", .ttl_ms = 40'000, .expires_ms = 123};
    const Result<Trial> read = trial_from_document(trial_to_document(trial));
    ASSERT_TRUE(read.has_value());
    ASSERT_TRUE(read->progress);
    EXPECT_EQ(read->progress->holder.agent_id, "a");
    EXPECT_EQ(read->progress->holder.request_id, "q");
    EXPECT_EQ(read->progress->holder.ttl_ms, 40'000);
    EXPECT_EQ(read->progress->holder.expires_ms, 0);  // of a clock that is gone
}

TEST(TrialDocument, RefusesWhatItDidNotWrite) {
    for (const char* text :
         {"", "[]", "{}", R"({"number": "x", "state": "queued", "run_id": "", "point": []})",
          R"({"number": 1, "state": "running", "run_id": "", "point": []})"}) {
        const Result<Trial> read = trial_from_document(text);
        EXPECT_FALSE(read.has_value()) << text;
    }
}

}  // namespace
}  // namespace tune::tuner
