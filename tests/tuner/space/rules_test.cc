// forbid, derive, initial: what they mean, and every way to write them wrongly.

#include "tuner/space/expression/rules.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/config/command_template.h"
#include "tuner/config/study_config.h"

namespace tune::tuner::rules_test {
namespace {

constexpr const char* kSpace =
    "space:\n"
    "  opt: {choice: [sgd, adamw]}\n"
    "  lr: {float: [1e-5, 1], log: true}\n"
    "  batch: {int: [1, 1024]}\n"
    "  momentum: {float: [0, 0.99], when: {opt: sgd}}\n"
    "  size: {ordinal: [s, m, l]}\n"
    "  flag: {choice: [true, false]}\n"
    "  mixed: {choice: [auto, 1, null, [1, 2]]}\n"
    "  weight-decay: {choice: [0, 0.1]}\n";

Result<StudyConfig> read(const std::string& text) {
    StudySource source;
    source.text = text;
    return read_study(source);
}

std::string error_of(const std::string& text) {
    const Result<StudyConfig> config = read(text);
    return config ? "accepted" : config.error().text();
}

Space space_with(const std::string& rules) {
    Result<StudyConfig> config = read(kSpace + rules);
    EXPECT_TRUE(config) << rules << (config ? "" : config.error().text());
    return config ? std::move(config->space) : Space();
}

Point point_of(const Space& space, const char* extra = "{}") {
    Json params = {{"opt", "sgd"}, {"lr", 0.1},    {"batch", 256},     {"momentum", 0.5},
                   {"size", "m"},  {"flag", true}, {"mixed", nullptr}, {"weight-decay", 0.1}};
    params.update(parse_json(extra).value());
    if (params["opt"] == "adamw") params.erase("momentum");
    return space.point_from_json(params).value();
}

/// The value of an expression at point_of(extra), or "-" where it does not exist.
std::string derived(const std::string& expression, const char* extra = "{}") {
    const Space space = space_with("derive: {it: " + Json(expression).dump() + "}\n");
    if (space.rules() == nullptr) return "refused";
    const Json values = space.to_json(point_of(space, extra));
    return values.contains("it") ? values["it"].dump() : "-";
}

bool forbids(const std::string& clause, const char* extra = "{}") {
    const Space space = space_with("forbid: [" + Json(clause).dump() + "]\n");
    return space.is_forbidden(point_of(space, extra));
}

TEST(Rules, Arithmetic) {
    EXPECT_EQ(derived("lr * sqrt(batch / 256)"), "0.1");
    EXPECT_EQ(derived("batch * 2"), "512");
    EXPECT_EQ(derived("batch / 2"), "128.0");
    EXPECT_EQ(derived("batch // 3 + batch % 3"), "86");
    EXPECT_EQ(derived("-7 // 2"), "-4");
    EXPECT_EQ(derived("-7 % 3"), "2");
    EXPECT_EQ(derived("2 ** 3 ** 2"), "512");
    EXPECT_EQ(derived("2 ** (batch // 100)"), "4");  // batch is never negative
    EXPECT_EQ(derived("pow(2, min(batch, 10)) // 3"), "341");
    EXPECT_EQ(derived("2 ** (3 - batch // 256)"), "4.0");     // Python: 0.25 for a batch of 1,280
    EXPECT_EQ(derived("2 ** (batch // 8)"), "4294967296.0");  // may have more digits than a double
    EXPECT_EQ(derived("0.3 % 0.1"), "0.09999999999999998");
    EXPECT_EQ(derived("7 ** 6 % -0.007"), "-2.4490617867023445e-12");
    EXPECT_EQ(derived("1 // 0.1"), "9.0");
    EXPECT_EQ(derived("-6 % 3"), "0");
    EXPECT_EQ(derived("2 ** 3"), "8");
    EXPECT_EQ(derived("-2 ** 2"), "-4");
    EXPECT_EQ(derived("2 ** -1"), "0.5");
    EXPECT_EQ(derived("1 - 2 - 3"), "-4");
    EXPECT_EQ(derived("min(batch, 100, 3) + max(1, 2)"), "5");
    EXPECT_EQ(derived("round(2.5) + floor(2.9) + ceil(2.1) + abs(-1)"), "8");
    EXPECT_EQ(derived("pow(4, 0.5) + exp(0) + log(1) + log2(8) + log10(100)"), "8.0");
    EXPECT_EQ(derived("{weight-decay} * 10"), "1.0");
    EXPECT_EQ(derived("batch if lr > 0.5 else 7"), "7");
    EXPECT_EQ(derived("'big' if batch >= 256 else 'small'"), "\"big\"");
    EXPECT_EQ(derived("batch > 3 and not flag"), "false");
    EXPECT_EQ(derived("size"), "\"m\"");
}

TEST(Rules, WhatIsOffIsUnknown) {
    EXPECT_EQ(derived("momentum * 2"), "1.0");
    EXPECT_EQ(derived("momentum * 2", R"({"opt": "adamw"})"), "-");
    EXPECT_EQ(derived("momentum if opt == 'sgd' else 0.9", R"({"opt": "adamw"})"), "0.9");
    EXPECT_EQ(derived("0 * momentum ** 0", R"({"opt": "adamw"})"), "-");
    EXPECT_TRUE(forbids("momentum > 0.4"));
    EXPECT_FALSE(forbids("momentum > 0.4", R"({"opt": "adamw"})"));
    EXPECT_FALSE(forbids("not momentum > 0.4", R"({"opt": "adamw"})"));
    EXPECT_FALSE(forbids("momentum != 0.1", R"({"opt": "adamw"})"));
    EXPECT_TRUE(forbids("momentum > 0.4 or lr > 0.05", R"({"opt": "adamw"})"));
    EXPECT_FALSE(forbids("momentum > 0.4 and lr > 0.05", R"({"opt": "adamw"})"));
}

TEST(Rules, Comparisons) {
    EXPECT_TRUE(forbids("opt == 'sgd' and lr > 0.05"));
    EXPECT_FALSE(forbids("opt == 'sgd' and lr > 0.05", R"({"lr": 0.01})"));
    EXPECT_TRUE(forbids("opt in ['sgd'] and size not in ['s', 'l']"));
    EXPECT_TRUE(forbids("size >= 'm' and size < 'l' and 's' < size"));
    EXPECT_TRUE(forbids("flag and flag == true and flag != false"));
    EXPECT_TRUE(forbids("mixed == null and mixed != 'auto' and mixed != 1"));
    EXPECT_TRUE(forbids("mixed == [1, 2]", R"({"mixed": [1, 2]})"));
    EXPECT_TRUE(forbids("mixed in [1, [1, 2]]", R"({"mixed": 1})"));
    EXPECT_TRUE(forbids("batch in [256, 512]"));
    EXPECT_TRUE(forbids("{weight-decay} == 0.1"));
    EXPECT_FALSE(forbids("0 / 0 * lr > 1 or 0 / 0 * lr <= 1"));  // neither holds
}

TEST(Rules, RefusesWithTheColumn) {
    const auto refused = [](const std::string& clause) {
        return error_of(std::string(kSpace) + "forbid:\n  - " + Json(clause).dump() + "\n");
    };
    const auto says = [&](const std::string& clause, const std::string& message) {
        EXPECT_EQ(refused(clause), "line 11, column 5: forbid[0]: in '" + clause + "', " + message);
    };
    says("opt == 'sdg'",
         "column 8: 'sdg' is not one of its values; did you mean 'sgd'? Known: sgd, adamw");
    says("lrr > 1",
         "column 1: there is no parameter 'lrr'; did you mean 'lr'? Known: opt, lr, batch, "
         "momentum, size, flag, mixed, weight-decay");
    says("lr >", "column 5: expected a value or a name, found the end");
    says("lr > 1 lr", "column 8: expected an operator, found 'lr'");
    says("1 < lr < 2", "column 8: comparisons do not chain; write a < b and b < c");
    says("opt > 'sgd'", "column 7: the values of 'opt' have no order; expected == or !=");
    says("opt * 2 > 1",
         "column 1: 'opt' has values that are not numbers, so there is no arithmetic with it");
    says("lr > 'a'", "column 4: a number is compared with a text or other value");
    says("lr and flag", "column 1: expected a condition such as lr > 0.1, found a number");
    says("lr = 1", "column 4: a single '='; a comparison is '=='");
    says("flag && flag", "column 6: '&&'; write 'and'");
    says("squareroot(lr) > 1",
         "column 1: unknown function 'squareroot'; known: abs, ceil, exp, floor, log, log10, log2, "
         "max, "
         "min, pow, round, sqrt");
    says("sqrt(lr, 2) > 1", "column 1: 'sqrt' takes 1 number");
    says("max(lr) > 1", "column 1: 'max' takes 2 or more numbers");
    says("(lr > 1", "column 8: expected ')', found the end");
    says("opt == 'sgd", "column 8: the quote is never closed");
    says("lr > 1e999", "column 6: the number is too large or too small for a double");
    says("lr > 2x", "column 6: expected an operator between the number and the name");
    says("__import__('os')",
         "column 1: unknown function '__import__'; known: abs, ceil, exp, floor, log, "
         "log10, log2, max, min, pow, round, sqrt");
    EXPECT_NE(refused("lr").find("expected a condition such as"), std::string::npos);
    EXPECT_NE(refused("").find("expected a value or a name, found the end"), std::string::npos);
}

TEST(Rules, DerivedNamesAndCycles) {
    const auto refused = [](const std::string& rules) { return error_of(kSpace + rules); };
    EXPECT_EQ(refused("derive: {a: b + 1, b: a + 1}\n"),
              "line 10, column 13: derive.a: derived values form a cycle: a -> b -> a");
    EXPECT_EQ(refused("derive: {a: a}\n"),
              "line 10, column 13: derive.a: derived values form a cycle: a -> a");
    EXPECT_EQ(refused("derive: {lr: batch}\n"),
              "line 10, column 14: derive.lr: there is a parameter 'lr' already");
    EXPECT_NE(refused("derive: {trial: batch}\n").find("is taken by the placeholder {trial}"),
              std::string::npos);
    EXPECT_NE(refused("derive: [a]\n").find("expected a map such as"), std::string::npos);
    EXPECT_NE(refused("forbid: {a: 1}\n").find("expected a list of conditions"), std::string::npos);
    EXPECT_NE(refused("forbid: [1]\n").find("expected a condition in quotes"), std::string::npos);
    // One may name another, in any order.
    const Space space = space_with("derive: {a: b * 2, b: batch + 1, c: a + b}\n");
    EXPECT_EQ(space.to_json(point_of(space))["c"], 771);
}

TEST(Rules, ValuesThatAreNotFiniteCannotRun) {
    const Space space = space_with("derive: {x: 1 / (batch - 256)}\n");
    const Result<void> checked = space.check(point_of(space));
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().message,
              "point: the derived value 'x' = '1 / (batch - 256)' is not a finite number here");
    EXPECT_TRUE(space.check(point_of(space, R"({"batch": 255})")));
    // NaN is not lost on the way: every comparison of min and max with it is false, and what hangs
    // on a comparison with it does not exist.
    for (const char* never : {"min(10, log(-lr))", "max(log(-lr), 10)", "min(log(-lr), 10)",
                              "1 if log(-lr) > 0 else 2", "1 / 0", "0 / 0", "exp(1000)",
                              "sqrt(-batch)", "log(-lr)", "10 ** 400 * batch", "batch ** 99"}) {
        const std::string error =
            error_of(std::string(kSpace) + "derive: {x: " + Json(never).dump() + "}\n");
        if (std::string(never) == "batch ** 99") {
            EXPECT_EQ(error, "accepted");  // batch = 1 can run
        } else {
            EXPECT_NE(error.find("every point of the space"), std::string::npos) << never << error;
        }
    }
}

TEST(Rules, EverythingForbiddenIsRefusedWhenRead) {
    EXPECT_EQ(
        error_of("space:\n  a: {choice: [1, 2]}\n  b: {int: [1, 3]}\nforbid: ['a < 5']\n"),
        "line 4, column 9: forbid: every point of the space is forbidden; nothing is left to try");
    EXPECT_NE(
        error_of("space: {x: 0..1}\nforbid: ['x >= 0']\n").find("that was looked at is forbidden"),
        std::string::npos);
    // One point of a million: chance does not find it, the search does.
    const Result<StudyConfig> config = read(
        "space: {a: {int: [1, 1000]}, b: {int: [1, 1000]}}\nforbid: ['a != 77', 'b != 912']\n");
    ASSERT_TRUE(config) << config.error().text();
    EXPECT_NE(
        error_of("space: {a: {int: [1, 9], init: 3}}\nforbid: ['a == 3']\n").find("'init' values"),
        std::string::npos);
}

TEST(Rules, ManyRulesAreBounded) {
    std::string many = "space: {x: 0..1}\nforbid:\n";
    for (int i = 0; i < 1001; ++i) many += "  - x > 2\n";
    EXPECT_NE(error_of(many).find("more than 1000 rules"), std::string::npos);
    std::string large = "space: {x: 0..1}\nforbid:\n";
    for (int i = 0; i < 100; ++i) large += "  - " + std::string(1000, ' ') + "x > 2\n";
    EXPECT_EQ(error_of(large), "accepted");  // blanks around a plain text are not part of it
    large = "space: {x: 0..1}\nforbid:\n";
    for (int i = 0; i < 100; ++i) large += "  - '" + std::string(1000, ' ') + "x > 2'\n";
    EXPECT_NE(error_of(large).find("bytes together"), std::string::npos);
}

TEST(Rules, HostileExpressionsEnd) {
    const auto refused = [](const std::string& expression) {
        return error_of("space: {x: 0..1}\nderive: {y: " + Json(expression).dump() + "}\n");
    };
    EXPECT_NE(refused(std::string(5000, '1')).find("at most 4096 are supported"),
              std::string::npos);
    EXPECT_NE(refused(std::string(2000, '(')).find("nested more than 50 deep"), std::string::npos);
    EXPECT_NE(refused(std::string(2000, '-') + "1").find("nested more than 50 deep"),
              std::string::npos);
    EXPECT_NE(refused(std::string(2000, '[')).find("nested more than 50 deep"), std::string::npos);
    std::string chain = "1";
    for (int i = 0; i < 1000; ++i) chain += "**1";
    EXPECT_NE(refused(chain).find("nested more than 50 deep"), std::string::npos);
    std::string nots;
    for (int i = 0; i < 900; ++i) nots += "not ";
    EXPECT_NE(refused(nots + "true").find("nested more than 50 deep"), std::string::npos);
    std::string ifs;
    for (int i = 0; i < 300; ++i) ifs += "x if x > 1 else ";
    EXPECT_NE(refused(ifs.substr(0, 4000)).find("nested more than 50 deep"), std::string::npos);
    std::string sum = "x";
    for (int i = 0; i < 2000; ++i) sum += "+x";
    EXPECT_EQ(refused(sum), "accepted");
    EXPECT_NE(refused("max(" + std::string(500, '1') + ")").find("too large"), std::string::npos);
    std::string calls = "x";
    for (int i = 0; i < 40; ++i) calls = "max(x, " + calls + ")";
    EXPECT_EQ(refused(calls), "accepted");
    EXPECT_EQ(refused(std::string("x\0x", 3)),
              "line 2, column 13: derive.y: in 'x?x', column 2: unexpected '?'");
}

TEST(Rules, DerivedValuesReachTheCommandAndTheParams) {
    const Space space = space_with(
        "derive: {lr_scaled: lr * sqrt(batch / 64), half: momentum / 2, n: batch * 2}\n");
    const std::vector<std::string> command = {"train", "--lr={lr_scaled}", "--half", "{half}",
                                              "{args}"};
    ASSERT_TRUE(check_command(command, space));
    EXPECT_EQ(fill_command(command, space, point_of(space, R"({"opt": "adamw"})"), {}),
              (std::vector<std::string>{"train", "--lr=0.2", "--opt=adamw", "--lr=0.1",
                                        "--batch=256", "--size=m", "--flag=true", "--mixed=null",
                                        "--weight-decay=0.1", "--n=512"}));
    EXPECT_FALSE(check_command({"{lr_scale}"}, space));
    const auto texts = space.texts(point_of(space));
    EXPECT_EQ(texts.back(), (std::pair<std::string, std::string>{"n", "512"}));
    // What an answer holds may be enqueued again; what contradicts it may not.
    const Json params = space.to_json(point_of(space));
    EXPECT_TRUE(space.point_from_json(params));
    Json other = params;
    other["n"] = 3;
    EXPECT_FALSE(space.point_from_json(other));
    other = {{"n", 3}};
    EXPECT_FALSE(space.point_from_json(other));
}

TEST(Rules, RoundTrip) {
    const Result<StudyConfig> config =
        read(std::string(kSpace) +
             "derive: {b: a + 1, a: batch}\nforbid: [\"opt == 'sgd'\", lr > 0.5]\n"
             "initial: [{lr: 0.01, opt: adamw}, {batch: 7}]\n");
    ASSERT_TRUE(config) << config.error().text();
    const Result<StudyConfig> again = study_config_from_json(to_json(*config));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, *config);
    EXPECT_EQ(to_json(*again), to_json(*config));
    const Result<StudyConfig> without = read(kSpace);
    EXPECT_FALSE(without->space == config->space);
}

