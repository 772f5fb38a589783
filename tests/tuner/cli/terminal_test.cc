#include "tuner/cli/terminal/terminal.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tuner/cli/terminal/study_text.h"

namespace tune::cli {
namespace {

TEST(Terminal, OthersTextCannotSteerIt) {
    EXPECT_EQ(printable("a\033[2Jb\nc\x7f"), "a?[2Jb?c?");
    EXPECT_EQ(printable("größe"), "größe");
    EXPECT_EQ(printable("a\u009b2Jb\u202ec"), "a?2Jb?c");
}

TEST(Terminal, ClipsByCharactersNotBytes) {
    EXPECT_EQ(width_of("größe"), 5u);
    EXPECT_EQ(clipped("größe", 5), "größe");
    EXPECT_EQ(clipped("größer", 5), "größ…");
    EXPECT_EQ(width_of("\033[1m数値\033[0m💥"), 6u);
    EXPECT_EQ(clipped("数値数値", 5), "数値…");
}

TEST(Terminal, FitsAScreenWithoutWrappingOrScrolling) {
    const std::string text = "\033[1mgrößer\033[0m\nb\nc\nd\n";
    EXPECT_EQ(fitted(text, {.columns = 6, .rows = 5}), text);
    EXPECT_EQ(fitted(text, {.columns = 5, .rows = 3}), "\033[1mgröß\033[0m…\nb\n");
    EXPECT_EQ(fitted(text, {.columns = 1, .rows = 1}), "");
    const std::string wide = "\033[1m数値数\033[0m\n";
    EXPECT_EQ(fitted(wide, {.columns = 4, .rows = 5}), "\033[1m数\033[0m…\n");
    EXPECT_EQ(fitted("no end", {.columns = 80, .rows = 2}), "no end\n");
}

TEST(Terminal, TablesAlignTheirColumns) {
    Table table;
    table.column("name");
    table.column("n", Table::Align::kRight);
    table.row({"é", "10"});
    table.row({"long name", "7"});
    EXPECT_EQ(table.text(), "name        n\né          10\nlong name   7\n");
}

TEST(Terminal, SpansAndNumbersAreShort) {
    EXPECT_EQ(span_text(800), "0.8 s");
    EXPECT_EQ(span_text(12'000), "12 s");
    EXPECT_EQ(span_text(187'000), "3:07");
    EXPECT_EQ(span_text(3'723'000), "1:02:03");
    EXPECT_EQ(number_cell(0.123456), "0.1235");
    EXPECT_EQ(number_cell(nullptr), "-");
    EXPECT_EQ(number_cell("NaN"), "NaN");
}

TEST(StudyText, CommandsComeQuotedForAShell) {
    EXPECT_EQ(shell_text({"python", "a b.py", "--x=1", "it's", ""}),
              "python 'a b.py' --x=1 'it'\\''s' ''");
}

TEST(StudyText, ATrialsCommandIsItsOwn) {
    const Json study = {{"name", "s"},
                        {"command", {"run", "{args}"}},
                        {"metric", {{"name", "loss"}, {"goal", "min"}}},
                        {"space", {{"a", {{"float", {0, 1}}}}, {"b", {{"int", {1, 5}}}}}},
                        {"space_order", {"b", "a"}}};
    const Json trial = {{"number", 3}, {"run_id", "r"}, {"params", {{"a", 0.5}, {"b", 2}}}};
    EXPECT_EQ(rerun_command(study, trial), "run --b=2 --a=0.5");
    EXPECT_EQ(rerun_command({{"name", "s"}}, trial), "");
}

}  // namespace
}  // namespace tune::cli
