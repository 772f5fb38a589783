#include "tuner/cli/study_flags.h"
#include "tuner/pruner/asha_pruner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/id.h"
#include "base/system/file.h"

namespace tune::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StudyFlagsTest : public ::testing::Test {
protected:
    StudyFlagsTest()
        : folder_(std::filesystem::temp_directory_path() / ("tune-flags-" + random_hex(8))) {
        std::filesystem::create_directories(folder_);
    }
    ~StudyFlagsTest() override { std::filesystem::remove_all(folder_); }

    std::string file(const std::string& name, const std::string& text) {
        EXPECT_TRUE(write_file_atomic(folder_ / name, text).has_value());
        return (folder_ / name).string();
    }

    std::filesystem::path folder_;
};

TEST_F(StudyFlagsTest, WordsAndFlagsMakeAStudyWithoutAFile) {
    const auto config = study_from_flags({.words = {"lr=1e-5..1e-1:log", "opt=sgd,adamw"},
                                          .command = {"python3", "train.py", "{args}"},
                                          .trials = 20,
                                          .metric = "val_loss:max",
                                          .parallel = 3,
                                          .time = "2h",
                                          .seed = 9,
                                          .sampler = "random",
                                          .pruner = "asha,min=1,max=27,eta=3",
                                          .scrape = {"loss=([0-9.]+)"}},
                                         true);
    ASSERT_TRUE(config.has_value()) << config.error().text();
    EXPECT_EQ(config->study, "train");
    EXPECT_EQ(config->space.size(), 2u);
    EXPECT_EQ(config->budget.trials, 20u);
    EXPECT_EQ(config->budget.parallel, 3);
    EXPECT_EQ(config->budget.time_ms, 7'200'000);
    EXPECT_EQ(config->metric.name, "val_loss");
    EXPECT_EQ(config->metric.goal, tuner::Goal::kMaximize);
    EXPECT_EQ(config->sampler.name(), "random");
    EXPECT_EQ(config->sampler.seed, 9u);
    EXPECT_EQ(config->pruner.name(), "asha");
    EXPECT_EQ(config->pruner.get<tuner::AshaOptions>().eta, 3);
    ASSERT_EQ(config->scrape.size(), 1u);
}

TEST_F(StudyFlagsTest, FlagsWinOverTheFileAndKeepTheRest) {
    const std::string path = file("digits.yaml",
                                  "metric: {name: loss}\n"
                                  "space: {lr: {float: [0.1, 1]}, zz: {int: [1, 3]}, aa: {int: "
                                  "[1, 3]}}\n"
                                  "sampler: {type: tpe, seed: 5, startup: 3}\n"
                                  "budget: {trials: 10, gpus_per_trial: 1}\n"
                                  "command: [python, a.py]\n");
    const auto config =
        study_from_flags({.words = {path, "zz=1..9:int"}, .trials = 11, .sampler = "random"}, true);
    ASSERT_TRUE(config.has_value()) << config.error().text();
    EXPECT_EQ(config->study, "digits");
    EXPECT_EQ(config->budget.trials, 11u);
    EXPECT_EQ(config->budget.gpus_per_trial, 1);
    EXPECT_EQ(config->sampler.name(), "random");
    EXPECT_EQ(config->sampler.seed, 5u);
    EXPECT_EQ(config->space[*config->space.find("zz")].high, 9);
    EXPECT_EQ(config->space[0].name, "lr") << "the order of declaration stays";
    EXPECT_THAT(config->command, ElementsAre("python", "a.py"));
}

TEST_F(StudyFlagsTest, AMissingMetricIsExplained) {
    const auto config =
        study_from_flags({.words = {"x=0..1"}, .command = {"true"}, .trials = 1}, true);
    ASSERT_FALSE(config.has_value());
    EXPECT_THAT(config.error().message, HasSubstr("tune: {\"loss\": 0.31"));
    EXPECT_THAT(config.error().message, HasSubstr("--scrape"));
    EXPECT_THAT(config.error().message, HasSubstr("-m loss:min"));
}

TEST_F(StudyFlagsTest, ErrorsNameThePlace) {
    const auto message_of = [this](StudyFlags flags) {
        flags.metric = "loss";
        flags.command = {"true"};
        const auto config = study_from_flags(flags, true);
        return config ? std::string() : config.error().text();
    };
    EXPECT_THAT(message_of({.words = {"a.yaml", "b.yaml"}}), HasSubstr("two study files"));
    EXPECT_THAT(message_of({.words = {"/nonexistent.yaml"}}), HasSubstr("/nonexistent.yaml"));
    EXPECT_THAT(message_of({.words = {file("bad.yaml", "space: {x: [}")}}),
                HasSubstr("bad.yaml: line 1, column"));
    EXPECT_THAT(message_of({.words = {file("empty.yaml", "")}}), HasSubstr("empty"));
    EXPECT_THAT(message_of({.words = {"x=0..1"}, .pruner = "asha,min"}),
                HasSubstr("expected NAME=VALUE, found 'min'"));
    EXPECT_THAT(message_of({.words = {"x=0..1"}, .pruner = "asah"}), HasSubstr("asah"));
    EXPECT_THAT(message_of({.words = {"x=0..1"}, .sampler = "best"}), HasSubstr("best"));
    EXPECT_THAT(message_of({.words = {"x=0..1"}, .time = "soon"}), HasSubstr("soon"));
    EXPECT_THAT(message_of({.words = {"x=1..0"}}), HasSubstr("x"));
}

TEST(StudyName, IsThatOfTheScript) {
    EXPECT_EQ(name_from_command({"python", "dir/train.py", "{args}"}), "train");
    EXPECT_EQ(name_from_command({"/usr/bin/python3.11", "train.py"}), "train");
    EXPECT_EQ(name_from_command({"./fit", "--lr={lr}"}), "fit");
    EXPECT_EQ(name_from_command({"python", "-m", "pkg"}), "python");
    EXPECT_EQ(name_from_command({"sh", "-c", "echo {x}"}), "sh");
    EXPECT_EQ(name_from_command({}), "study");
}

}  // namespace
}  // namespace tune::cli
