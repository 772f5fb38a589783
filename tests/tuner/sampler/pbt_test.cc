// Population based training: who continues whom, how parameters change, what is borne.

#include "tuner/sampler/pbt/pbt_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/tuner/sampler/statistics.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/pbt/pbt_explore.h"

namespace tune::tuner::pbt_test {
namespace {

using ::testing::ElementsAre;

Space space_of(const std::string& json) {
    return Space::from_json(parse_json(json).value()).value();
}

Space line() {
    return space_of(R"({"x": {"float": [0.001, 1000], "log": true}})");
}

SamplerConfig config_of(int population) {
    SamplerConfig config = sampler_named("pbt");
    config.edit<PbtOptions>().population = population;
    config.edit<PbtOptions>().resample_probability = 0;
    return config;
}

/// A study of one sampler: trials are asked and ended in any order.
struct Study {
    Study(Space with, SamplerConfig config, Goal goal = Goal::kMinimize, std::uint64_t seed = 1)
        : space(std::move(with)), sampler(make_sampler(space, config, goal, seed)) {}

    std::uint64_t ask(const Point& fixed = {}) {
        Observation seen;
        seen.number = trials.size();
        seen.point = sampler->suggest(seen.number, fixed);
        seen.origin = sampler->origin(seen.number);
        EXPECT_TRUE(sampler->observe(seen).has_value());
        trials.push_back(seen);
        return seen.number;
    }
    void end(std::uint64_t number, Observation::State state, double value = 0) {
        Observation& trial = trials[number];
        trial.state = state;
        trial.value = value;
        EXPECT_TRUE(sampler->observe(trial).has_value());
    }
    void complete(std::uint64_t number, double value) {
        end(number, Observation::State::kComplete, value);
    }
    [[nodiscard]] const Origin& origin(std::uint64_t number) const {
        return *trials[number].origin;
    }
    [[nodiscard]] double x(std::uint64_t number) const { return trials[number].point[0]; }
    /// A generation of trials with these values.
    void round(const std::vector<double>& values) {
        std::vector<std::uint64_t> numbers;
        for (std::size_t i = 0; i < values.size(); ++i) numbers.push_back(ask());
        for (std::size_t i = 0; i < values.size(); ++i) complete(numbers[i], values[i]);
    }

