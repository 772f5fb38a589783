// TPE by the rules of Optuna 4, Hyperopt and Watanabe.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/tuner/sampler/reference.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/tpe/presets/plain_mixture.h"
#include "tuner/sampler/tpe/tpe_options.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner::preset_test {
namespace {

using State = Observation::State;

std::vector<std::vector<double>> rows_of(const std::vector<double>& values) {
    std::vector<std::vector<double>> rows;
    for (const double value : values) rows.push_back({value});
    return rows;
}

double log_density(const PlainMixture& mixture, double at) {
    return mixture.log_density(std::vector<double>{at});
}

/// One axis with the weights by age.
PlainMixture mixture_of(const std::string& word, const std::vector<double>& values,
                        MixtureRule rule) {
    std::vector<double> weights = weights_by_age(values.size());
    weights.push_back(1);
    const std::vector<Axis> axes = {axis_of(word)};
    return {axes, rows_of(values), weights, rule};
}

TEST(PlainMixture, HyperoptsDensityIsThatOfItsPackage) {
    // Computed with hyperopt 0.3.0.
    const PlainMixture mixture = mixture_of("x=0..10", {1, 4, 4.5}, MixtureRule::kHyperopt);
    EXPECT_NEAR(log_density(mixture, 0.5), -2.400035630077, 1e-10);
    EXPECT_NEAR(log_density(mixture, 4.2), -1.868547146884, 1e-10);
    EXPECT_NEAR(log_density(mixture, 9), -3.470611699753, 1e-10);
}

TEST(PlainMixture, HyperoptsCategoriesAreCounts) {
    const PlainMixture mixture = mixture_of("c=a,b,c", {0, 2, 2}, MixtureRule::kHyperopt);
    EXPECT_NEAR(std::exp(log_density(mixture, 0)), 2.0 / 6, 1e-12);
    EXPECT_NEAR(std::exp(log_density(mixture, 1)), 1.0 / 6, 1e-12);
    EXPECT_NEAR(std::exp(log_density(mixture, 2)), 3.0 / 6, 1e-12);
}

TEST(PlainMixture, WatanabesWidthsCountThePriorAndTheEnds) {
    // Means 1, 4, 4.5 and the prior's 5 in [0, 10]: gaps 3, 3, 0.5 and the prior's own width 10.
    const PlainMixture mixture = mixture_of("x=0..10", {1, 4, 4.5}, MixtureRule::kWatanabe);
    const double mus[] = {1, 4, 4.5, 5};
    const double sigmas[] = {3, 3, 0.5, 10};
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
        const double mass = 0.5 * (std::erf((10 - mus[i]) / sigmas[i] / std::sqrt(2)) +
                                   std::erf(mus[i] / sigmas[i] / std::sqrt(2)));
        const double z = (4.2 - mus[i]) / sigmas[i];
        sum += 0.25 * std::exp(-0.5 * z * z) / (sigmas[i] * std::sqrt(2 * M_PI) * mass);
    }
    EXPECT_NEAR(log_density(mixture, 4.2), std::log(sum), 1e-12);
    // The floor: 3 % of the range for twenty equal observations.
    const PlainMixture narrow =
        mixture_of("x=0..10", std::vector<double>(20, 2.0), MixtureRule::kWatanabe);
    EXPECT_NEAR(log_density(narrow, 2.0) - log_density(narrow, 2.3), 0.5, 0.02);
}

TEST(PlainMixture, WeightsByAgeAreTheReferences) {
    for (const std::size_t count : {0, 1, 25, 26, 30, 40, 300}) {
        const std::vector<double> weights = weights_by_age(count);
        const std::vector<double> expected = reference_weights(count);
        ASSERT_EQ(weights.size(), expected.size());
        for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(weights[i], expected[i], 1e-12);
    }
}

/// The probability of a cell, or of a short piece of a continuous axis.
double mass_of(const PlainMixture& mixture, const Axis& axis, double low, double high) {
    if (axis.kind != Axis::Kind::kContinuous) return std::exp(log_density(mixture, low));
    double sum = 0;
    for (int i = 0; i < 20; ++i)
        sum +=
            std::exp(log_density(mixture, low + (high - low) * (i + 0.5) / 20)) * (high - low) / 20;
    return sum;
}

