#include "tuner/space/space.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tuner/config/study_config.h"

namespace tune::tuner {
namespace {

Json json(const std::string& text) {
    return parse_json(text).value();
}

Space space(const std::string& text) {
    Result<Space> made = Space::from_json(json(text));
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : Space();
}

const char* const kAll = R"({
    "a_opt": {"choice": ["sgd", "adamw", 3, true, null, [1, 2], {"k": 1}]},
    "b_lr": {"float": [1e-5, 0.1], "log": true, "init": 3e-4},
    "c_batch": {"int": [32, 1000], "log": true, "step": 32},
    "d_depth": {"ordinal": [18, 34, 50, 101]},
    "e_warm": {"float": [0, 0.2], "step": 0.01},
    "f_momentum": {"float": [0, 0.99], "when": {"a_opt": "sgd", "d_depth": {">=": 34}}},
    "g_deep": {"int": [1, 3], "when": {"f_momentum": {">": 0.5, "<=": 0.9}}},
    "h_lists": {"float": [0, 1], "when": {"a_opt": [[1, 2]]}},
    "i_maps": {"float": [0, 1], "when": {"a_opt": {"k": 1}}},
    "j_any": {"float": [0, 1], "when": {"c_batch": [32, 64]}},
    "k_seed": {"const": 1}
})";

TEST(Space, CanonicalJsonReadsBackEqual) {
    const Space one = space(kAll);
    EXPECT_TRUE(Space::from_json(one.to_json()).value() == one);
    EXPECT_EQ(Space::from_json(one.to_json())->to_json(), one.to_json());
    EXPECT_EQ(one.to_json().at("c_batch"), json(R"({"int": [32, 992], "log": true, "step": 32})"));
    EXPECT_EQ(one.to_json().at("h_lists").at("when"), json(R"({"a_opt": [[1, 2]]})"));
}

TEST(Space, InternalAndExternalValuesAreInverse) {
    const Space one = space(kAll);
    for (const Parameter& p : one.parameters()) {
        const std::uint64_t count = p.count();
        for (std::uint64_t k = 0; k < std::max<std::uint64_t>(count, 5); ++k) {
            const double at = p.low + (p.high - p.low) * static_cast<double>(k) / 5;
            const double internal =
                p.snap(count == 0 ? at : p.low + static_cast<double>(k) * p.step);
            ASSERT_TRUE(p.contains(internal)) << p.name;
            EXPECT_EQ(p.internal(p.external(internal)).value(), internal) << p.name;
            EXPECT_EQ(p.internal_from_text(p.text(internal)).value(), internal) << p.name;
        }
    }
}

TEST(Space, TextsAreWhatAProgramReads) {
    const Space one = space(kAll);
    EXPECT_EQ(one[0].text(0), "sgd");
    EXPECT_EQ(one[0].text(3), "true");
    EXPECT_EQ(one[0].text(4), "null");
    EXPECT_EQ(one[0].text(5), "[1,2]");
    EXPECT_EQ(one[1].text(1e-5), "1e-05");
    EXPECT_EQ(one[2].text(64), "64");
    EXPECT_EQ(one[3].text(1), "34");
    EXPECT_EQ(one[4].text(one[4].snap(0.07000000000000001)), "0.07");
}

/// A grid is settled when it is read and again from what was stored; its last value must stay.
TEST(Space, GridsAreTheSameWhenTheyAreReadAgain) {
    struct Grid {
        double low, high, step;
        std::uint64_t count;
        double last;
    };
    const Grid grids[] = {{1e6, 1000000.021, 1e-3, 22, 1000000.021},
                          {1e6, 1000000.0215, 1e-3, 22, 1000000.021},
                          {-1e6, -999999.9785, 1e-3, 22, -999999.979},
                          {1e6, 1e6 + 2.5e-7, 1e-8, 26, 1e6 + 2.5e-7},
                          {0.1, 0.1 + 1e-12, 1e-15, 1001, 0.100000000001},
                          {123456.7, 123457.7, 0.07, 15, 123457.68},
                          {0, 1, 0.3, 4, 0.9},
                          {-0.37, 1, 0.07, 20, 0.96}};
    for (const Grid& grid : grids) {
        const Json one = {{"x", {{"float", {grid.low, grid.high}}, {"step", grid.step}}}};
        const Result<Space> first = Space::from_json(one);
        ASSERT_TRUE(first) << first.error().message;
        EXPECT_EQ((*first)[0].count(), grid.count) << one;
        EXPECT_EQ((*first)[0].high, grid.last) << one;
        const Result<Space> again = Space::from_json(first->to_json());
        ASSERT_TRUE(again);
        EXPECT_TRUE(*again == *first) << one;
        for (std::uint64_t k = 0; k < grid.count; ++k) {
            const double value = (*first)[0].snap(grid.low + static_cast<double>(k) * grid.step);
            EXPECT_TRUE((*again)[0].contains(value)) << one << k;
            EXPECT_EQ((*again)[0].snap(value), value) << one << k;
        }
    }
}

