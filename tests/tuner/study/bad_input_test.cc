// What clients send that is wrong, and studies in which everything goes wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/tuner/study/world.h"

namespace tune::tuner {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Trial* best_of(World& world) {
    const Trial* best = nullptr;
    EXPECT_TRUE(world.studies()
                    .read("s", [&](const Study& study) { best = study.front().best(); })
                    .has_value());
    return best;
}

class EverySampler : public ::testing::TestWithParam<const char*> {
protected:
    static std::string fields() { return std::string(R"("sampler": )") + GetParam(); }
};

TEST_P(EverySampler, NanFailsTheTrialAndInfinityIsAValue) {
    World world;
    ASSERT_TRUE(world.create(fields()).has_value());
    const double values[] = {kNan, kInfinity, -kInfinity, 1, kNan, kInfinity, 2, 0.5};
    for (std::uint64_t number = 0; number < std::size(values); ++number) {
        ASSERT_THAT(*world.ask(), SizeIs(1)) << number;
        ASSERT_TRUE(world.tell(number, values[number]).has_value());
        const TrialView trial = world.trial(number);
        EXPECT_EQ(trial.state,
                  std::isnan(values[number]) ? TrialState::kFailed : TrialState::kComplete);
    }
    EXPECT_EQ(world.trial(0).reason, "metric 'loss' is NaN");
    EXPECT_EQ(best_of(world)->number, 2u) << "nothing is less than minus infinity";
    world.reopen();
    EXPECT_EQ(best_of(world)->value, -kInfinity);
    EXPECT_THAT(*world.ask(), SizeIs(1)) << "and the sampler goes on";
}

TEST_P(EverySampler, AllTrialsFailing) {
    World world;
    ASSERT_TRUE(world.create(fields() + R"(, "stop_after_failures": 0, "budget": {"trials": 30})")
                    .has_value());
    for (std::uint64_t number = 0; number < 30; ++number) {
        ASSERT_THAT(*world.ask(), SizeIs(1));
        ASSERT_TRUE(
            world.tell({.trial = {"s", number, 0}, .state = TrialState::kFailed, .reason = "no"})
                .has_value());
        if (number == 14) world.reopen();
    }
    EXPECT_EQ(world.state(), StudyState::kCompleted);
    EXPECT_EQ(world.count(TrialState::kFailed), 30u);
    EXPECT_EQ(best_of(world), nullptr);
}

TEST_P(EverySampler, AllTrialsEqualAndAllInfinite) {
    for (const double value : {7.0, kInfinity}) {
        World world;
        ASSERT_TRUE(world.create(fields()).has_value());
        for (std::uint64_t number = 0; number < 20; ++number) {
            ASSERT_THAT(*world.ask(), SizeIs(1));
            ASSERT_TRUE(world.tell(number, value).has_value());
        }
        EXPECT_EQ(best_of(world)->number, 0u) << "the earliest of equals";
    }
}

INSTANTIATE_TEST_SUITE_P(Samplers, EverySampler,
                         ::testing::Values(R"({"type": "random", "seed": 1})",
                                           R"({"type": "qmc", "seed": 1})",
                                           R"({"type": "tpe", "seed": 1, "startup": 2})",
                                           R"({"type": "tpe", "preset": "optuna4", "startup": 2})",
                                           R"({"type": "tpe", "preset": "hyperopt", "startup": 2})",
                                           R"({"type": "tpe", "preset": "watanabe", "startup": 2})",
                                           R"({"type": "gp", "seed": 1, "startup": 2})",
                                           R"({"type": "cmaes", "seed": 1})",
                                           R"({"type": "nsga2", "seed": 1})",
                                           R"({"type": "auto", "seed": 1})"));

TEST(BadInput, AnObjectiveThatIsNeverReportedFailsTheTrialAndSaysWhatCame) {
    World world;
    ASSERT_TRUE(world.create().has_value());
    ASSERT_TRUE(world.register_agent("a").has_value());
    const Lease lease = world.lease("a")->leases.at(0);
    world.log(lease.run_id, "accuracy", 1, 0.5);
    ASSERT_TRUE(world.finish("a", token(lease), {.request_id = "f", .outcome = Outcome::kDone})
                    .has_value());
    EXPECT_EQ(world.trial(0).state, TrialState::kFailed);
    EXPECT_THAT(world.trial(0).reason, HasSubstr("reported only 'accuracy'"));
    ASSERT_THAT(*world.ask(), SizeIs(1));
    const auto told = world.tell({.trial = {"s", 1, 0}});
    ASSERT_FALSE(told.has_value()) << "a client is told at once";
    EXPECT_EQ(told.error().code, Code::kInvalidParameterValue);
    EXPECT_EQ(world.trial(1).state, TrialState::kRunning) << "and may tell better";
}

TEST(BadInput, TenThousandParameters) {
    World world;
    Json space;
    for (int i = 0; i < 10'000; ++i) space["p" + std::to_string(i)] = {{"float", {0, 1}}};
    ASSERT_TRUE(
        world.create(R"("command": ["run"], "budget": {"trials": 3}, "space": )" + to_text(space))
            .has_value());
    for (std::uint64_t number = 0; number < 3; ++number) {
        const auto asked = world.ask();
        ASSERT_TRUE(asked.has_value()) << asked.error().text();
        EXPECT_THAT(parse_json(asked->at(0).params_json).value(), SizeIs(10'000));
        ASSERT_TRUE(world.tell(number, 1).has_value());
        world.reopen();
    }
    EXPECT_EQ(world.state(), StudyState::kCompleted);
    space["one more"] = {{"float", {0, 1}}};
    const Result<StudyConfig> beyond = study_config_from_json({{"space", space}});
    ASSERT_FALSE(beyond.has_value());
    EXPECT_THAT(beyond.error().message, HasSubstr("10000"));
}

}  // namespace
}  // namespace tune::tuner
