// The rules by which trials move, without store, clock or threads.

#include "tuner/study/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::int64_t kNow_ms = 1'000'000;

StudyConfig config_of(const char* json) {
    const Result<Json> parsed = parse_json(json);
    EXPECT_TRUE(parsed.has_value());
    Result<StudyConfig> config = study_config_from_json(*parsed);
    EXPECT_TRUE(config.has_value()) << config.error().text();
    return std::move(config).value();
}

class StudyTest : public ::testing::Test {
protected:
    explicit StudyTest(const char* extra = "")
        : study_({.name = "s", .id = "id", .run_id = "run", .seed = 7, .created_ms = 1},
                 config_of((std::string(R"({"study": "s", "metric": {"name": "loss"},
                     "space": {"x": {"float": [0, 1]}, "n": {"int": [1, 9]}},
                     "retry": {"max": 1, "on": ["failed", "oom"]},
                     "budget": {"trials": 4, "parallel": 2}})") +
                            extra)
                               .c_str())) {}

    Trial& start() { return study_.start({.holder = {}, .worker = "w", .now_ms = kNow_ms}); }
    void done(Trial& trial, double value) {
        study_.report(trial, "loss", {.step = 0, .timestamp_ms = 0, .value = value}, trial.attempt);
        study_.settle(trial, {.outcome = Outcome::kDone}, kNow_ms);
    }

    Study study_;
};

TEST_F(StudyTest, StartsWithinBudgetAndParallel) {
    Trial& first = start();
    start();
    EXPECT_FALSE(study_.may_start(kNow_ms)) << "two run already";
    done(first, 1);
    Trial& third = start();
    done(third, 2);
    start();
    EXPECT_EQ(study_.trials().size(), 4u);
    done(*study_.find(1), 3);
    EXPECT_FALSE(study_.may_start(kNow_ms)) << "the budget is used";
}

TEST_F(StudyTest, ARequeuedTrialKeepsPointRunAndSeedAndComesFirst) {
    Trial& trial = start();
    const Point point = trial.point;
    const std::uint64_t seed = study_.definition().trial_seed(trial.number);
    study_.settle(trial, {.outcome = Outcome::kPreempted, .reason = "node drained"}, kNow_ms);
    EXPECT_EQ(trial.state, TrialState::kQueued);
    EXPECT_EQ(trial.reason, "node drained");
    EXPECT_EQ(&start(), &trial);
    EXPECT_EQ(trial.attempt, 2);
    EXPECT_EQ(trial.point, point);
    EXPECT_EQ(study_.definition().trial_seed(trial.number), seed);
    EXPECT_EQ(trial.user_failures, 0);
}

TEST_F(StudyTest, RetriesUserFailuresAsOftenAsConfigured) {
    Trial& trial = start();
    study_.settle(trial, {.outcome = Outcome::kFailed, .reason = "exit code 1"}, kNow_ms);
    EXPECT_EQ(trial.state, TrialState::kQueued);
    start();
    study_.settle(trial, {.outcome = Outcome::kOom, .reason = "out of memory"}, kNow_ms);
    EXPECT_EQ(trial.state, TrialState::kFailed) << "max is 1";
    EXPECT_EQ(trial.reason, "out of memory");
}

TEST_F(StudyTest, DoesNotRetryWhatTheStudyDoesNotName) {
    Trial& timed_out = start();
    study_.settle(timed_out, {.outcome = Outcome::kFailed, .timed_out = true}, kNow_ms);
    EXPECT_EQ(timed_out.state, TrialState::kFailed);
    Trial& bad = start();
    study_.settle(bad, {.outcome = Outcome::kBadConfig, .reason = "no such program"}, kNow_ms);
    EXPECT_EQ(bad.state, TrialState::kFailed);
}

TEST_F(StudyTest, LostAttemptsNeverCountAsFailuresButEnd) {
    Trial& trial = start();
    for (int i = 1; i < kLostAttemptsMax; ++i) {
        study_.settle(trial, {.outcome = Outcome::kLost, .reason = "agent gone"}, kNow_ms);
        ASSERT_EQ(trial.state, TrialState::kQueued) << i;
        ASSERT_EQ(&start(), &trial);
    }
    EXPECT_EQ(trial.user_failures, 0);
    study_.lose_attempt(trial, "agent gone", kNow_ms);
    EXPECT_EQ(trial.state, TrialState::kFailed);
    EXPECT_THAT(trial.reason, HasSubstr("given up after 10 lost attempts"));
}