TEST(Initial, ReadsAndRefuses) {
    const auto refused = [](const std::string& rules) { return error_of(kSpace + rules); };
    EXPECT_EQ(refused("initial: [{lr: 0.01}, {lr: 3}]\n").find("line 10, column 24: initial[1]: "),
              0u)
        << refused("initial: [{lr: 0.01}, {lr: 3}]\n");
    EXPECT_NE(refused("initial: [{lrr: 3}]\n").find("did you mean 'lr'"), std::string::npos);
    EXPECT_NE(refused("initial: {lr: 3}\n").find("expected a list of points"), std::string::npos);
    EXPECT_NE(refused("initial: [3]\n").find("expected a point such as"), std::string::npos);
    EXPECT_NE(refused("initial: [{opt: adamw, momentum: 0.5}]\n").find("does not hold"),
              std::string::npos);
    EXPECT_NE(refused("initial: [{lr: 0.9}]\nforbid: [lr > 0.5]\n")
                  .find("this combination is forbidden: lr > 0.5"),
              std::string::npos);
    EXPECT_EQ(refused("initial: null\nforbid: null\nderive: null\n"), "accepted");
    EXPECT_EQ(refused("initial: []\nforbid: []\nderive: {}\n"), "accepted");
}

TEST(Inline, DerivedValues) {
    StudySource source;
    source.inline_parameters = {"lr=0..1", "scaled:=lr*2"};
    const Result<StudyConfig> config = read_study(source);
    ASSERT_TRUE(config) << config.error().text();
    EXPECT_EQ(config->space.rules()->texts().derive.front().second, "lr*2");
    for (const char* wrong : {"scaled:=", ":=lr", "scaled:=lr*", "s:=x"}) {
        source.inline_parameters = {"lr=0..1", wrong};
        EXPECT_FALSE(read_study(source)) << wrong;
    }
}

}  // namespace
}  // namespace tune::tuner::rules_test
