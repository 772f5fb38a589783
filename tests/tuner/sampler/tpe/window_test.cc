// TPE's window for huge histories, and the sampler that chooses.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/tuner/sampler/reference.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/auto_choice.h"
#include "tuner/sampler/tpe/parzen.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner::window_test {
namespace {

using State = Observation::State;

const std::vector<std::string> kWords = {"x=0..1", "k=1..20:int", "c=a,b,c", "y=0..1?c=b"};

double loss(const Point& p) {
    return std::pow(p[0] - 0.3, 2) + std::pow((p[1] - 12) / 16, 2) + (p[2] == 1 ? 0 : 0.3);
}

SamplerConfig with_window(int window) {
    SamplerConfig config;
    config.edit<TpeOptions>().window = window;
    return config;
}

/// A study whose best trials come early, so that good ones are older than the window.
std::vector<Observation> play(Sampler& sampler, std::uint64_t trials) {
    std::vector<Observation> last;
    for (std::uint64_t i = 0; i < trials; ++i) {
        Observation o;
        o.number = i;
        o.point = sampler.suggest(i);
        o.state = i % 19 == 7 ? State::kGone : State::kComplete;
        o.value = loss(o.point) + (i > 60 ? 0.2 : 0);
        EXPECT_TRUE(sampler.observe(o));
        last.push_back(o);
    }
    return last;
}

bool same(const Point& a, const Point& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return x == y || (!is_active(x) && !is_active(y));
    });
}

TEST(Window, IsExactUntilItIsFull) {
    const Space space = space_of(kWords);
    const auto exact = make_sampler(space, with_window(0), Goal::kMinimize, 1);
    const auto windowed = make_sampler(space, with_window(100), Goal::kMinimize, 1);
    for (const Observation& o : play(*exact, 105)) {
        EXPECT_TRUE(same(windowed->suggest(o.number), o.point)) << o.number;
        ASSERT_TRUE(windowed->observe(o));
    }
    play(*exact, 140);
    bool differs = false;
    const auto longer = make_sampler(space, with_window(0), Goal::kMinimize, 1);
    const auto shorter = make_sampler(space, with_window(40), Goal::kMinimize, 1);
    for (const Observation& o : play(*longer, 200)) {
        ASSERT_TRUE(shorter->observe(o));
        differs = differs || !same(longer->suggest(200), shorter->suggest(200));
    }
    EXPECT_TRUE(differs);
}

TEST(Window, TheSameBitsWhateverTheOrder) {
    const Space space = space_of(kWords);
    const auto lived = make_sampler(space, with_window(40), Goal::kMinimize, 3);
    std::vector<Observation> last = play(*lived, 300);
    const Point expected = lived->suggest(300);
    std::mt19937_64 random(7);
    for (int turn = 0; turn < 5; ++turn) {
        std::shuffle(last.begin(), last.end(), random);
        const auto resumed = make_sampler(space, with_window(40), Goal::kMinimize, 3);
        for (const Observation& o : last) ASSERT_TRUE(resumed->observe(o));
        EXPECT_TRUE(same(resumed->suggest(300), expected));
        // Trials that vanish bring older ones back into the window.
        for (int i = 0; i < 30; ++i) {
            Observation gone = last[static_cast<std::size_t>(i)];
            gone.state = State::kGone;
            ASSERT_TRUE(resumed->observe(gone));
        }
        for (int i = 0; i < 30; ++i)
            ASSERT_TRUE(resumed->observe(last[static_cast<std::size_t>(i)]));
        EXPECT_TRUE(same(resumed->suggest(300), expected));
    }
}

TEST(Window, DroppingManyIsDroppingEach) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> uniform(0, 1);
    const std::vector<Axis> axes = {axis_of("x=0..1"), axis_of("k=1..20:int"), axis_of("c=a,b")};
    ParzenEstimator many(axes);
    ParzenEstimator each(axes);
    for (std::uint64_t i = 0; i < 150; ++i) {
        const std::vector<double> row = {uniform(random), 1 + std::floor(20 * uniform(random)),
                                         std::floor(2 * uniform(random))};
        many.insert(3 * i, row);
        each.insert(3 * i, row);
    }
    many.erase_before(200);
    for (std::uint64_t i = 0; 3 * i < 200; ++i) each.erase(3 * i);
    ASSERT_EQ(many.size(), each.size());
    const std::vector<double> points = {0.1, 3, 0, 0.5, 17, 1, 0.9, 9, 0};
    std::vector<double> one(3);
    std::vector<double> other(3);
    many.log_density(points, one);
    each.log_density(points, other);
    EXPECT_EQ(one, other);
    many.erase_before(1'000'000);
    EXPECT_EQ(many.size(), 0u);
}

StudyConfig study_of(const std::vector<std::string>& words, std::optional<std::uint64_t> trials) {
    StudyConfig config;
    config.space = space_of(words);
    config.budget.trials = trials;
    config.sampler = sampler_named("auto");
    return config;
}

