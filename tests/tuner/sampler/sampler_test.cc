#include "tuner/sampler/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/tuner/sampler/reference.h"
#include "tuner/sampler/layout.h"

namespace tune::tuner::sampler_test {
namespace {

using State = Observation::State;

const std::vector<std::string> kWords = {"opt=sgd,adamw",
                                         "lr=1e-5..1e-1:log",
                                         "momentum=0..0.99?opt=sgd",
                                         "nesterov=true,false?opt=sgd",
                                         "beta=0.9..0.999?opt=adamw",
                                         "depth=18<34<50",
                                         "wide=1..8:int?depth>=34&opt=sgd",
                                         "seed==1",
                                         "only=3..3"};

double loss(const Space& space, const Point& point) {
    double sum = std::abs(std::log10(point[*space.find("lr")]) + 3);
    const double momentum = point[*space.find("momentum")];
    sum += is_active(momentum) ? std::abs(momentum - 0.9) : 0.3;
    return sum + point[*space.find("depth")] * 0.1;
}

/// A study with `outstanding` trials at a time; ends of every kind.
class Play {
public:
    Play(const Space& space, std::uint64_t seed)
        : space_(space), sampler_(make_sampler(space, SamplerConfig{}, Goal::kMinimize, seed)) {}

    void ask() {
        Observation o;
        o.number = static_cast<std::uint64_t>(last_.size());
        o.point = sampler_->suggest(o.number);
        EXPECT_TRUE(sampler_->observe(o));
        last_.push_back(o);
    }

    void tell(std::uint64_t number) {
        Observation& o = last_[number];
        const double value = loss(space_, o.point);
        o.state = number % 11 == 4  ? State::kGone
                  : number % 5 == 2 ? State::kPruned
                                    : State::kComplete;
        o.value = value;
        if (o.state == State::kPruned && number % 2 == 0) {
            o.last_step = static_cast<std::int64_t>(number % 7);
            o.last_value = value;
        }
        EXPECT_TRUE(sampler_->observe(o));
    }

    void run(std::uint64_t trials, std::uint64_t outstanding) {
        for (std::uint64_t i = 0; i < trials; ++i) {
            ask();
            if (i >= outstanding) tell(i - outstanding);
        }
    }

    Space space_;
    std::unique_ptr<Sampler> sampler_;
    std::vector<Observation> last_;
};

TEST(Layout, ParametersUnderTheSameConditionsAreSampledJointly) {
    const Space space = space_of(kWords);
    std::vector<std::vector<std::string>> groups;
    for (const Group& group : groups_of(space)) {
        if (group.is_fixed) continue;
        groups.emplace_back();
        for (const std::size_t index : group.members) groups.back().push_back(space[index].name);
    }
    EXPECT_EQ(groups, (std::vector<std::vector<std::string>>{
                          {"depth", "lr", "opt"}, {"momentum", "nesterov"}, {"beta"}, {"wide"}}));
}

TEST(Sampler, PointsAreValidThroughoutAConditionalStudy) {
    const Space space = space_of(kWords);
    Play play(space, 3);
    play.run(200, 3);
    int active = 0;
    for (const Observation& o : play.last_) {
        const Result<void> checked = space.check(o.point);
        ASSERT_TRUE(checked) << checked.error().message;
        active += is_active(o.point[*space.find("wide")]) ? 1 : 0;
    }
    EXPECT_GT(active, 5);
}

TEST(Sampler, ResumingGivesTheSameSuggestionsWhateverTheOrder) {
    const Space space = space_of(kWords);
    for (const unsigned seed : {1u, 2u, 3u}) {
        Play play(space, seed);
        play.run(150, 4);
        std::vector<Observation> history = play.last_;
        std::mt19937 random(seed);
        std::shuffle(history.begin(), history.end(), random);
        const auto resumed = make_sampler(space, SamplerConfig{}, Goal::kMinimize, seed);
        for (const Observation& o : history) ASSERT_TRUE(resumed->observe(o));
        for (std::uint64_t number = 150; number < 170; ++number) {
            const Point expected = play.sampler_->suggest(number);
            const Point found = resumed->suggest(number);
            for (std::size_t i = 0; i < space.size(); ++i)
                ASSERT_TRUE(expected[i] == found[i] ||
                            (!is_active(expected[i]) && !is_active(found[i])));
        }
    }
}

TEST(Sampler, FailedTrialsLeaveNoTrace) {
    const Space space = space_of({"x=0..1", "c=a,b"});
    const auto clean = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 1);
    const auto marked = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 1);
    for (std::uint64_t i = 0; i < 60; ++i) {
        Observation o;
        o.number = i;
        o.point = clean->suggest(i);
        ASSERT_TRUE(marked->observe(o));
        if (i % 3 == 0) {
            o.state = i % 2 == 0 ? State::kGone : State::kComplete;
            o.value = std::nan("");  // a complete trial without a number has failed
        } else {
            o.state = State::kComplete;
            o.value = o.point[0];
            ASSERT_TRUE(clean->observe(o));
        }
        ASSERT_TRUE(marked->observe(o));
    }
    for (std::uint64_t i = 60; i < 80; ++i) EXPECT_EQ(clean->suggest(i), marked->suggest(i));
}