TEST(Space, ConditionsSwitchParametersOnAndOff) {
    const Space one = space(kAll);
    const auto index = [&](const char* name) { return *one.find(name); };
    Point point = one.empty_point();
    point[index("a_opt")] = 0;
    point[index("d_depth")] = 0;
    EXPECT_FALSE(one.active(index("f_momentum"), point));
    point[index("d_depth")] = 1;
    EXPECT_TRUE(one.active(index("f_momentum"), point));
    EXPECT_FALSE(one.active(index("g_deep"), point));
    point[index("f_momentum")] = 0.5;
    EXPECT_FALSE(one.active(index("g_deep"), point));
    point[index("f_momentum")] = 0.9;
    EXPECT_TRUE(one.active(index("g_deep"), point));
    point[index("a_opt")] = 5;
    EXPECT_TRUE(one.active(index("h_lists"), point));
    point[index("a_opt")] = 6;
    EXPECT_TRUE(one.active(index("i_maps"), point));
}

TEST(Space, ParentsComeFirst) {
    const Space one = space(R"({"a": {"float": [0, 1], "when": {"b": 1}},
                                "b": {"int": [0, 1], "when": {"c": "x"}},
                                "c": {"choice": ["x", "y"]}})");
    EXPECT_EQ(one.parents_first(), (std::vector<std::size_t>{2, 1, 0}));
}

TEST(Space, CheckFindsWhatIsWrongWithAPoint) {
    const Space one =
        space(R"({"m": {"float": [0, 1], "when": {"o": "a"}}, "o": {"choice": ["a", "b"]}})");
    EXPECT_TRUE(one.check({0.5, 0}));
    EXPECT_TRUE(one.check({kInactive, 1}));
    EXPECT_EQ(one.check({kInactive, 0}).error().message, "m: its value is missing");
    EXPECT_EQ(one.check({0.5, 1}).error().message,
              "m: it has a value although its conditions do not hold");
    EXPECT_EQ(one.check({1.5, 0}).error().message, "m: 1.5 is not a value of this parameter");
    EXPECT_FALSE(one.check({0.5}));
}

TEST(Space, PointsFromJsonMayBePartialButNotWrong) {
    const Space one = space(kAll);
    const Point point = one.point_from_json(json(R"({"b_lr": 0.001, "d_depth": 50})")).value();
    EXPECT_EQ(point[1], 0.001);
    EXPECT_EQ(point[3], 2);
    EXPECT_FALSE(is_active(point[0]));
    EXPECT_EQ(one.to_json(point), json(R"({"b_lr": 0.001, "d_depth": 50})"));
    EXPECT_EQ(one.point_from_json(json(R"({"b_l": 1})")).error().message.substr(0, 60),
              "params: the space has no parameter 'b_l'; did you mean 'b_lr");
    EXPECT_EQ(one.point_from_json(json(R"({"b_lr": 1})")).error().message,
              "params.b_lr: 1.0 lies outside 1e-05..0.1");
    EXPECT_EQ(one.point_from_json(json(R"({"e_warm": 0.015})")).error().message,
              "params.e_warm: 0.015 is not on the grid 0.0..0.2 with step 0.01");
    EXPECT_EQ(
        one.point_from_json(json(R"({"d_depth": 35})")).error().message,
        "params.d_depth: '35' is not one of its values; did you mean '34'? Known: 18, 34, 50, 101");
    EXPECT_FALSE(one.point_from_json(json("[1]")));
}

TEST(Space, MakeChecksParametersBuiltInCode) {
    Parameter parameter;
    parameter.name = "x";
    parameter.low = 1;
    parameter.high = 0;
    EXPECT_EQ(Space::make({parameter}).error().message,
              "x: the lower bound 1.0 is above the upper bound 0.0; expected [low, high]");
    parameter.high = 2;
    EXPECT_TRUE(Space::make({parameter}));
    EXPECT_EQ(Space::make({parameter, parameter}).error().message,
              "space: the name 'x' is used twice");
    Condition condition;
    condition.parent = 7;
    parameter.when = {condition};
    EXPECT_FALSE(Space::make({parameter}));
    parameter.when[0].parent = 0;
    EXPECT_FALSE(Space::make({parameter}));
}