    Space space;
    std::unique_ptr<Sampler> sampler;
    std::vector<Observation> trials;
};

Origin origin_of(std::optional<std::uint64_t> parent, int member, int generation) {
    return {.parent = parent, .member = member, .generation = generation};
}

TEST(PbtExplore, MovesEachKindOfParameterByHand) {
    const Space space = space_of(
        R"({"a": {"float": [0, 10]}, "b": {"float": [-4, 4]}, "c": {"int": [1, 100]},
            "d": {"float": [0, 1], "step": 0.25}, "e": {"ordinal": [8, 16, 32]},
            "f": {"choice": ["u", "v", "w"]}, "g": {"const": 3},
            "h": {"float": [1e-4, 1e-1], "log": true}, "i": {"int": [0, 9]}})");
    const std::vector<double> factors = {0.8, 1.2};
    const auto moved = [&](const char* name, double value, double uniform) {
        return perturbed(space[*space.find(name)], value, factors, uniform);
    };
    EXPECT_DOUBLE_EQ(moved("a", 5, 0.49), 4);
    EXPECT_DOUBLE_EQ(moved("a", 5, 0.5), 6);
    EXPECT_DOUBLE_EQ(moved("a", 9, 0.9), 10) << "the bound";
    EXPECT_DOUBLE_EQ(moved("b", 1, 0), 1 - 0.2 * 8) << "a fifth of a range that reaches below 0";
    EXPECT_DOUBLE_EQ(moved("b", 1, 0.7), 1 + 0.2 * 8);
    EXPECT_DOUBLE_EQ(moved("b", -3.5, 0), -4);
    EXPECT_DOUBLE_EQ(moved("c", 50, 0), 40);
    EXPECT_DOUBLE_EQ(moved("c", 2, 0.6), 3) << "2.4 rounds to 2, but it goes at least one step";
    EXPECT_DOUBLE_EQ(moved("c", 2, 0.1), 1);
    EXPECT_DOUBLE_EQ(moved("c", 1, 0.1), 1) << "the bound";
    EXPECT_DOUBLE_EQ(moved("i", 0, 0.9), 1) << "0 is not a trap";
    EXPECT_DOUBLE_EQ(moved("d", 0.5, 0.9), 0.75);
    EXPECT_DOUBLE_EQ(moved("e", 1, 0.1), 0);
    EXPECT_DOUBLE_EQ(moved("e", 1, 0.9), 2);
    EXPECT_DOUBLE_EQ(moved("e", 2, 0.9), 2);
    EXPECT_DOUBLE_EQ(moved("f", 1, 0.9), 1) << "choices have no neighbours";
    EXPECT_DOUBLE_EQ(moved("g", 0, 0.9), 0);
    EXPECT_DOUBLE_EQ(moved("h", 0.01, 0.9), 0.012);
    EXPECT_DOUBLE_EQ(perturbed(space[0], 5, {3}, 0.99), 10);
}

TEST(Pbt, TheWorstQuarterContinuesTheBestOneChanged) {
    Study study(line(), config_of(4));
    study.round({1, 2, 3, 4});
    for (std::uint64_t n = 0; n < 4; ++n)
        EXPECT_EQ(study.origin(n), origin_of({}, static_cast<int>(n), 0));
    study.round({1, 2, 3, 0.5});
    for (std::uint64_t n = 4; n < 7; ++n) {
        EXPECT_EQ(study.origin(n), origin_of(n - 4, static_cast<int>(n - 4), 1));
        EXPECT_EQ(study.x(n), study.x(n - 4)) << "who goes on keeps its values";
    }
    EXPECT_EQ(study.origin(7), origin_of(0, 3, 1));
    const double factor = study.x(7) / study.x(0);
    EXPECT_TRUE(std::abs(factor - 0.8) < 1e-12 || std::abs(factor - 1.2) < 1e-12) << factor;
    // Now member 3 is the best and member 2 the worst.
    study.round({1, 1, 1, 1});
    EXPECT_EQ(study.origin(10), origin_of(7, 2, 2));
    EXPECT_EQ(study.origin(11), origin_of(7, 3, 2));
    EXPECT_EQ(study.x(11), study.x(7));
}

TEST(Pbt, MaximisesWhereThatIsTheGoal) {
    Study study(line(), config_of(4), Goal::kMaximize);
    study.round({1, 2, 3, 4});
    study.round({1, 2, 3, 4});
    EXPECT_EQ(study.origin(4), origin_of(3, 0, 1));
    EXPECT_EQ(study.origin(7), origin_of(3, 3, 1));
}

TEST(Pbt, HalfOfThePopulationIsTheMostThatIsReplaced) {
    SamplerConfig config = config_of(5);
    config.edit<PbtOptions>().quantile = 0.5;  // 3 of 5 by rounding up
    Study study(line(), config);
    study.round({1, 2, 3, 4, 5});
    study.round({1, 2, 3, 4, 5});
    EXPECT_EQ(study.origin(7).parent, 2u) << "the middle goes on";
    for (const std::uint64_t n : {8u, 9u}) EXPECT_LE(study.origin(n).parent, 1u);
    config.edit<PbtOptions>().quantile = 0;
    Study without(line(), config);
    without.round({1, 2, 3, 4, 5});
    without.round({1, 2, 3, 4, 5});
    for (std::uint64_t n = 5; n < 10; ++n) EXPECT_EQ(without.origin(n).parent, n - 5);
}

TEST(Pbt, NobodyWaitsForAStraggler) {
    Study study(line(), config_of(3));
    for (int i = 0; i < 3; ++i) study.ask();
    EXPECT_TRUE(study.sampler->is_exhausted()) << "all members train";
    study.complete(1, 5);
    EXPECT_FALSE(study.sampler->is_exhausted());
    EXPECT_EQ(study.ask(), 3u);
    EXPECT_EQ(study.origin(3), origin_of(1, 1, 1)) << "nobody to be compared with";
    study.complete(3, 4);
    study.complete(2, 3);
    EXPECT_EQ(study.ask(), 4u);
    EXPECT_EQ(study.origin(4), origin_of(2, 2, 1)) << "the one that has come least far";
    EXPECT_EQ(study.ask(), 5u);
    EXPECT_EQ(study.origin(5), origin_of(2, 1, 1)) << "the worse of two known ones";
    // Member 0 has trained all the while.
    study.complete(0, 1);
    study.ask();
    EXPECT_EQ(study.origin(6), origin_of(0, 0, 1));
}

TEST(Pbt, FailedAndPrunedMembersTakeOverOneOfTheBest) {
    Study study(line(), config_of(4));
    for (int i = 0; i < 4; ++i) study.ask();
    study.end(0, Observation::State::kGone);
    EXPECT_EQ(study.origin(study.ask()), origin_of({}, 0, 0)) << "nobody to be continued yet";
    study.complete(1, 7);
    study.end(2, Observation::State::kPruned);
    study.complete(3, std::nan(""));
    study.end(4, Observation::State::kGone);
    EXPECT_EQ(study.origin(study.ask()), origin_of(1, 0, 1));
    EXPECT_EQ(study.origin(study.ask()), origin_of(1, 2, 1));
    EXPECT_EQ(study.origin(study.ask()), origin_of(1, 3, 1)) << "NaN is no value";
    EXPECT_EQ(study.origin(study.ask()), origin_of(1, 1, 1));
    // A failure after some training loses that training only.
    study.complete(5, 1);
    study.end(6, Observation::State::kGone);
    EXPECT_EQ(study.origin(study.ask()), origin_of(5, 2, 2));
}

TEST(Pbt, TrainsToTheLastStepAndNoFurther) {
    SamplerConfig config = config_of(2);
    config.edit<PbtOptions>() = {
        .population = 2, .interval = 5, .warmup = 3, .max = 10, .resample_probability = 0};
    const auto steps = [&](int generation) {
        const Steps of = steps_of(config.get<PbtOptions>(), generation);
        return std::vector<std::int64_t>{of.from, of.to};
    };
    EXPECT_THAT(steps(0), ElementsAre(0, 3));
    EXPECT_THAT(steps(1), ElementsAre(3, 8));
    EXPECT_THAT(steps(2), ElementsAre(8, 10));
    EXPECT_THAT(steps(2'000'000'000), ElementsAre(::testing::_, 10));
    Study study(line(), config);
    study.round({1, 2});
    study.round({1, 2});
    study.ask();
    study.ask();
    EXPECT_TRUE(study.sampler->is_exhausted());
    study.complete(4, 1);
    EXPECT_TRUE(study.sampler->is_exhausted()) << "the other one trains its last interval";
    study.end(5, Observation::State::kGone);
    EXPECT_FALSE(study.sampler->is_exhausted()) << "its place is free again";
    // The best has trained to the end: the failed member resumes from its own last checkpoint.
    EXPECT_EQ(study.origin(study.ask()), origin_of(study.origin(5).member == 1 ? 3 : 2, 1, 2));
    study.complete(6, 9);
    EXPECT_TRUE(study.sampler->is_exhausted());
}

TEST(Pbt, PointsOfTheUserAreTakenEvenWhenAllTrain) {
    Study study(line(), config_of(2));
    for (const double x : {0.5, 2.0, 8.0}) EXPECT_EQ(study.x(study.ask({x})), x);
    EXPECT_EQ(study.origin(2), origin_of({}, 0, 0));
    study.complete(0, 1);
    study.complete(1, 2);
    EXPECT_EQ(study.ask({4.0}), 3u);
    EXPECT_EQ(study.x(3), 4.0);
    EXPECT_EQ(study.origin(3).member, 1);
}

TEST(Pbt, ConditionalParametersComeAndGoWithTheirChoice) {
    SamplerConfig config = config_of(6);
    config.edit<PbtOptions>().resample_probability = 0.8;
    config.edit<PbtOptions>().quantile = 0.5;
    Study study(space_of(R"({"opt": {"choice": ["sgd", "adam"]},
                             "momentum": {"float": [0, 1], "when": {"opt": "sgd"}}})"),
                config);
    int changed = 0;
    for (int generation = 0; generation < 30; ++generation) {
        study.round({1, 2, 3, 4, 5, 6});
        for (std::size_t n = study.trials.size() - 6; n < study.trials.size(); ++n) {
            ASSERT_TRUE(study.space.check(study.trials[n].point).has_value());
            const auto parent = study.origin(n).parent;
            if (parent && study.trials[*parent].point[0] != study.x(n)) ++changed;
        }
    }
    EXPECT_GT(changed, 10);
}

TEST(Pbt, NoChangeBreaksARule) {
    StudyConfig config = study_config_from_json(
                             parse_json(R"({"study": "s", "metric": "l", "sampler": {"type": "pbt",
            "population": 4, "quantile": 0.5}, "forbid": ["a > 0.5 and b > 0.5", "a < 0.3"],
            "space": {"a": {"float": [0, 1]}, "b": {"float": [0, 1]}}})")
                                 .value())
                             .value();
    Study study(config.space, config.sampler);
    for (int generation = 0; generation < 50; ++generation) study.round({1, 2, 3, 4});
    for (const Observation& trial : study.trials)
        EXPECT_TRUE(study.space.check(trial.point).has_value());
}

