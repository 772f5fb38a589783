// Samplers gp and auto as a whole: where they begin, that every point of any space is allowed, that
// a rebuilt one continues with the same bits, and that what they propose is better than chance.
// Fixed seeds.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner::gp_quality_test {
namespace {

SamplerConfig config_of(const Json& sampler) {
    return study_config_from_json({{"sampler", sampler}}).value().sampler;
}

Observation complete(std::uint64_t number, Point point, double value) {
    Observation seen;
    seen.number = number;
    seen.state = Observation::State::kComplete;
    seen.point = std::move(point);
    seen.value = value;
    return seen;
}

bool same_point(const Point& a, const Point& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (is_active(a[i]) ? a[i] != b[i] : is_active(b[i])) return false;
    return a.size() == b.size();
}

class GpAndAuto : public ::testing::TestWithParam<const char*> {};

TEST_P(GpAndAuto, BeginEverywhereAlike) {
    constexpr std::size_t kSeeds = 400;
    const Space space = Space::from_json({{"c", {{"choice", {"x", "y", "z", "w"}}}},
                                          {"k", {{"int", {1, 5}}}},
                                          {"lr", {{"float", {1e-4, 1}}, {"log", true}}},
                                          {"x", {{"float", {-2, 3}}}}})
                            .value();
    for (const std::uint64_t trial : {0, 5}) {
        std::vector<double> x;
        std::vector<double> lr;
        std::vector<double> categories(4);
        std::vector<double> integers(5);
        for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
            const auto sampler = make_sampler(space, config_of(GetParam()), Goal::kMinimize, seed);
            const Point point = sampler->suggest(trial);
            categories[static_cast<std::size_t>(point[0])] += 1;
            integers[static_cast<std::size_t>(point[1]) - 1] += 1;
            lr.push_back((std::log10(point[2]) + 4) / 4);
            x.push_back((point[3] + 2) / 5);
        }
        for (std::vector<double>* values : {&x, &lr}) {
            std::sort(values->begin(), values->end());
            double distance = 0;
            for (std::size_t i = 0; i < kSeeds; ++i)
                distance = std::max({distance, (*values)[i] - static_cast<double>(i) / kSeeds,
                                     static_cast<double>(i + 1) / kSeeds - (*values)[i]});
            EXPECT_LT(distance * std::sqrt(static_cast<double>(kSeeds)), 1.63);  // p = 0.01
        }
        const auto chi_square = [](const std::vector<double>& counts) {
            const double expected =
                static_cast<double>(kSeeds) / static_cast<double>(counts.size());
            double sum = 0;
            for (const double count : counts) sum += std::pow(count - expected, 2) / expected;
            return sum;
        };
        EXPECT_LT(chi_square(categories), 11.34);  // 3 degrees of freedom, p = 0.01
        EXPECT_LT(chi_square(integers), 13.28);    // 4
    }
}

/// One to six parameters of any kind, some under conditions on a choice.
Json random_space(std::mt19937_64& random) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
    Json json = {{"a", {{"choice", {"p", "q", "r"}}}}};
    const int count = 1 + below(6);
    for (int i = 0; i < count; ++i) {
        Json parameter;
        const double low = std::pow(10.0, below(6) - 4);
        const double high = low * (2 + below(1000));
        switch (below(6)) {
            case 0: parameter = {{"float", {-low, high}}}; break;
            case 1: parameter = {{"float", {low, high}}, {"log", true}}; break;
            case 2: parameter = {{"float", {0, high}}, {"step", high / (1 + below(30))}}; break;
            case 3: parameter = {{"int", {1, 1 + below(500)}}, {"log", below(2) == 0}}; break;
            case 4: parameter = {{"choice", {1, "two", true}}}; break;
            default: parameter = {{"ordinal", {1, 5, 9, 30}}};
        }
        if (below(3) == 0) parameter["when"] = {{"a", below(2) == 0 ? "p" : "q"}};
        json["x" + std::to_string(i)] = std::move(parameter);
    }
    return json;
}

double bowl(const Space& space, const Point& point) {
    double sum = 0;
    for (std::size_t i = 0; i < space.size(); ++i) {
        if (!is_active(point[i])) continue;
        const Parameter& parameter = space[i];
        if (parameter.kind == Kind::kChoice) {
            sum += point[i] == 1 ? 0 : 0.3;
        } else if (parameter.high > parameter.low) {
            sum += std::pow((point[i] - parameter.low) / (parameter.high - parameter.low) - 0.4, 2);
        }
    }
    return sum;
}