TEST(Space, TenThousandParametersInAChain) {
    Json big = Json::object();
    for (int i = 0; i < 10'000; ++i) {
        Json one = {{"int", {0, 9}}};
        if (i > 0) one["when"] = {{"p" + std::to_string(i - 1), {{">=", 1}}}};
        big["p" + std::to_string(i)] = one;
    }
    const Space chain = Space::from_json(big).value();
    EXPECT_EQ(chain.size(), 10'000u);
    EXPECT_TRUE(Space::from_json(chain.to_json()).value() == chain);
    big["one_more"] = {{"int", {0, 9}}};
    EXPECT_EQ(Space::from_json(big).error().message,
              "space: it has 10001 parameters; at most 10000 are supported");
}

TEST(Space, ALongCycleIsFoundWithoutRecursion) {
    Json big = Json::object();
    for (int i = 0; i < 10'000; ++i)
        big["p" + std::to_string(i)] = {{"int", {0, 9}},
                                        {"when", {{"p" + std::to_string((i + 1) % 10'000), 1}}}};
    const auto refused = Space::from_json(big);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("the conditions form a cycle: p"), std::string::npos);
    EXPECT_LT(refused.error().message.size(), 300u);
}

TEST(Space, SettledDomains) {
    const Space one =
        space(R"({"a": {"float": [0, 1], "step": 0.3}, "b": {"int": [1, 10], "step": 4},
                                "c": {"float": [0, 0.3], "step": 0.1}, "d": {"int": [5, 5]}})");
    EXPECT_EQ(one[0].high, 0.9);
    EXPECT_EQ(one[0].count(), 4u);
    EXPECT_EQ(one[1].high, 9);
    EXPECT_EQ(one[2].high, 0.3);  // as written, though 3 * 0.1 is a little more
    EXPECT_EQ(one[2].count(), 4u);
    EXPECT_TRUE(one[3].is_single());
}

Parameter stepped(double low, double high, double step) {
    return space(to_text(Json{{"x", {{"float", {low, high}}, {"step", step}}}}))[0];
}

TEST(Space, AFloatsGridEndsWhereOptunasDoes) {
    struct Case {
        double low, high, step, optuna;
    };
    // FloatDistribution(low, high, step=step).high of Optuna 5.0.0.
    for (const Case& one : std::vector<Case>{
             {0, 1, 0.3, 0.9},
             {0, 1, 0.15, 0.9},
             {0, 2, 0.6, 1.8},
             {-1, 1, 0.3, 0.8},
             {-0.3, 0.35, 0.1, 0.3},
             {-5, 0.15, 0.1, 0.1},
             {0.874, 9.563, 0.12, 9.514},
             {-1.7357, 6.771, 0.1701, 6.7693},
             {-3.85, 0.0, 0.62, -0.13},
             {-1.11, 4.5, 0.28, 4.49},
             {-4.87, 2.66, 0.57, 2.54},
             {-1.3368, 1.0502, 0.7508, 0.9156},
             {-2.9081, -1.9648, 0.057, -1.9961},
             {-3.3394, -1.6056, 0.0016, -1.6066},
             {-1.0838, -0.8006, 0.0371, -0.8241},
         }) {
        const Parameter x = stepped(one.low, one.high, one.step);
        EXPECT_EQ(x.high, one.optuna) << one.low << ".." << one.high << " by " << one.step;
        EXPECT_EQ(x.internal(one.optuna).value(), one.optuna);
        EXPECT_EQ(stepped(x.low, x.high, x.step).high, x.high) << "settled once and for all";
    }
    const Space first = space(R"({"x": {"float": [0, 1], "step": 0.3, "init": 0.9}})");
    EXPECT_EQ(first[0].init, 0.9);
    EXPECT_EQ(stepped(0, 0.8999999999999999, 0.3).high, 0.9) << "as earlier versions recorded it";
    EXPECT_TRUE(first.check({0.8999999999999999}).has_value()) << "and its values";
    EXPECT_FALSE(first[0].internal(0.901).has_value());
    EXPECT_FALSE(first[0].internal(1.0).has_value());
}

/// Every value is the double nearest to the decimal number, also where the sum of doubles is not:
/// 0.07 for -1 + 107 * 0.01 = 0.07000000000000006.
TEST(Space, AFloatsGridIsDecimal) {
    std::mt19937 random(7);
    const auto below = [&](int end) { return static_cast<int>(random() % end); };
    std::vector<std::array<int, 4>> grids = {{-100, 100, 1, 2}, {-3, 3, 1, 1}, {-50, 50, 1, 1}};
    for (int i = 0; i < 300; ++i) {
        const int low = below(20000) - 10000;
        const int range = 2 + below(10000);
        grids.push_back({low, low + range, 1 + below(range), 1 + below(5)});
    }
    for (const auto& [low, high, step, decimals] : grids) {
        const double unit = std::pow(10, decimals);  // exact, so each division is the nearest one
        const Parameter x = stepped(low / unit, high / unit, step / unit);
        const int last = (high - low) / step;
        ASSERT_EQ(x.high, (low + last * step) / unit);
        ASSERT_EQ(x.count(), static_cast<std::uint64_t>(last) + 1);
        for (int k = 0; k <= last; k += 1 + last / 200) {
            const double value = (low + k * step) / unit;
            ASSERT_EQ(x.snap(value + 0.3 * x.step), value) << low << " " << step << " " << unit;
            ASSERT_EQ(x.internal(value).value(), value);
            ASSERT_FALSE(std::signbit(x.snap(value)) && value == 0);
        }
    }
}

}  // namespace
}  // namespace tune::tuner
