// Grid, quasi-random sequence, and no point twice.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/finite_points.h"

namespace tune::tuner::finite_test {
namespace {

Space space_of(const Json& json) {
    return Space::from_json(json).value();
}

SamplerConfig config_of(const Json& json) {
    return study_config_from_json({{"sampler", json}}).value().sampler;
}

void tell(Sampler& sampler, std::uint64_t number, const Point& point,
          Observation::State state = Observation::State::kComplete) {
    Observation seen;
    seen.number = number;
    seen.state = state;
    seen.point = point;
    ASSERT_TRUE(sampler.observe(seen).has_value());
}

const Json kConditional = {{"opt", {{"choice", {"sgd", "adam"}}}},
                           {"layers", {{"int", {1, 3}}}},
                           {"momentum", {{"choice", {0.0, 0.5, 0.9}}, {"when", {{"opt", "sgd"}}}}}};

TEST(Grid, EveryPointOnceAndConditionsMakeNoCopies) {
    const Space space = space_of(kConditional);
    const auto sampler = make_sampler(space, config_of("grid"), Goal::kMinimize, 7);
    std::set<std::string> seen;
    for (std::uint64_t n = 0; n < 12; ++n) {  // 3 layers x (3 momenta with sgd + adam)
        ASSERT_FALSE(sampler->is_exhausted()) << n;
        const Point point = sampler->suggest(n);
        ASSERT_TRUE(space.check(point).has_value());
        seen.insert(to_text(space.to_json(point)));
        // What became of a trial does not matter.
        tell(*sampler, n, point,
             n % 2 == 0 ? Observation::State::kGone : Observation::State::kRunning);
    }
    EXPECT_EQ(seen.size(), 12u);
    EXPECT_TRUE(sampler->is_exhausted());
    EXPECT_TRUE(space.check(sampler->suggest(12)).has_value()) << "still an answer";
}

TEST(Grid, OrderIsTheSeedsAndEnqueuedPointsCount) {
    const Space space = space_of(kConditional);
    const auto order = [&](std::uint64_t seed) {
        const auto sampler = make_sampler(space, config_of("grid"), Goal::kMinimize, seed);
        std::string text;
        for (std::uint64_t n = 0; n < 12; ++n) {
            const Point point = sampler->suggest(n);
            text += to_text(space.to_json(point));
            tell(*sampler, n, point);
        }
        return text;
    };
    EXPECT_EQ(order(1), order(1));
    EXPECT_NE(order(1), order(2));
    const auto sampler = make_sampler(space, config_of("grid"), Goal::kMinimize, 1);
    const Point fixed = space.point_from_json({{"opt", "adam"}}).value();
    for (std::uint64_t n = 0; n < 3; ++n) {
        const Point point = sampler->suggest(n, fixed);
        EXPECT_EQ(space.to_json(point).at("opt"), "adam");
        tell(*sampler, n, point);
    }
    for (std::uint64_t n = 3; n < 12; ++n) {
        const Point point = sampler->suggest(n);
        EXPECT_EQ(space.to_json(point).at("opt"), "sgd");
        tell(*sampler, n, point);
    }
}

TEST(Grid, ContinuousParametersNeedPoints) {
    const Space space = space_of({{"lr", {{"float", {1e-4, 1}}, {"log", true}}}});
    const Result<void> refused = check_sampler(space, config_of("grid"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("'lr' is continuous"), std::string::npos);
    const SamplerConfig config = config_of({{"type", "grid"}, {"points", 5}});
    ASSERT_TRUE(check_sampler(space, config).has_value());
    const auto sampler = make_sampler(space, config, Goal::kMinimize, 3);
    std::set<int> exponents;
    for (std::uint64_t n = 0; n < 5; ++n) {
        const Point point = sampler->suggest(n);
        exponents.insert(static_cast<int>(std::lround(std::log10(point[0]))));
        tell(*sampler, n, point);
    }
    EXPECT_EQ(exponents, (std::set<int>{-4, -3, -2, -1, 0}));
}

TEST(Grid, TooManyPointsAreRefused) {
    const Space space = space_of({{"a", {{"int", {1, 1000}}}}, {"b", {{"int", {1, 1000}}}}});
    const Result<void> refused = check_sampler(space, config_of("grid"));
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("more than 100000 points"), std::string::npos);
}

TEST(Distinct, NoPointTwiceUntilThereIsNoneLeft) {
    const Space space = space_of({{"a", {{"int", {1, 5}}}}, {"b", {{"choice", {"x", "y", "z"}}}}});
    for (const char* type : {"random", "tpe", "qmc"}) {
        const auto sampler = make_sampler(space, config_of(type), Goal::kMinimize, 5);
        std::set<std::string> seen;
        for (std::uint64_t n = 0; n < 15; ++n) {
            ASSERT_FALSE(sampler->is_exhausted()) << type;
            const Point point = sampler->suggest(n);
            EXPECT_TRUE(seen.insert(to_text(space.to_json(point))).second) << type << " " << n;
            tell(*sampler, n, point);
        }
        EXPECT_TRUE(sampler->is_exhausted()) << type;
        const auto again = make_sampler(space, config_of({{"type", type}, {"duplicates", "allow"}}),
                                        Goal::kMinimize, 5);
        std::set<std::string> repeated;
        for (std::uint64_t n = 0; n < 15; ++n) {
            const Point point = again->suggest(n);
            repeated.insert(to_text(space.to_json(point)));
            tell(*again, n, point);
        }
        EXPECT_LT(repeated.size(), 15u) << type;
        EXPECT_FALSE(again->is_exhausted());
    }
}

TEST(Distinct, RepeatsAreReplacedByPointsThatDifferLittle) {
    const Space space = space_of({{"a", {{"int", {0, 29}}}}, {"b", {{"int", {0, 29}}}}});
    for (const char* preset : {"tune", "optuna5", "hyperopt"}) {
        const SamplerConfig config = config_of({{"type", "tpe"}, {"preset", preset}});
        const auto sampler = make_sampler(space, config, Goal::kMinimize, 3);
        std::set<Point> seen;
        int near = 0;  // a random point is once in eight: 5 of 40
        for (std::uint64_t n = 0; n < 120; ++n) {
            Observation told;
            told.number = n;
            told.state = Observation::State::kComplete;
            told.point = sampler->suggest(n);
            told.value = std::hypot(told.point[0] - 7, told.point[1] - 21);
            EXPECT_TRUE(seen.insert(told.point).second) << preset << " " << n;
            near += n >= 80 && told.value < 6 ? 1 : 0;
            ASSERT_TRUE(sampler->observe(told).has_value());
        }
        EXPECT_GE(near, 15) << preset;
    }
}

TEST(Distinct, AnUnseenPointDependsOnWhatWasSeenOnly) {
    const Space space = space_of({{"a", {{"int", {1, 6}}}},
                                  {"b", {{"choice", {"x", "y", "z"}}}},
                                  {"c", {{"int", {1, 3}}, {"when", {{"b", "x"}}}}},
                                  {"d", {{"const", 5}}}});
    const SamplerConfig config = config_of({{"type", "tpe"}, {"startup", 5}});
    const auto lived = make_sampler(space, config, Goal::kMinimize, 11);
    std::vector<Observation> history;
    for (std::uint64_t n = 0; n < 30; ++n) {  // all of them: 6 x (3 + 1 + 1)
        const auto rebuilt = make_sampler(space, config, Goal::kMinimize, 11);
        for (auto at = history.rbegin(); at != history.rend(); ++at)
            ASSERT_TRUE(rebuilt->observe(*at).has_value());
        ASSERT_FALSE(lived->is_exhausted());
        Observation told;
        told.number = n;
        told.state = Observation::State::kComplete;
        told.point = lived->suggest(n);
        told.value = told.point[0];
        ASSERT_TRUE(space.check(told.point).has_value());
        EXPECT_TRUE(PointEqual{}(told.point, rebuilt->suggest(n))) << n;
        for (const Observation& before : history)
            EXPECT_FALSE(PointEqual{}(told.point, before.point)) << n;
        ASSERT_TRUE(lived->observe(told).has_value());
        history.push_back(told);
    }
    EXPECT_TRUE(lived->is_exhausted());
}

TEST(Distinct, ContinuousSpacesAreNeverExhausted) {
    const Space space = space_of({{"x", {{"float", {0, 1}}}}});
    const auto sampler = make_sampler(space, config_of("random"), Goal::kMinimize, 5);
    for (std::uint64_t n = 0; n < 100; ++n) tell(*sampler, n, sampler->suggest(n));
    EXPECT_FALSE(sampler->is_exhausted());
}

TEST(Qmc, EveryBinaryIntervalHoldsItsShare) {
    // 2^k points of a (0, 1)-sequence: one in each of 2^k equal intervals, in every coordinate.
    Json json;
    for (int i = 0; i < 12; ++i) json["x" + std::to_string(i)] = {{"float", {0, 1}}};
    const Space space = space_of(json);
    const auto sampler = make_sampler(space, config_of("qmc"), Goal::kMinimize, 11);
    constexpr std::uint64_t kPoints = 256;
    std::vector<std::set<int>> cells(space.size());
    for (std::uint64_t n = 0; n < kPoints; ++n) {
        const Point point = sampler->suggest(n);
        for (std::size_t i = 0; i < point.size(); ++i)
            cells[i].insert(static_cast<int>(point[i] * kPoints));
    }
    for (const auto& column : cells) EXPECT_EQ(column.size(), kPoints);
}

TEST(Qmc, PairsOfCoordinatesFillTheSquare) {
    const Space space = space_of({{"x", {{"float", {0, 1}}}}, {"y", {{"float", {0, 1}}}}});
    const auto sampler = make_sampler(space, config_of("qmc"), Goal::kMinimize, 2);
    std::set<int> boxes;  // 16 x 16 boxes, 256 points of a (0, 2)-sequence
    for (std::uint64_t n = 0; n < 256; ++n) {
        const Point point = sampler->suggest(n);
        boxes.insert(static_cast<int>(point[0] * 16) * 16 + static_cast<int>(point[1] * 16));
    }
    EXPECT_EQ(boxes.size(), 256u);
}

TEST(Qmc, ATrialsPointDependsOnSeedAndNumberOnly) {
    const Space space = space_of(kConditional);
    const SamplerConfig config = config_of({{"type", "qmc"}, {"duplicates", "allow"}});
    const auto a = make_sampler(space, config, Goal::kMinimize, 1);
    const auto b = make_sampler(space, config, Goal::kMinimize, 1);
    const auto c = make_sampler(space, config, Goal::kMinimize, 2);
    int differ = 0;
    for (const std::uint64_t n : {5u, 3u, 100u, 99999u, 0u}) {
        const Point point = a->suggest(n);
        tell(*a, n, point);
        EXPECT_TRUE(PointEqual{}(point, b->suggest(n)));
        differ += PointEqual{}(point, c->suggest(n)) ? 0 : 1;
        ASSERT_TRUE(space.check(point).has_value());
    }
    EXPECT_GT(differ, 0);
}

/// Of floats with a step, all samplers give the decimal numbers, the last one too.
TEST(Steps, EverySamplerGivesTheDecimalNumbers) {
    const Space space = space_of({{"x", {{"float", {0, 1}}, {"step", 0.3}}},
                                  {"y", {{"float", {-0.3, 0.35}}, {"step", 0.1}}}});
    const std::set<double> xs = {0, 0.3, 0.6, 0.9};
    const std::set<double> ys = {-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3};
    for (const char* type :
         {"grid", "random", "qmc", "tpe", "gp", "cmaes", "nsga2", "auto", "pbt"}) {
        const auto sampler = make_sampler(space, config_of({{"type", type}}), Goal::kMinimize, 3);
        std::set<double> had[2];
        for (std::uint64_t n = 0; n < 28; ++n) {
            const Point point = sampler->suggest(n);
            had[0].insert(point[0]);
            had[1].insert(point[1]);
            tell(*sampler, n, point);
        }
        EXPECT_TRUE(std::includes(xs.begin(), xs.end(), had[0].begin(), had[0].end())) << type;
        EXPECT_TRUE(std::includes(ys.begin(), ys.end(), had[1].begin(), had[1].end())) << type;
        EXPECT_TRUE(std::string(type) != "grid" || (had[0] == xs && had[1] == ys));
        EXPECT_TRUE(had[0].contains(0.9)) << type << " never gave the last one";
    }
}

}  // namespace
}  // namespace tune::tuner::finite_test