TEST(Sampler, RunningTrialsPushTheNextAsksAway) {
    const Space space = space_of({"x=0..1"});
    Play play(space, 5);
    for (std::uint64_t i = 0; i < 60; ++i) {
        play.ask();
        Observation& o = play.last_[i];
        o.state = State::kComplete;
        o.value = std::abs(o.point[0] - 0.5);
        ASSERT_TRUE(play.sampler_->observe(o));
    }
    const double first = play.sampler_->suggest(60)[0];
    for (int copies = 0; copies < 5; ++copies) {
        Observation o;
        o.number = 1000 + static_cast<std::uint64_t>(copies);
        o.point = {first};
        ASSERT_TRUE(play.sampler_->observe(o));
    }
    EXPECT_GT(std::abs(play.sampler_->suggest(60)[0] - first), 1e-3);
}

TEST(Sampler, AskingAgainForARunningTrialGivesTheSamePoint) {
    const Space space = space_of(kWords);
    Play play(space, 7);
    play.run(50, 2);
    const Point again = play.sampler_->suggest(49);
    for (std::size_t i = 0; i < space.size(); ++i)
        EXPECT_TRUE(again[i] == play.last_[49].point[i] || !is_active(again[i]));
}

TEST(Sampler, StartsAtRandomUntilTenTrialsHaveFinished) {
    const Space space = space_of({"x=0..1", "c=a,b,c"});
    SamplerConfig random = sampler_named("random");
    const auto baseline = make_sampler(space, random, Goal::kMinimize, 9);
    const auto tpe = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 9);
    bool differs = false;
    for (std::uint64_t i = 0; i < 20; ++i) {
        Observation o;
        o.number = i;
        o.point = tpe->suggest(i);
        if (i < 10) {
            EXPECT_EQ(o.point, baseline->suggest(i));
        }
        differs = differs || o.point != baseline->suggest(i);
        o.state = State::kComplete;
        o.value = o.point[0];
        ASSERT_TRUE(tpe->observe(o));
    }
    EXPECT_TRUE(differs);
}

TEST(Sampler, TheFirstTrialTakesTheInitValues) {
    const Space space = space_of(
        {"lr=1e-5..1e-1:log@3e-4", "opt=sgd,adamw@adamw", "x=0..1", "momentum=0..1?opt=sgd@0.9"});
    const auto sampler = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 1);
    const Point point = sampler->suggest(0);
    EXPECT_EQ(point[0], 3e-4);
    EXPECT_EQ(point[1], 1);
    EXPECT_TRUE(is_active(point[2]));
    EXPECT_FALSE(is_active(point[3]));
    EXPECT_TRUE(sampler->observe({.number = 0, .point = sampler->suggest(0)}));
    EXPECT_NE(sampler->suggest(1)[0], 3e-4);
}