TEST_P(GpAndAuto, StayInTheSpaceAndResumeWithTheSameBits) {
    constexpr std::uint64_t kTrials = 36;
    constexpr std::size_t kPending = 4;
    std::mt19937_64 random(20);
    for (int round = 0; round < 12; ++round) {
        const Space space = Space::from_json(random_space(random)).value();
        const SamplerConfig config = config_of({{"type", GetParam()},
                                                {"duplicates", "allow"},
                                                {"warp", round % 3 == 0 ? "on" : "auto"}});
        const auto lived = make_sampler(space, config, Goal::kMinimize, 3);
        std::map<std::uint64_t, Observation> latest;
        std::vector<std::uint64_t> running;
        for (std::uint64_t number = 0; number < kTrials; ++number) {
            Observation seen;
            seen.number = number;
            seen.point = lived->suggest(number);
            ASSERT_TRUE(space.check(seen.point).has_value()) << round << " " << number;
            ASSERT_TRUE(lived->observe(seen));
            latest[number] = seen;
            running.push_back(number);
            if (running.size() < kPending) continue;
            const std::size_t which = random() % running.size();
            Observation& ended = latest[running[which]];
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(which));
            ended.state = Observation::State::kComplete;
            ended.value = bowl(space, ended.point);
            if (random() % 8 == 0) ended.value = std::numeric_limits<double>::infinity();
            if (random() % 8 == 0) {
                ended.state = Observation::State::kPruned;
                ended.last_step = 2;
                ended.last_value = ended.value;
            }
            if (random() % 10 == 0) ended.state = Observation::State::kGone;
            ASSERT_TRUE(lived->observe(ended));
        }
        const auto rebuilt = make_sampler(space, config, Goal::kMinimize, 3);
        for (auto at = latest.rbegin(); at != latest.rend(); ++at)
            ASSERT_TRUE(rebuilt->observe(at->second));
        for (std::uint64_t number = kTrials; number < kTrials + 6; ++number)
            EXPECT_TRUE(same_point(lived->suggest(number), rebuilt->suggest(number)))
                << round << " " << number;
    }
}

struct Run {
    double best = std::numeric_limits<double>::infinity();  // without the noise
    double latest = 0;                                      // mean of the last ten
};

Run run(const Json& sampler_json, std::uint64_t seed, std::uint64_t trials, double noise) {
    const Space space = Space::from_json({{"c", {{"choice", {"x", "y"}}}},
                                          {"lr", {{"float", {1e-5, 1}}, {"log", true}}},
                                          {"u", {{"float", {0, 1}}}},
                                          {"v", {{"float", {0, 1}}}}})
                            .value();
    const auto sampler = make_sampler(space, config_of(sampler_json), Goal::kMaximize, seed);
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 1);
    Run result;
    for (std::uint64_t number = 0; number < trials; ++number) {
        const Point point = sampler->suggest(number);
        const double value = (point[0] == 0 ? 0 : 0.2) + std::pow(std::log10(point[1]) + 3, 2) / 4 +
                             std::pow(point[2] - 0.7, 2) * 3 +
                             std::pow(point[3] - point[2] + 0.2, 2) * 3;
        result.best = std::min(result.best, value);
        if (number + 10 >= trials) result.latest += value / 10;
        EXPECT_TRUE(sampler->observe(complete(number, point, -value - noise * normal(random))));
    }
    return result;
}

TEST_P(GpAndAuto, AreBetterThanChance) {
    int wins = 0;
    double log_ratio = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const double ours = run(GetParam(), seed, 40, 0).best;
        const double chance = run("random", seed, 40, 0).best;
        wins += ours < chance ? 1 : 0;
        log_ratio += std::log(ours / chance) / 10;
    }
    EXPECT_EQ(wins, 10);
    EXPECT_LT(std::exp(log_ratio), 0.05);
}

TEST_P(GpAndAuto, AreNotMisledByNoise) {
    double ours = 0;
    double chance = 0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
        ours += run(GetParam(), seed, 60, 0.3).latest / 6;
        chance += run("random", seed, 60, 0.3).latest / 6;
    }
    EXPECT_LT(ours, chance / 4);
}

INSTANTIATE_TEST_SUITE_P(Samplers, GpAndAuto, ::testing::Values("gp", "auto"),
                         [](const auto& test) { return std::string(test.param); });

TEST(GpSettings, WarpAndNoiseChangeWhatIsProposed) {
    const Space space = Space::from_json({{"x", {{"float", {0, 1}}}}}).value();
    std::vector<double> proposed;
    for (const Json& sampler :
         {Json{{"type", "gp"}, {"warp", "off"}}, Json{{"type", "gp"}, {"warp", "on"}},
          Json{{"type", "gp"}, {"warp", "off"}, {"noise", 0.5}}}) {
        const auto made = make_sampler(space, config_of(sampler), Goal::kMinimize, 1);
        for (std::uint64_t number = 0; number < 25; ++number) {
            const double x = static_cast<double>(number * 7 % 25) / 24;
            ASSERT_TRUE(made->observe(complete(number, {x}, std::sin(12 * std::pow(x, 0.3)))));
        }
        proposed.push_back(made->suggest(25)[0]);
    }
    EXPECT_NE(proposed[0], proposed[1]);
    EXPECT_NE(proposed[0], proposed[2]);
}

}  // namespace
}  // namespace tune::tuner::gp_quality_test
