#include "tuner/config/command_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"

namespace tune::tuner {
namespace {

using Words = std::vector<std::string>;

Space space_of(const Words& words) {
    StudySource source;
    source.inline_parameters = words;
    return read_study(source).value().space;
}

const Words kWords = {"lr=1e-5..1e-1:log", "opt=sgd,adamw", "momentum=0..1?opt=sgd", "n=1..9:int",
                      "betas=[0.9,0.99],[0.8,0.9]"};

Words filled(const Words& command, const std::string& params) {
    const Space space = space_of(kWords);
    const Point point = space.point_from_json(parse_json(params).value()).value();
    EXPECT_TRUE(check_command(command, space));
    return fill_command(command, space, point, TrialFacts{"s", 7, 2, "abc", 99});
}

const char* const kSgd =
    R"({"lr": 1e-3, "opt": "sgd", "momentum": 0.9, "n": 3, "betas": [0.9, 0.99]})";
const char* const kAdam = R"({"lr": 1e-5, "opt": "adamw", "n": 3, "betas": [0.8, 0.9]})";

TEST(Command, FillsNamedParametersAndTheRest) {
    EXPECT_EQ(filled({"python", "t.py", "--lr={lr}", "{args}"}, kSgd),
              (Words{"python", "t.py", "--lr=0.001", "--opt=sgd", "--momentum=0.9", "--n=3",
                     "--betas=[0.9,0.99]"}));
}

TEST(Command, ArgsLeavesOutWhatIsInactive) {
    EXPECT_EQ(filled({"x", "{args}"}, kAdam),
              (Words{"x", "--lr=1e-05", "--opt=adamw", "--n=3", "--betas=[0.8,0.9]"}));
}

TEST(Command, AnArgumentWithAnInactiveParameterIsLeftOut) {
    EXPECT_EQ(filled({"x", "--m={momentum}", "y"}, kAdam), (Words{"x", "y"}));
    EXPECT_EQ(filled({"x", "--m", "{momentum}", "y"}, kAdam), (Words{"x", "y"}));
    EXPECT_EQ(filled({"x", "m", "{momentum}", "y"}, kAdam), (Words{"x", "m", "y"}));
    EXPECT_EQ(filled({"x", "--m", "{momentum}", "y"}, kSgd), (Words{"x", "--m", "0.9", "y"}));
}

TEST(Command, FactsAndEscapes) {
    EXPECT_EQ(filled({"{study}-{trial}.{attempt}", "{run_id}", "{seed}"}, kSgd),
              (Words{"s-7.2", "abc", "99"}));
    EXPECT_EQ(filled({"{{lr}}", "{\"a\": {n}}", "{}", "{ lr }", "{{x", "}}"}, kSgd),
              (Words{"{lr}", "{\"a\": 3}", "{}", "{ lr }", "{{x", "}}"}));
}

TEST(Command, AParameterWinsOverAFactOfTheSameName) {
    const Space space = space_of({"seed==5"});
    EXPECT_EQ(fill_command({"{seed}"}, space, {0}, TrialFacts{}), (Words{"5"}));
}

TEST(Command, UnknownPlaceholdersAreRefusedByName) {
    const Result<void> refused = check_command({"x", "--lr={lrr}"}, space_of(kWords));
    ASSERT_FALSE(refused);
    EXPECT_EQ(
        refused.error().message,
        "command: unknown placeholder {lrr} in '--lr={lrr}'; did you mean 'lr'? Known: lr, opt, "
        "momentum, n, betas, args, study, trial, attempt, run_id, seed (to have the text "
        "itself, write {{lrr}})");
}

TEST(Command, ArgsMustStandAlone) {
    const Result<void> refused = check_command({"x", "--all={args}"}, space_of(kWords));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "command: {args} must be an argument of its own, found '--all={args}'");
}

TEST(Command, NoShellSeesTheValues) {
    const Space space = space_of({R"(x="a b; rm -rf $HOME","c")"});
    EXPECT_EQ(fill_command({"run", "{x}", "--x={x}"}, space, {0}, TrialFacts{}),
              (Words{"run", "a b; rm -rf $HOME", "--x=a b; rm -rf $HOME"}));
}

TEST(SplitCommand, FollowsTheShellsQuotes) {
    EXPECT_EQ(split_command(R"(python  train.py --a="x y" 'b c' d\ e "" "q\"r" 's\t')").value(),
              (Words{"python", "train.py", "--a=x y", "b c", "d e", "", "q\"r", "s\\t"}));
    EXPECT_EQ(split_command("  \n ").value(), Words{});
    EXPECT_EQ(split_command("a * $B | c").value(), (Words{"a", "*", "$B", "|", "c"}));
}

TEST(SplitCommand, AnOpenQuoteIsRefusedWithItsPlace) {
    const auto refused = split_command("ab 'cd");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "command: the quote ' at character 4 is never closed");
}

}  // namespace
}  // namespace tune::tuner