TEST(Pbt, ASuggestionIsAFunctionOfTheSetOfObservations) {
    SamplerConfig config = config_of(5);
    config.edit<PbtOptions>().resample_probability = 0.25;
    Study study(line(), config, Goal::kMinimize, 7);
    for (std::uint64_t n = 0; n < 60; ++n) {
        study.ask();
        if (n % 6 == 5) study.end(n, Observation::State::kGone);
        if (n % 6 != 5 && n > 3) study.complete(n - 3, std::fmod(study.x(n - 3) * 7919, 1.0));
    }
    Study rebuilt(line(), config, Goal::kMinimize, 7);
    for (auto trial = study.trials.rbegin(); trial != study.trials.rend(); ++trial)
        ASSERT_TRUE(rebuilt.sampler->observe(*trial).has_value());
    for (const std::uint64_t n : {60u, 61u, 200u}) {
        EXPECT_EQ(study.sampler->suggest(n), rebuilt.sampler->suggest(n));
        EXPECT_EQ(study.sampler->origin(n), rebuilt.sampler->origin(n));
    }
}

TEST(Pbt, ForeignTrialsAreNoMembers) {
    Study study(line(), config_of(2));
    Observation other;
    other.state = Observation::State::kComplete;
    other.point = {1};
    ASSERT_TRUE(study.sampler->observe(other).has_value()) << "of another sampler";
    other.number = 1;
    other.origin = origin_of(0, 9, 3);
    ASSERT_TRUE(study.sampler->observe(other).has_value()) << "of a larger population";
    EXPECT_EQ(study.sampler->origin(2), origin_of({}, 0, 0));
    other.point = {5000};
    EXPECT_FALSE(study.sampler->observe(other).has_value()) << "outside the space";
}

