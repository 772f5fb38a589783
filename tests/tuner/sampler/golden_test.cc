// Trials of Optuna 5.0.0 and 4.9.0 replayed: with numpy's generator in place of ours, every
// suggestion must be Optuna's. tests/tuner/golden/make_golden.py wrote the files.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/system/file.h"
#include "tests/tuner/sampler/reference.h"
#include "tuner/sampler/tpe/tpe_sampler.h"

namespace tune::tuner {
namespace {

/// numpy.random.RandomState(seed).random_sample(): MT19937, 53 bits; keys do not matter, order
/// does.
class NumpySource final : public UniformSource {
public:
    explicit NumpySource(std::uint32_t seed) : engine_(seed) {}
    void fill(std::uint64_t, std::uint64_t, std::span<double> out) override {
        for (double& u : out) {
            const auto high = static_cast<double>(engine_() >> 5);
            const auto low = static_cast<double>(engine_() >> 6);
            u = (high * 67108864.0 + low) / 9007199254740992.0;
        }
    }

private:
    std::mt19937 engine_;
};

TEST(NumpySource, GivesNumpysNumbers) {
    NumpySource source(42);
    double u[3];
    source.fill(0, 0, u);
    EXPECT_DOUBLE_EQ(u[0], 0.3745401188473625);
    EXPECT_DOUBLE_EQ(u[1], 0.9507143064099162);
    EXPECT_DOUBLE_EQ(u[2], 0.7319939418114051);
}

class Golden : public ::testing::TestWithParam<const char*> {};

Observation told(const Json& event) {
    Observation observation;
    observation.number = event.at("tell").get<std::uint64_t>();
    const auto state = event.at("state").get<std::string>();
    if (state == "complete") {
        observation.state = Observation::State::kComplete;
        observation.value = event.at("value").get<double>();
        observation.violation = event.value("violation", 0.0);
        for (const Json& value : event.value("more_values", Json::array()))
            observation.more_values.push_back(value.get<double>());
    } else if (state == "pruned") {
        observation.state = Observation::State::kPruned;
        if (event.contains("step")) {
            observation.last_step = event.at("step").get<std::int64_t>();
            observation.last_value = event.at("value").get<double>();
        }
    } else {
        observation.state = Observation::State::kGone;
    }
    return observation;
}

TEST_P(Golden, EverySuggestionIsOptunas) {
    const std::string path =
        std::string(TUNE_SOURCE_DIR "/tests/tuner/golden/") + GetParam() + ".json";
    const Json golden = parse_json(read_file(path).value()).value();
    const Space space = Space::from_json(golden.at("space")).value();
    const auto seed = golden.at("seed").get<std::uint32_t>();
    Objectives objectives(Goal::kMinimize);
    const Json goals = golden.contains("goals") ? golden["goals"] : Json{golden.at("goal")};
    objectives.goals.clear();
    for (const Json& goal : goals)
        objectives.goals.push_back(goal == "min" ? Goal::kMinimize : Goal::kMaximize);
    TpeOptions options;
    const bool is_old = golden.value("preset", "optuna5") == "optuna4";
    options.preset = is_old ? TpePreset::kOptuna4 : TpePreset::kOptuna5;
    TpeSampler sampler(
        space, options, objectives,
        TpeSources{std::make_unique<NumpySource>(seed), std::make_unique<NumpySource>(seed)});
    std::map<std::uint64_t, Point> points;
    for (const Json& event : golden.at("events")) {
        if (event.contains("tell")) {
            Observation observation = told(event);
            observation.point = points.at(observation.number);
            ASSERT_TRUE(sampler.observe(observation));
            continue;
        }
        const auto number = event.at("ask").get<std::uint64_t>();
        const Point suggested = sampler.suggest(number, {});
        Point expected = space.empty_point();
        for (std::size_t i = 0; i < space.size(); ++i) {
            const Json& value = event.at("params").at(space[i].name);
            expected[i] =
                value.is_number() ? value.get<double>() : space[i].internal(value).value();
            ASSERT_NEAR(suggested[i], expected[i], 1e-9 * std::max(1e-3, std::abs(expected[i])))
                << "trial " << number << ", parameter " << space[i].name;
        }
        // Go on from our own values: an error would add up and show.
        points[number] = suggested;
        Observation running;
        running.number = number;
        running.point = suggested;
        ASSERT_TRUE(sampler.observe(running));
    }
}

INSTANTIATE_TEST_SUITE_P(Tpe, Golden,
                         ::testing::Values("tpe_continuous", "tpe_parallel", "tpe_pruned_maximize",
                                           "tpe_grids", "tpe_constrained", "tpe_two_objectives",
                                           "tpe_three_objectives", "tpe_optuna4",
                                           "tpe_optuna4_parallel", "tpe_optuna4_grids"));

}  // namespace
}  // namespace tune::tuner