TEST_F(StudyTest, DoneWithoutTheMetricExplainsHowToReportIt) {
    Trial& trial = start();
    trial.progress->other_metrics = {"accuracy"};
    study_.settle(trial, {.outcome = Outcome::kDone}, kNow_ms);
    EXPECT_EQ(trial.state, TrialState::kFailed);
    EXPECT_THAT(trial.reason, HasSubstr("metric 'loss' never arrived"));
    EXPECT_THAT(trial.reason, HasSubstr("reported only 'accuracy'"));
    EXPECT_THAT(trial.reason, HasSubstr(R"(tune: {"loss": 0.5})"));
    EXPECT_THAT(trial.reason, HasSubstr("--scrape"));
    Trial& other = start();
    study_.settle(other, {.outcome = Outcome::kDone, .reason = "a line was odd"}, kNow_ms);
    EXPECT_THAT(other.reason, StartsWith("a line was odd; metric 'loss' never arrived"));
}

TEST_F(StudyTest, NanIsAFailureThatIsNotRetried) {
    Trial& trial = start();
    done(trial, std::nan(""));
    EXPECT_EQ(trial.state, TrialState::kFailed);
    EXPECT_FALSE(trial.value.has_value());
    EXPECT_EQ(trial.reason, "metric 'loss' is NaN");
}

TEST_F(StudyTest, BestIsTheEarliestOfEquals) {
    Trial& a = start();
    Trial& b = start();
    done(b, 1);
    done(a, 1);
    EXPECT_EQ(study_.front().best(), &a);
    Trial& c = start();
    done(c, 0.5);
    EXPECT_EQ(study_.front().best(), &c);
}

TEST_F(StudyTest, PrunedTrialsKeepTheirLastReportAndAreNeverBest) {
    Trial& trial = start();
    study_.report(trial, "loss", {.step = 3, .timestamp_ms = 0, .value = 0.25}, trial.attempt);
    study_.settle(trial, {.outcome = Outcome::kPruned}, kNow_ms);
    EXPECT_EQ(trial.state, TrialState::kPruned);
    EXPECT_EQ(trial.value, 0.25);
    EXPECT_EQ(trial.last_step, 3);
    EXPECT_EQ(study_.front().best(), nullptr);
}

TEST_F(StudyTest, EnqueuedTrialsCountAndFillTheirOpenParameters) {
    const Result<Point> partial =
        study_.config().space.point_from_json(*parse_json(R"({"x": 0.5})"));
    const Result<Trial*> trial = study_.enqueue(*partial, "q", kNow_ms);
    ASSERT_TRUE(trial.has_value());
    EXPECT_EQ((*trial)->point[*study_.config().space.find("x")], 0.5);
    EXPECT_TRUE(study_.config().space.check((*trial)->point).has_value());
    EXPECT_EQ(&start(), *trial);
    for (int i = 0; i < 3; ++i)
        ASSERT_TRUE(study_.enqueue(study_.config().space.empty_point(), "", kNow_ms).has_value());
    const Result<Trial*> beyond = study_.enqueue(study_.config().space.empty_point(), "", kNow_ms);
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().code, Code::kResourceExhausted);
}

TEST_F(StudyTest, CompletesWhenTheLastTrialOfTheBudgetEnds) {
    for (int i = 0; i < 4; ++i) {
        EXPECT_FALSE(study_.complete_if_done(kNow_ms));
        done(start(), i);
    }
    EXPECT_TRUE(study_.complete_if_done(kNow_ms));
    EXPECT_EQ(study_.state(), StudyState::kCompleted);
    EXPECT_FALSE(study_.may_start(kNow_ms));
}