// --- distributions -------------------------------------------------------------------------------

TEST(PbtDistribution, TheFirstGenerationIsThePrior) {
    std::vector<double> logs;
    Study study(line(), config_of(1000));
    for (int i = 0; i < 1000; ++i) logs.push_back(std::log10(study.x(study.ask())));
    EXPECT_LT(kolmogorov(logs, [](double u) { return (u + 3) / 6; }), kKolmogorovMax);
}

TEST(PbtDistribution, FactorsAreEquallyLikelyAndResamplingHasItsShare) {
    const Space space = line();
    PbtOptions config;
    config.factors = {0.5, 0.8, 1.25};
    CounterSource source(5);
    std::vector<double> counts(4);
    std::vector<double> resampled;
    for (std::uint64_t n = 0; n < 20'000; ++n) {
        const double x = explored(space, {1}, config, source, n)[0];
        const auto found = std::find(config.factors.begin(), config.factors.end(), x);
        ++counts[static_cast<std::size_t>(found - config.factors.begin())];
        if (found == config.factors.end()) resampled.push_back(std::log10(x));
    }
    EXPECT_LT(chi_square_deviation(counts, {0.25, 0.25, 0.25, 0.25}), kDeviationMax);
    EXPECT_LT(kolmogorov(resampled, [](double u) { return (u + 3) / 6; }), kKolmogorovMax);
}

