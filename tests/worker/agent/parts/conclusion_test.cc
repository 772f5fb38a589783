#include "worker/agent/attempts/conclusion.h"

#include <gtest/gtest.h>

#include "tests/worker/agent/scratch.h"

namespace tune::worker {
namespace {

/// An attempt whose processes are gone, and what is concluded of it.
class ConclusionTest : public testing::Test {
protected:
    ConclusionTest() : attempt_(AttemptFiles(folder_.path())) {
        attempt_.record.lease.study = "s";
        attempt_.record.lease.number = 3;
        attempt_.record.lease.command = {"train"};
        attempt_.record.finish_request_id = "request";
        attempt_.exit.emplace();
        attempt_.exit->exit_code = 0;
        settings_.state_dir = "/the/state";
    }

    tuner::FinishRequest conclude_it() {
        TrialOutput output(folder_.path(), *MetricLines::create({}, "loss"), {});
        output.set_rules(*LogRules::create(rules_));
        Segment segment;
        while (output.read(1, segment)) {
        }
        const EndedAttempt ended{attempt_, output, "", 5};
        tuner::FinishRequest request = conclude(
            ended, settings_,
            [this](const std::string& uuid, const std::string&) { excluded_.push_back(uuid); });
        write_notes(ended, request);
        return request;
    }
    std::string notes() { return folder_.read(kAgentLogFile); }

    Scratch folder_;
    Attempt attempt_;
    AttemptSettings settings_;
    std::vector<tuner::LogRule> rules_;
    std::vector<std::string> excluded_;
};

TEST_F(ConclusionTest, ATrialThatEndsWellIsDone) {
    const tuner::FinishRequest request = conclude_it();
    EXPECT_EQ(request.outcome, tuner::Outcome::kDone);
    EXPECT_EQ(request.request_id, "request");
    EXPECT_EQ(request.peak_gpu_memory_bytes, 5);
    EXPECT_EQ(notes(), "");
}

TEST_F(ConclusionTest, OutputThatTheDiskDidNotTakeMayHaveHeldTheValue) {
    attempt_.exit->lost_bytes = {10, 2};
    tuner::FinishRequest request = conclude_it();
    EXPECT_EQ(request.outcome, tuner::Outcome::kFailed);
    EXPECT_NE(request.reason.find("12 bytes"), std::string::npos) << request.reason;
    EXPECT_NE(request.reason.find("/the/state"), std::string::npos) << request.reason;
    EXPECT_NE(notes().find("is the disk full"), std::string::npos) << notes();
    // Of the second machine no metric counts.
    attempt_.record.lease.gang.emplace();
    attempt_.record.lease.gang->node = 1;
    request = conclude_it();
    EXPECT_EQ(request.outcome, tuner::Outcome::kDone);
}

TEST_F(ConclusionTest, SaysWhichLineCouldNotBeRead) {
    folder_.append(kStdoutFile, "tune: {bad\n");
    const tuner::FinishRequest request = conclude_it();
    EXPECT_EQ(request.outcome, tuner::Outcome::kDone);
    EXPECT_NE(request.reason.find("tune: {bad"), std::string::npos) << request.reason;
    EXPECT_NE(notes().find("1 malformed"), std::string::npos) << notes();
}

TEST_F(ConclusionTest, ARuleExcludesTheDeviceThatItsLineNames) {
    rules_ = {{"GPU .* is broken", tuner::LogAction::kExcludeDevice}};
    attempt_.assignment.gpus = {"GPU-a", "GPU-b"};
    attempt_.exit->exit_code = 1;
    folder_.append(kStderrFile, "GPU GPU-b is broken\n");
    EXPECT_EQ(conclude_it().outcome, tuner::Outcome::kLost);
    EXPECT_EQ(excluded_, std::vector<std::string>{"GPU-b"});
}

TEST_F(ConclusionTest, ARuleThatNamesNoDeviceExcludesAllOfTheTrial) {
    rules_ = {{"a GPU is broken", tuner::LogAction::kExcludeDevice}};
    attempt_.assignment.gpus = {"GPU-a", "GPU-b"};
    attempt_.exit->exit_code = 1;
    folder_.append(kStderrFile, "a GPU is broken\n");
    EXPECT_EQ(conclude_it().outcome, tuner::Outcome::kLost);
    EXPECT_EQ(excluded_, (std::vector<std::string>{"GPU-a", "GPU-b"}));
}

TEST_F(ConclusionTest, RulesAreForFailuresOfTheTrialsOwn) {
    rules_ = {{"broken", tuner::LogAction::kNoRetry}};
    folder_.append(kStderrFile, "broken\n");
    EXPECT_EQ(conclude_it().outcome, tuner::Outcome::kDone) << "it ended well";
    attempt_.exit->exit_code = 1;
    EXPECT_EQ(conclude_it().outcome, tuner::Outcome::kBadConfig);
    attempt_.intent = {Intent::kPrune, "pruned"};
    attempt_.exit->stopped = true;
    EXPECT_EQ(conclude_it().outcome, tuner::Outcome::kPruned);
}

}  // namespace
}  // namespace tune::worker