TEST_F(StudyTest, TimeBudgetCountsFromTheFirstTrial) {
    StudyConfig config = study_.config();
    config.budget.time_ms = 60'000;
    study_.reconfigure(config);
    EXPECT_FALSE(study_.budget().over(kNow_ms + 1'000'000)) << "nothing has started";
    done(start(), 1);
    EXPECT_FALSE(study_.budget().over(kNow_ms + 59'999));
    EXPECT_TRUE(study_.budget().over(kNow_ms + 60'000));
    EXPECT_FALSE(study_.may_start(kNow_ms + 60'000));
    EXPECT_TRUE(study_.complete_if_done(kNow_ms + 60'000));
    EXPECT_EQ(study_.status().note, "the time budget of 1m is over");
}

TEST_F(StudyTest, NamesWhatDiffers) {
    EXPECT_THAT(study_.definition().differences(study_.config()), IsEmpty());
    const StudyConfig other = config_of(R"({"study": "s",
        "metric": {"name": "loss", "goal": "max"},
        "space": {"x": {"float": [0, 2]}, "m": {"int": [1, 9]}},
        "sampler": {"type": "tpe", "seed": 8}})");
    EXPECT_THAT(study_.definition().differences(other),
                ElementsAre("space.m is new", HasSubstr("space.x is {\"float\":[0.0,2.0]}, was"),
                            "space.n is gone", "goal is max, was min", "seed is 8, was 7"));
}

TEST_F(StudyTest, SeedsDifferByTrialAndFitEveryGenerator) {
    std::set<std::uint64_t> seeds;
    for (std::uint64_t number = 0; number < 1000; ++number) {
        const std::uint64_t seed = study_.definition().trial_seed(number);
        EXPECT_LT(seed, std::uint64_t{1} << 31);
        seeds.insert(seed);
    }
    EXPECT_EQ(seeds.size(), 1000u);
}

/// Each suggestion records what it saw, so that a parallel study can be replayed bit for bit.
TEST_F(StudyTest, SuggestionsCanBeReplayedFromTheJournal) {
    StudyConfig config = study_.config();
    config.budget.trials = 60;
    config.budget.parallel = 5;
    study_.reconfigure(config);
    std::uint64_t random = 1;
    while (!study_.complete_if_done(kNow_ms)) {
        while (study_.may_start(kNow_ms)) start();
        random = random * 6364136223846793005u + 1442695040888963407u;
        const auto& running = study_.trials().running();
        auto pick = running.begin();
        std::advance(pick, static_cast<std::ptrdiff_t>((random >> 33) % running.size()));
        Trial& trial = *study_.find(*pick);
        done(trial, trial.point[0] * trial.point[0] + trial.point[1]);
    }
    for (const Trial& asked : study_.trials()) {
        const auto sampler = make_sampler(study_.config().space, study_.config().sampler,
                                          study_.config().metric.goal, study_.identity().seed);
        for (const Trial& seen : study_.trials()) {
            if (seen.asked_at >= asked.asked_at) continue;
            Observation observation{.number = seen.number, .point = seen.point};
            if (seen.ended_at < asked.asked_at) {
                observation.state = Observation::State::kComplete;
                observation.value = *seen.value;
            }
            ASSERT_TRUE(sampler->observe(observation).has_value());
        }
        EXPECT_EQ(sampler->suggest(asked.number), asked.point) << asked.number;
    }
}

TEST_F(StudyTest, DocumentBringsItBack) {
    const auto commands = create_study_commands(study_);
    const auto& document = std::get<tracker::PutDocument>(commands.back());
    const auto read = study_from_document(document.json_text);
    ASSERT_TRUE(read.has_value()) << read.error().text();
    EXPECT_EQ((*read)->identity().seed, 7u);
    EXPECT_EQ((*read)->identity().run_id, "run");
    EXPECT_TRUE((*read)->config() == study_.config());
    EXPECT_FALSE(study_from_document(R"({"name": "s"})").has_value());
    EXPECT_FALSE(study_from_document("no json").has_value());
}

TEST_F(StudyTest, ATrialThatNeverReachedTheDiskWaitsToBeRun) {
    Trial written;
    written.number = 2;
    written.state = TrialState::kComplete;
    written.value = 1;
    written.run_id = "r2";
    written.point = {0.5, 3};
    study_.restore(std::move(written));
    EXPECT_EQ(study_.trials().size(), 3u);
    EXPECT_EQ(study_.trials().count(TrialState::kQueued), 2u);
    EXPECT_FALSE(study_.find(0)->sync.run_requested);
    EXPECT_TRUE(study_.config().space.check(study_.find(0)->point).has_value());
}

}  // namespace
}  // namespace tune::tuner