TEST(PbtDistribution, TheBestAreCopiedEquallyOften) {
    SamplerConfig config = config_of(40);
    config.edit<PbtOptions>().quantile = 0.1;
    std::vector<double> copied(4);
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        Study study(line(), config, Goal::kMinimize, seed);
        std::vector<double> values;
        for (int i = 0; i < 40; ++i) values.push_back(i);
        study.round(values);
        study.round(values);
        for (std::uint64_t n = 76; n < 80; ++n) ++copied.at(*study.origin(n).parent);
    }
    EXPECT_LT(chi_square_deviation(copied, {0.25, 0.25, 0.25, 0.25}), kDeviationMax);
}

// --- does it train better ------------------------------------------------------------------------

/// The example of the paper (section 4.1): weights t climb a surrogate 1.2 - h0 t0^2 - h1 t1^2
/// whose parameters h are tuned, and what counts is 1.2 - t0^2 - t1^2. A fixed h with one of them 0
/// leaves a weight where it began.
double trained(std::string_view type, std::uint64_t seed) {
    const SamplerConfig config = type == "pbt" ? config_of(8) : sampler_named(type);
    const Space space = space_of(R"({"h0": {"float": [0, 1]}, "h1": {"float": [0, 1]}})");
    Study study(space, config, Goal::kMaximize, seed);
    std::vector<std::pair<double, double>> weights;
    double best = 0;
    for (int step = 0; step < 20; ++step) {
        std::vector<double> values;
        for (int i = 0; i < 8; ++i) {
            const std::uint64_t n = study.ask();
            // Without a parent it is a trial of its own that trains as long as all of them
            // together.
            const bool continues = study.trials[n].origin && study.origin(n).parent;
            auto [t0, t1] = continues ? weights[*study.origin(n).parent] : std::pair(0.9, 0.9);
            const Point& h = study.trials[n].point;
            t0 -= 0.05 * h[0] * t0;
            t1 -= 0.05 * h[1] * t1;
            weights.emplace_back(t0, t1);
            values.push_back(1.2 - t0 * t0 - t1 * t1);
        }
        for (std::size_t i = 0; i < 8; ++i) study.complete(study.trials.size() - 8 + i, values[i]);
        best = *std::max_element(values.begin(), values.end());
    }
    return best;
}

TEST(Pbt, CheckpointsThatAreContinuedGetFurtherThanTrialsOfTheirOwn) {
    for (const std::uint64_t seed : {1u, 2u, 3u}) {
        const double with = trained("pbt", seed);
        // 20 intervals at the largest parameters lead to 0.99; one interval of any to -0.3.
        EXPECT_GT(with, 0.6) << seed;
        EXPECT_LT(trained("random", seed), 0);
    }
}

}  // namespace
}  // namespace tune::tuner::pbt_test