TEST(PlainMixture, DrawsFollowTheDensityAndItIntegratesToOne) {
    CounterSource source(4);
    for (const MixtureRule rule : {MixtureRule::kHyperopt, MixtureRule::kWatanabe}) {
        for (const char* word : {"x=0..10", "x=1..20:int", "x=1..64:int:log", "x=a,b,c,d"}) {
            const Axis axis = axis_of(word);
            const std::vector<double> seen = {1, 2, 2, 3};
            std::vector<double> positions;
            for (const double value : seen) positions.push_back(axis.position(value));
            const PlainMixture mixture = mixture_of(word, positions, rule);
            // Bins: cells of a grid, categories, or 20 pieces.
            std::vector<std::pair<double, double>> bins;
            if (axis.kind == Axis::Kind::kCategory) {
                for (int i = 0; i < 4; ++i) bins.emplace_back(i, i);
            } else if (axis.kind == Axis::Kind::kStepped) {
                for (double v = axis.value_low; v <= axis.value_high; ++v)
                    bins.emplace_back(axis.position(v), axis.position(v));
            } else {
                for (int i = 0; i < 20; ++i) bins.emplace_back(0.5 * i, 0.5 * (i + 1));
            }
            std::vector<double> counts(bins.size());
            constexpr int kDraws = 20000;
            std::vector<double> uniforms(2 * kDraws);
            source.fill(0, stream_key(word), uniforms);
            for (int i = 0; i < kDraws; ++i) {
                const std::size_t row =
                    mixture.component(uniforms[static_cast<std::size_t>(2 * i)]);
                double at =
                    mixture.draw_position(0, row, uniforms[static_cast<std::size_t>(2 * i + 1)]);
                if (axis.kind == Axis::Kind::kStepped) at = axis.position(axis.value(at));
                std::size_t bin = 0;
                while (bin + 1 < bins.size() &&
                       (axis.kind == Axis::Kind::kContinuous ? at >= bins[bin].second
                                                             : at > bins[bin].first + 1e-9))
                    ++bin;
                ++counts[bin];
            }
            double total = 0;
            double square = 0;
            for (std::size_t i = 0; i < bins.size(); ++i) {
                const double p = mass_of(mixture, axis, bins[i].first, bins[i].second);
                total += p;
                square += std::pow(counts[i] - p * kDraws, 2) / (p * kDraws);
            }
            const double freedom = static_cast<double>(bins.size()) - 1;
            EXPECT_NEAR(total, 1, 1e-3) << word;
            EXPECT_LT((square - freedom) / std::sqrt(2 * freedom), 6) << word;
        }
    }
}

double loss(const Point& p) {
    return std::pow(p[0] - 0.3, 2) + std::pow(std::log10(p[1]) + 3, 2) / 10 +
           (p[2] == 1 ? 0 : 0.3) + std::pow((p[3] - 12) / 16, 2) +
           (is_active(p[4]) ? std::pow(p[4] - 0.9, 2) : 0.5);
}

const std::vector<std::string> kWords = {"x=0..1", "lr=1e-5..1e-1:log", "c=a,b,c", "k=1..16:int",
                                         "y=0..1?c=b"};

class Preset : public ::testing::TestWithParam<TpePreset> {
protected:
    static std::unique_ptr<Sampler> make(std::uint64_t seed, std::string_view type) {
        SamplerConfig config = sampler_named(type);
        if (config.is("tpe")) config.edit<TpeOptions>().preset = GetParam();
        return make_sampler(space_of(kWords), config, Goal::kMinimize, seed);
    }

    static double best_of(std::uint64_t seed, std::string_view type,
                          std::vector<Observation>* all) {
        const auto sampler = make(seed, type);
        double best = 100;
        std::vector<Observation> last;
        for (std::uint64_t i = 0; i < 100; ++i) {
            Observation o;
            o.number = i;
            o.point = sampler->suggest(i);
            EXPECT_TRUE(space_of(kWords).check(o.point));
            EXPECT_TRUE(sampler->observe(o));
            last.push_back(o);
            if (i < 3) continue;
            Observation& ended = last[i - 3];
            ended.state = i % 17 == 5 ? State::kPruned : State::kComplete;
            ended.value = loss(ended.point);
            best = std::min(best, ended.value);
            EXPECT_TRUE(sampler->observe(ended));
        }
        if (all != nullptr) *all = std::move(last);
        return best;
    }
};

TEST_P(Preset, BeatsRandomSearch) {
    int wins = 0;
    for (std::uint64_t seed = 0; seed < 12; ++seed)
        wins += best_of(seed, "tpe", nullptr) < best_of(seed, "random", nullptr) ? 1 : 0;
    EXPECT_GE(wins, 9);
}

