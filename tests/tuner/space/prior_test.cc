// Priors: how they are read, written, refused.

#include "tuner/space/prior.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"
#include "tuner/space/inline.h"

namespace tune::tuner {
namespace {

Result<StudyConfig> read(const std::string& space) {
    StudySource source;
    source.text = "space: {x: " + space + "}\n";
    return read_study(source);
}

std::string error_of(const std::string& space) {
    const Result<StudyConfig> config = read(space);
    return config ? "accepted" : config.error().text();
}

TEST(Prior, FormsOfOneMeaning) {
    const Result<StudyConfig> shorthand = read("{normal: [0, 1], low: -5, high: 5}");
    ASSERT_TRUE(shorthand) << shorthand.error().text();
    EXPECT_EQ(shorthand->space, read("{float: [-5, 5], normal: [0, 1]}")->space);
    EXPECT_EQ(shorthand->space, read("{normal: [0, 1]}")->space);  // five deviations
    EXPECT_EQ(shorthand->space, read("\"normal(0,1)\"")->space);
    EXPECT_EQ(shorthand->space, read("\"-5..5:normal(0,1)\"")->space);
    const Parameter& x = shorthand->space[0];
    EXPECT_EQ(x.kind, Kind::kFloat);
    EXPECT_EQ(x.low, -5);
    EXPECT_EQ(x.center, 0);
    EXPECT_EQ(x.spread, 1);
    EXPECT_FALSE(x.log);
}

TEST(Prior, LognormalIsOnALogScaleWithItsMedian) {
    const Parameter x = read("{lognormal: [0.001, 2], high: 1}")->space[0];
    EXPECT_TRUE(x.log);
    EXPECT_EQ(x.center, 0.001);
    EXPECT_DOUBLE_EQ(x.low, 0.001 * std::exp(-10.0));
    EXPECT_EQ(x.high, 1);
    EXPECT_EQ(read("{int: [1, 100], log: true, lognormal: [8, 1]}")->space,
              read("{int: [1, 100], lognormal: [8, 1]}")->space);
}

TEST(Prior, RoundTrip) {
    for (const char* space :
         {"{normal: [0, 1], low: -5, high: 5}", "{normal: [3, 2], low: 0, high: 9, step: 0.5}",
          "{int: [0, 100], normal: [20, 5], init: 7}", "{lognormal: [0.3, 1]}",
          "{int: [2, 64], step: 2, lognormal: [8, 1]}",
          "{choice: [a, b, c], weights: [3, 1, 1]}"}) {
        const Result<StudyConfig> config = read(space);
        ASSERT_TRUE(config) << space << config.error().text();
        const Result<StudyConfig> again = study_config_from_json(to_json(*config));
        ASSERT_TRUE(again) << space << again.error().text();
        EXPECT_EQ(*again, *config) << space;
    }
    EXPECT_FALSE(read("{choice: [a, b], weights: [1, 2]}")->space ==
                 read("{choice: [a, b]}")->space);
    EXPECT_FALSE(read("{normal: [0, 1]}")->space ==
                 read("{normal: [0, 2], low: -5, high: 5}")->space);
}

TEST(Prior, Refused) {
    const auto says = [](const std::string& space, const std::string& part) {
        EXPECT_NE(error_of(space).find(part), std::string::npos)
            << space << ": " << error_of(space);
    };
    says("{normal: [0, 0]}", "space.x.normal: a standard deviation must be above 0, found 0.0");
    says("{normal: [0, -1]}", "must be above 0");
    says("{normal: [0]}", "expected [mean, standard deviation], found");
    says("{normal: [a, 1]}", "expected a number");
    says("{normal: [0, .inf]}", "expected a number");
    says("{lognormal: [-7, 1]}", "not its logarithm");
    says("{normal: [9, 1], low: 0, high: 5}", "its mean 9.0 lies outside the bounds 0.0..5.0");
    says("{float: [0, 1], normal: [0.5, 1e-9]}", "less than a millionth of the range");
    says("{float: [0, 1], normal: [0.5, 1000]}", "more than ten times the range");
    says("{float: [1, 2], log: true, normal: [1, 1]}", "on a log scale the prior is");
    says("{float: [1, 2], log: false, lognormal: [1, 1]}", "a lognormal is on a log scale");
    says("{float: [1, 2], normal: [1, 1], lognormal: [1, 1]}", "exclude each other");
    says("{float: [0, 5], normal: [1, 1], low: 0}", "unknown key 'low'");
    says("{choice: [1, 2], normal: [1, 1]}", "unknown key 'normal'");
    says("{choice: [1, 2], weights: [1]}", "expected a list of 2 numbers");
    says("{choice: [1, 2], weights: [1, 0]}", "a weight is a number above 0");
    says("{ordinal: [1, 2], weights: [1, 1]}", "unknown key 'weights'");
    says("{normal: [1e308, 1e308]}", "");
    EXPECT_NE(error_of("{normal: [1e308, 1e308]}"), "accepted");
    EXPECT_NE(error_of("{lognormal: [1, 1e300]}"), "accepted");
}

TEST(Prior, Inline) {
    const auto spec = [](const char* word) {
        const Result<InlineParameter> parsed = parse_inline_parameter(word);
        return parsed ? to_text(to_json(parsed->spec)) : parsed.error().message;
    };
    EXPECT_EQ(spec("x=sgd,adamw:weights(3,1)"),
              R"({"choice":["sgd","adamw"],"weights":[3.0,1.0]})");
    EXPECT_EQ(spec("x=lognormal(1e-3,1)@2e-3"), R"({"init":0.002,"lognormal":[0.001,1.0]})");
    EXPECT_EQ(spec("x=0..1:normal(a,1)"), "in 'x=0..1:normal(a,1)', column 15: expected a number");
    EXPECT_EQ(spec("x=0..1:normal(1,1):normal(1,1)"),
              "in 'x=0..1:normal(1,1):normal(1,1)', column 20: a second 'normal'");
    EXPECT_EQ(spec("x=normal(1"), "in 'x=normal(1', column 9: expected 'normal(a,b)'");
}

}  // namespace
}  // namespace tune::tuner