TEST(Auto, SaysWhatItPicksAndWhy) {
    EXPECT_EQ(sampler_outlook(study_of({"x=0..1", "m=a,b", "y=0..1?m=a"}, 100)),
              "gp with every fifth trial by tpe for the first 300 trials (3 parameters, 1 of them "
              "a category, 1 under "
              "conditions; noise is learnt), then tpe; the budget of 100 ends before that");
    StudyConfig one = study_of({"x=0..1"}, std::nullopt);
    one.sampler.edit<AutoOptions>().noise = 0.5;
    EXPECT_EQ(sampler_outlook(one),
              "gp with every fifth trial by tpe for the first 300 trials (1 parameter; with noise "
              "as given), then tpe");
    StudyConfig numbers = study_of({"x=0..1", "k=1..9:int"}, 1000);
    numbers.budget.parallel = 8;
    numbers.sampler.edit<AutoOptions>().noise = 0;
    EXPECT_EQ(sampler_outlook(numbers),
              "gp with every fifth trial by tpe for the first 300 trials (2 parameters; without "
              "noise, as given), then cmaes from the best one, for all are numbers, with every "
              "fifth by tpe; the 8 at a time keep apart");
    numbers.budget.parallel = 32;
    EXPECT_TRUE(sampler_outlook(numbers).ends_with(
        "; the 32 at a time keep apart, better than with tpe, cmaes or qmc as measured with up to "
        "64"));
    numbers.budget.parallel = 65;
    EXPECT_TRUE(sampler_outlook(numbers).ends_with(
        "; the 65 at a time keep apart, though more than 64 were never measured"));
    numbers.budget.parallel = 1;
    EXPECT_TRUE(sampler_outlook(numbers).ends_with("with every fifth by tpe"));
    std::vector<std::string> words;
    for (int i = 0; i < 100; ++i) words.push_back("x" + std::to_string(i) + "=0..1");
    EXPECT_EQ(sampler_outlook(study_of(words, 1000)),
              "tpe (100 parameters, too many for a Gaussian process)");
    StudyConfig several = study_of({"x=0..1"}, 100);
    several.more_metrics.emplace_back().name = "size";
    EXPECT_EQ(sampler_outlook(several), "tpe (1 parameter, 2 objectives)");
    StudyConfig bounded = study_of({"x=0..1"}, 100);
    bounded.constraints.emplace_back().max = 1;
    EXPECT_EQ(sampler_outlook(bounded), "tpe (1 parameter, with constraints)");
}

SamplerConfig of_type(std::string_view type) {
    SamplerConfig config = sampler_named(type);
    return config;
}

TEST(Auto, GoesOverToCmaesFromTheBestWhereAllAreNumbers) {
    const Space space = space_of({"x=0..1", "y=0..1"});
    const auto value = [](const Point& p) {
        return std::pow(p[0] - 0.3, 2) + std::pow(p[1] - p[0], 2);
    };
    SamplerConfig config = of_type("auto");
    const auto draw = make_sampler(space, of_type("random"), Goal::kMinimize, 11);
    const auto lived = make_sampler(space, config, Goal::kMinimize, 5);
    std::vector<Observation> history;
    double best_at_first = 1;
    double latest = 0;
    for (std::uint64_t i = 0; i < 420; ++i) {
        Observation o;
        o.number = i;
        o.point = (i < 300 ? draw : lived)->suggest(i);
        ASSERT_TRUE(lived->observe(o));
        o.state = State::kComplete;
        o.value = value(o.point);
        if (i < 300) best_at_first = std::min(best_at_first, o.value);
        if (i >= 390 && i % 5 != 1) latest = std::max(latest, o.value);
        history.push_back(o);
        // The trial before ends first: one runs at any time.
        if (i > 0) {
            ASSERT_TRUE(lived->observe(history[i - 1]));
        }
    }
    ASSERT_TRUE(lived->observe(history.back()));
    EXPECT_LT(latest, best_at_first / 5);  // it goes down from there, all of it
    const auto rebuilt = make_sampler(space, config, Goal::kMinimize, 5);
    for (std::size_t i = history.size(); i-- > 0;) ASSERT_TRUE(rebuilt->observe(history[i]));
    for (std::uint64_t i = 420; i < 440; ++i)
        EXPECT_TRUE(same(lived->suggest(i), rebuilt->suggest(i))) << i;
    // A trial of before the switch that turns out to be the best moves the beginning.
    history[7].value = -1;
    for (const auto& sampler : {lived.get(), rebuilt.get()})
        ASSERT_TRUE(sampler->observe(history[7]));
    const auto anew = make_sampler(space, config, Goal::kMinimize, 5);
    for (const Observation& seen : history) ASSERT_TRUE(anew->observe(seen));
    for (std::uint64_t i = 420; i < 430; ++i)
        EXPECT_TRUE(same(lived->suggest(i), anew->suggest(i))) << i;
}

TEST(Auto, GoesOverToTpeWithTheSameHistory) {
    const Space space = space_of({"x=0..1", "k=1..20:int", "c=a,b,c", "y=0..1?c=b"});
    SamplerConfig config = sampler_named("auto");
    const auto automatic = make_sampler(space, config, Goal::kMinimize, 5);
    SamplerConfig optuna;
    optuna.edit<TpeOptions>().preset = TpePreset::kOptuna5;
    const auto tpe = make_sampler(space, optuna, Goal::kMinimize, 5);
    int equal_before = 0;
    std::vector<Observation> last;
    std::mt19937_64 random(3);
    const auto draw = make_sampler(space, of_type("random"), Goal::kMinimize, 11);
    for (std::uint64_t i = 0; i < 310; ++i) {
        if (i % 100 == 60) equal_before += same(automatic->suggest(i), tpe->suggest(i)) ? 1 : 0;
        if (i >= 300) {
            EXPECT_TRUE(same(automatic->suggest(i), tpe->suggest(i))) << i;
        }
        Observation o;
        o.number = i;
        o.point = draw->suggest(i);
        o.state = State::kComplete;
        o.value = loss(o.point);
        ASSERT_TRUE(automatic->observe(o));
        ASSERT_TRUE(tpe->observe(o));
    }
    EXPECT_LT(equal_before, 3);
}

}  // namespace
}  // namespace tune::tuner::window_test
