// TPE must find better points than random search with the same number of trials. Twenty paired
// seeds a function; a sampler with a wrong sign, a dead model or a wrong split does not pass.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/tuner/sampler/reference.h"

namespace tune::tuner::quality_test {
namespace {

constexpr std::uint64_t kTrials = 100;
constexpr std::uint64_t kSeeds = 20;

struct Problem {
    const char* name;
    std::vector<std::string> words;
    std::function<double(const Point&)> regret;  // 0 at the optimum
    int wins_min;                                // of kSeeds, against random
    double ratio_max;                            // geometric mean of regrets, tpe / random
};

double squared(double x) {
    return x * x;
}

double branin(const Point& p) {
    const double a = p[1] - 5.1 / (4 * M_PI * M_PI) * p[0] * p[0] + 5 / M_PI * p[0] - 6;
    return a * a + 10 * (1 - 1 / (8 * M_PI)) * std::cos(p[0]) + 10 - 0.397887;
}

double bench(const Point& p) {
    double sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum += squared(p[i] - 0.3);
    return sum + 0.1 * squared(std::log10(p[8]) + 3) + (p[9] == 1 ? 0 : 0.2);
}

/// Two branches with parameters of their own; the better one is narrow.
double branches(const Point& p) {
    if (p[0] == 0) return 0.05 + squared(p[1] - 0.7) + squared(p[2] - 0.2);
    return squared(p[3] - 0.1) + squared((p[4] - 12) / 16);
}

const std::vector<Problem>& problems() {
    static const std::vector<std::string> kBench = [] {
        std::vector<std::string> words;
        for (int i = 0; i < 8; ++i) words.push_back("x" + std::to_string(i) + "=0..1");
        words.insert(words.end(), {"lr=1e-5..1e-1:log", "c=a,b,c"});
        return words;
    }();
    static const std::vector<Problem> kProblems = {
        {"sphere",
         {"a=-5..5", "b=-5..5", "c=-5..5"},
         [](const Point& p) { return squared(p[0]) + squared(p[1] - 1) + squared(p[2] + 2); },
         17,
         0.2},
        {"branin", {"x=-5..10", "y=0..15"}, branin, 16, 0.3},
        {"bench", kBench, bench, 15, 0.4},
        {"grid",
         {"a=0..100:int", "b=1..1024:int:log", "c=0..1:0.05"},
         [](const Point& p) {
             return 1e-3 + squared((p[0] - 37) / 100) + squared(std::log2(p[1]) / 10 - 0.6) +
                    squared(p[2] - 0.85);
         },
         16,
         0.4},
        {"branches",
         {"m=a,b", "x=0..1?m=a", "y=0..1?m=a", "z=0..1?m=b", "k=1..16:int?m=b"},
         [](const Point& p) { return 1e-3 + branches(p); },
         16,
         0.5}};
    return kProblems;
}

double best_of(const Problem& problem, std::string_view type, std::uint64_t seed, Goal goal) {
    SamplerConfig config = sampler_named(type);
    const auto sampler = make_sampler(space_of(problem.words), config, goal, seed);
    double best = std::numeric_limits<double>::infinity();
    for (std::uint64_t i = 0; i < kTrials; ++i) {
        Observation o;
        o.number = i;
        o.point = sampler->suggest(i);
        EXPECT_TRUE(sampler->observe(o));
        const double regret = problem.regret(o.point);
        best = std::min(best, regret);
        o.state = Observation::State::kComplete;
        o.value = goal == Goal::kMinimize ? regret : -regret;
        EXPECT_TRUE(sampler->observe(o));
    }
    return best;
}

class Quality : public ::testing::TestWithParam<std::size_t> {};

TEST_P(Quality, TpeBeatsRandomSearch) {
    const Problem& problem = problems()[GetParam()];
    for (const Goal goal : {Goal::kMinimize, Goal::kMaximize}) {
        int wins = 0;
        double log_ratio = 0;
        for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
            const double tpe = best_of(problem, "tpe", seed, goal);
            const double random = best_of(problem, "random", seed, goal);
            wins += tpe < random ? 1 : 0;
            log_ratio += std::log(tpe / random) / static_cast<double>(kSeeds);
        }
        std::printf("%s: %d of 20 won, regret ratio %.3f\n", problem.name, wins,
                    std::exp(log_ratio));
        EXPECT_GE(wins, problem.wins_min) << problem.name;
        EXPECT_LE(std::exp(log_ratio), problem.ratio_max) << problem.name;
    }
}

INSTANTIATE_TEST_SUITE_P(Problems, Quality, ::testing::Range<std::size_t>(0, 5));

}  // namespace
}  // namespace tune::tuner::quality_test
