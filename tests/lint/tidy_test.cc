// The shape of the code as a test: sizes of files and functions, line length, words that must not
// land.

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>

#include "tests/lint/source_tree.h"

namespace tune::lint {
namespace {

constexpr std::size_t kFileLinesMax = 600;
constexpr std::size_t kTestFileLinesMax = 800;
constexpr std::size_t kFunctionLinesMax = 70;
constexpr std::size_t kLineColumnsMax = 100;
constexpr std::size_t kBaseLinesMax = 2500;

bool is_test(const SourceFile& file) {
    return file.path.starts_with("tests/") || file.path.starts_with("web/test/");
}

TEST(Tidy, FilesReadAtAGlance) {
    for (const SourceFile& file : read_sources({".h", ".cc", ".ts", ".tsx", ".py", ".sh", ".mjs"}))
        EXPECT_LE(file.lines.size(), is_test(file) ? kTestFileLinesMax : kFileLinesMax)
            << file.path;
}

/// Characters, not bytes: texts in tests are in many languages.
std::size_t columns_of(const std::string& line) {
    return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // begins a character
    }));
}

TEST(Tidy, LinesFitTheScreen) {
    for (const SourceFile& file : read_sources({".h", ".cc"}))
        for (std::size_t i = 0; i < file.lines.size(); ++i)
            EXPECT_LE(columns_of(file.lines[i]), kLineColumnsMax) << file.path << ":" << i + 1;
}

/// Functions begin at a line that ends in '{' in column 0 or one namespace deep and end at the
/// matching "}" in the same column: crude, but right for code that clang-format has laid out.
TEST(Tidy, FunctionsReadAtAGlance) {
    static const std::regex opens(R"(^[A-Za-z_].*\)[^;]*\{$|^[^ #/}].*\) (const |noexcept )*\{$)");
    for (const SourceFile& file : read_sources({".cc"})) {
        if (is_test(file)) continue;
        for (std::size_t i = 0; i < file.lines.size(); ++i) {
            if (!std::regex_search(file.lines[i], opens) || file.lines[i].starts_with("namespace"))
                continue;
            const auto end = std::find(file.lines.begin() + static_cast<std::ptrdiff_t>(i),
                                       file.lines.end(), "}");
            const auto length = static_cast<std::size_t>(end - file.lines.begin()) - i + 1;
            EXPECT_LE(length, kFunctionLinesMax)
                << file.path << ":" << i + 1 << " " << file.lines[i];
        }
    }
}

/// Two lines, or one that is full: a name in other words says nothing.
TEST(Tidy, LongSourcesOpenWithWhatTheyDo) {
    constexpr std::size_t kPlainLinesMax = 100;
    constexpr std::size_t kLinesMin = 2;
    constexpr std::size_t kCharactersMin = 120;
    for (const SourceFile& file : read_sources({".cc"})) {
        const bool is_test = file.path.starts_with("tests/");
        if (is_test || file.lines.size() <= kPlainLinesMax) continue;
        std::size_t lines = 0;
        std::size_t characters = 0;
        for (const std::string& line : file.lines) {
            if (!line.starts_with("//")) break;
            ++lines;
            characters += line.size();
        }
        EXPECT_TRUE(lines >= kLinesMin || characters >= kCharactersMin)
            << file.path << " has more than " << kPlainLinesMax
            << " lines; open it with what it does, why it is right and, where it follows a source, "
               "which";
    }
}

TEST(Tidy, BaseStaysSmall) {
    std::size_t lines = 0;
    for (const SourceFile& file : read_sources({".h", ".cc"}))
        if (file.path.starts_with("base/")) lines += file.lines.size();
    EXPECT_LE(lines, kBaseLinesMax);
}

TEST(Tidy, NothingUnfinishedLands) {
    static const std::regex banned(R"(\b(TODO|FIXME|XXX|HACK)\b)");
    for (const SourceFile& file :
         read_sources({".h", ".cc", ".ts", ".tsx", ".py", ".sh", ".mjs", ".sql"})) {
        if (file.path == "tests/lint/tidy_test.cc") continue;
        for (std::size_t i = 0; i < file.lines.size(); ++i)
            EXPECT_FALSE(std::regex_search(file.lines[i], banned)) << file.path << ":" << i + 1;
    }
}

/// Words of our own for which the field has a standard one: maintenance, columnar search, notify,
/// exceeds, ticker, server client, supervisor, deduplicating, database, within, response, stats.
TEST(Tidy, RetiredWordsStayAway) {
    static const std::regex retired(
        R"(\b(upkeep|find_by_columns|shelf|make_known|too_dear|studies_time|server_link|tune_exec)"
        R"(|distinct_sampler|[Dd]ata bases?|is_beneath|RecordedAnswer)"
        R"(|(Fetch|Stage|Loader)Figures|(stage|fetch)_figures|figures[_-]every)\b)");
    for (const SourceFile& file :
         read_sources({".h", ".cc", ".ts", ".tsx", ".py", ".sh", ".mjs", ".md", ".yaml"})) {
        if (file.path == "tests/lint/tidy_test.cc") continue;
        EXPECT_FALSE(std::regex_search(file.path, retired)) << file.path;
        for (std::size_t i = 0; i < file.lines.size(); ++i)
            EXPECT_FALSE(std::regex_search(file.lines[i], retired)) << file.path << ":" << i + 1;
    }
}

TEST(Tidy, HeadersAreGuarded) {
    for (const SourceFile& file : read_sources({".h"}))
        EXPECT_NE(std::find(file.lines.begin(), file.lines.end(), "#pragma once"), file.lines.end())
            << file.path;
}

/// g++ 12 miscompiles common coroutine code, so the network edge is written with callbacks.
TEST(Tidy, NoCoroutines) {
    for (const SourceFile& file : read_sources({".h", ".cc"})) {
        if (file.path.starts_with("tests/lint/")) continue;
        for (std::size_t i = 0; i < file.lines.size(); ++i)
            EXPECT_EQ(file.lines[i].find("co_await"), std::string::npos)
                << file.path << ":" << i + 1;
    }
}

}  // namespace
}  // namespace tune::lint
