#include "tuner/study/study_definition.h"

#include <gtest/gtest.h>

#include "tests/tuner/study/parts/table.h"

namespace tune::tuner {
namespace {

TEST(StudyDefinition, AnotherModelBeginsAnEpochOfTrialsThatSawIt) {
    Table table;
    StudyConfig config = World::config(R"("sampler": {"type": "tpe"})");
    EXPECT_TRUE(table.definition.replace(config, std::nullopt).model);
    EXPECT_EQ(table.definition.epoch(), 0) << "there was no trial";
    config.sampler = World::config("").sampler;
    EXPECT_TRUE(table.definition.replace(config, 5).model);
    ASSERT_EQ(table.definition.epoch(), 1);
    EXPECT_EQ(table.definition.earlier()[0].until, 5);
    EXPECT_EQ(table.definition.earlier()[0].sampler.name(), "tpe");
    config.budget.trials = 3;
    const StudyDefinition::Changes changes = table.definition.replace(config, 6);
    EXPECT_FALSE(changes.model || changes.pruner);
    EXPECT_EQ(table.definition.epoch(), 1);
}

TEST(StudyDefinition, KeepsItsSeed) {
    Table table;
    StudyConfig config = table.config();
    config.sampler.seed.reset();
    EXPECT_FALSE(table.definition.replace(config, 5).model);
    EXPECT_EQ(table.config().sampler.seed, 1u);
}

TEST(StudyDefinition, ASharedConfigurationStaysAsItWas) {
    Table table;
    const auto before = table.definition.shared_config();
    EXPECT_EQ(table.definition.shared_config(), before) << "no copy without a change";
    table.definition.set_priority(3);
    table.definition.rename("t");
    EXPECT_EQ(before->priority.value_or(0), 0);
    EXPECT_EQ(before->study, "s");
    EXPECT_EQ(table.definition.shared_config()->study, "t");
    EXPECT_EQ(table.definition.priority(), 3);
    EXPECT_EQ(table.definition.name(), "t");
}

TEST(StudyDefinition, BringsATrialThroughTheSpacesSinceItsOwn) {
    Table table;
    const std::string wider = R"("space": {"x": {"float": [0, 2]}})";
    const std::string two = R"("space": {"x": {"float": [0, 2]}, "y": {"int": [1, 9], "init": 4}})";
    table.definition.replace(World::config(wider), 3);
    table.definition.replace(World::config(two), 6);
    Trial trial;
    trial.point = {0.25};
    ASSERT_TRUE(table.definition.bring_up(trial).has_value());
    EXPECT_EQ(trial.epoch, 2);
    EXPECT_EQ(trial.point, (Point{0.25, 4}));
    Trial stranger;
    stranger.point = {7, 4};
    stranger.epoch = 2;
    const Result<void> fits = table.definition.bring_up(stranger);
    ASSERT_FALSE(fits.has_value());
    EXPECT_EQ(fits.error().code, Code::kInvalidParameterValue);
}

}  // namespace
}  // namespace tune::tuner