TEST(Sampler, FixedValuesAreKeptAndDecideTheBranch) {
    const Space space = space_of(kWords);
    Play play(space, 2);
    play.run(40, 1);
    for (std::uint64_t number = 40; number < 60; ++number) {
        Point fixed = space.empty_point();
        fixed[*space.find("opt")] = 0;
        fixed[*space.find("beta")] = 0.95;  // switched off by opt = sgd
        const Point point = play.sampler_->suggest(number, fixed);
        ASSERT_TRUE(space.check(point));
        EXPECT_EQ(point[*space.find("opt")], 0);
        EXPECT_FALSE(is_active(point[*space.find("beta")]));
        EXPECT_TRUE(is_active(point[*space.find("momentum")]));
    }
}

TEST(Sampler, RefusesPointsOutsideTheSpaceAndStaysAsItWas) {
    const Space space = space_of({"x=0..1", "y=1..9:int"});
    const auto sampler = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 1);
    const Point before = sampler->suggest(12);
    for (const Point& bad : {Point{2, 3}, Point{0.5, 3.5}, Point{0.5}, Point{0.5, kInactive},
                             Point{-0.1, 1}, Point{std::numeric_limits<double>::infinity(), 1}}) {
        Observation o;
        o.number = 1;
        o.state = State::kComplete;
        o.point = bad;
        const Result<void> refused = sampler->observe(o);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Code::kInvalidParameterValue);
    }
    EXPECT_EQ(sampler->suggest(12), before);
}

TEST(Sampler, ChangedOutcomesAndPointsReplaceTheOldOnes) {
    const Space space = space_of({"x=0..1"});
    const auto direct = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 1);
    const auto revised = make_sampler(space, SamplerConfig{}, Goal::kMinimize, 1);
    for (std::uint64_t i = 0; i < 40; ++i) {
        Observation o;
        o.number = i;
        o.state = State::kComplete;
        o.point = {1.0 - static_cast<double>(i) / 40};
        o.value = -static_cast<double>(i);
        ASSERT_TRUE(revised->observe(o));
        o.state = State::kPruned;
        ASSERT_TRUE(revised->observe(o));
        o.state = State::kComplete;
        o.point = {static_cast<double>(i) / 40};
        o.value = static_cast<double>(i);
        ASSERT_TRUE(revised->observe(o));
        ASSERT_TRUE(direct->observe(o));
    }
    for (std::uint64_t i = 40; i < 60; ++i) EXPECT_EQ(direct->suggest(i), revised->suggest(i));
}

TEST(Sampler, SurvivesInfiniteValuesAndEqualPoints) {
    const Space space = space_of({"x=0..1", "n=1..3:int", "c=a,b"});
    const auto sampler = make_sampler(space, SamplerConfig{}, Goal::kMaximize, 1);
    for (std::uint64_t i = 0; i < 120; ++i) {
        Observation o;
        o.number = i;
        o.state = State::kComplete;
        o.point = {i % 2 == 0 ? 0.0 : 1.0, 2, 0};
        o.value = i % 3 == 0 ? std::numeric_limits<double>::infinity()
                             : -std::numeric_limits<double>::infinity();
        ASSERT_TRUE(sampler->observe(o));
        ASSERT_TRUE(space.check(sampler->suggest(i + 1)));
    }
}

TEST(Sampler, ASpaceOfConstantsHasOnePoint) {
    const Space space = space_of({"a==1", "b==x?a=1"});
    for (const char* const type : {"random", "tpe"}) {
        SamplerConfig config = sampler_named(type);
        const auto sampler = make_sampler(space, config, Goal::kMinimize, 1);
        EXPECT_EQ(sampler->suggest(3), (Point{0, 0}));
    }
}

}  // namespace
}  // namespace tune::tuner::sampler_test