TEST_P(Preset, ResumingInAnyOrderGivesTheSameSuggestion) {
    std::vector<Observation> last;
    static_cast<void>(best_of(5, "tpe", &last));
    const auto forwards = make(5, "tpe");
    const auto backwards = make(5, "tpe");
    for (std::size_t i = 0; i < last.size(); ++i) {
        ASSERT_TRUE(forwards->observe(last[i]));
        ASSERT_TRUE(backwards->observe(last[last.size() - 1 - i]));
    }
    const Point one = forwards->suggest(100);
    const Point other = backwards->suggest(100);
    for (std::size_t j = 0; j < one.size(); ++j)
        EXPECT_TRUE(one[j] == other[j] || (!is_active(one[j]) && !is_active(other[j])));
}

INSTANTIATE_TEST_SUITE_P(All, Preset,
                         ::testing::Values(TpePreset::kTune, TpePreset::kOptuna5,
                                           TpePreset::kOptuna4, TpePreset::kHyperopt,
                                           TpePreset::kWatanabe));

TEST(PresetSampler, OnlyOptuna4AndWatanabeOverlookRunningTrials) {
    for (const TpePreset preset : {TpePreset::kTune, TpePreset::kOptuna5, TpePreset::kOptuna4,
                                   TpePreset::kHyperopt, TpePreset::kWatanabe}) {
        SamplerConfig config;
        config.edit<TpeOptions>().preset = preset;
        config.edit<TpeOptions>().startup = 5;
        const Space space = space_of({"x=0..1", "y=0..1"});
        const auto sampler = make_sampler(space, config, Goal::kMinimize, 2);
        Observation o;
        for (std::uint64_t i = 0; i < 30; ++i) {
            o.number = i;
            o.point = sampler->suggest(i);
            o.state = State::kComplete;
            o.value = o.point[0] + o.point[1];
            ASSERT_TRUE(sampler->observe(o));
        }
        const Point before = sampler->suggest(99);
        for (std::uint64_t i = 30; i < 60; ++i) {
            o.number = i;
            o.point = before;
            o.state = State::kRunning;
            ASSERT_TRUE(sampler->observe(o));
        }
        const bool is_seen = !(sampler->suggest(99) == before);
        EXPECT_EQ(is_seen, preset != TpePreset::kOptuna4 && preset != TpePreset::kWatanabe)
            << static_cast<int>(preset);
    }
}

Result<StudyConfig> read(const Json& sampler) {
    return study_config_from_json({{"sampler", sampler}});
}

TEST(SamplerSettings, PresetAndWindowAreReadAndWritten) {
    const Json json = {{"type", "tpe"}, {"preset", "hyperopt"}, {"window", 500}};
    const SamplerConfig config = read(json).value().sampler;
    EXPECT_EQ(config.get<TpeOptions>().preset, TpePreset::kHyperopt);
    EXPECT_EQ(config.get<TpeOptions>().window, 500);
    EXPECT_EQ(config.get<TpeOptions>().startup, 20);  // Hyperopt's own
    EXPECT_EQ(read(to_json(config)).value().sampler, config);
    EXPECT_EQ(read({{"type", "tpe"}, {"preset", "hyperopt"}, {"startup", 3}})
                  .value()
                  .sampler.get<TpeOptions>()
                  .startup,
              3);
    EXPECT_EQ(read("auto").value().sampler.name(), "auto");
    EXPECT_EQ(read("cmaes").value().sampler.name(), "cmaes");
}

TEST(SamplerSettings, WhatIsNotOneIsRefused) {
    const auto message = [](const Json& sampler) {
        const Result<StudyConfig> config = read(sampler);
        return config ? std::string("read") : config.error().message;
    };
    EXPECT_NE(message({{"type", "tpe"}, {"preset", "optuna3"}})
                  .find("expected tune, optuna5, optuna4, hyperopt or watanabe"),
              std::string::npos);
    EXPECT_NE(message({{"type", "tpe"}, {"preset", 4}}), "read");
    EXPECT_NE(message({{"type", "tpe"}, {"window", -1}}), "read");
    EXPECT_NE(message({{"type", "tpe"}, {"window", 1.5}}), "read");
    EXPECT_NE(message({{"type", "gp"}, {"preset", "optuna4"}}), "read");
    EXPECT_NE(message({{"type", "cmaes"}, {"window", 10}}), "read");
}

}  // namespace
}  // namespace tune::tuner::preset_test
