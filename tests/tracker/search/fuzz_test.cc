// Random and mutated input: every text is parsed or refused, in bounded time, without a crash (run
// under ASan and UBSan by the asan preset).

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tracker/search/filter.h"
#include "tracker/search/order_by.h"
#include "tracker/search/page_token.h"
#include "tracker/search/sql.h"

namespace tune::tracker::search {
namespace {

constexpr Subject kSubjects[] = {Subject::kRuns, Subject::kExperiments, Subject::kLoggedModels};

const char* const kPieces[] = {
    "metrics.", "params.", "tags.", "attribute.", "dataset.", "name",  "run_id", "start_time",
    "`",        "\"",      "'",     "(",          ")",        ",",     ";",      "--",
    "/*",       "*/",      " AND ", " OR ",       " IN ",     " NOT ", " IS ",   "NULL",
    " LIKE ",   " ILIKE ", "=",     "!=",         "<",        ">=",    ".",      "1",
    "-1.5e9",   "0x1",     "\\",    "\n",         "\xc3",     "a b",   "'x'",    "('a','b')"};

SqlSchema any_schema() {
    const Facet facet{
        "t", [](const std::string& alias, const std::string& key) { return alias + ".k = " + key; },
        "v", [](const std::string& alias) { return alias + ".n = 1"; }};
    SqlSchema schema;
    schema.attribute = [](std::string_view) { return std::string("a"); };
    schema.metric = schema.param = schema.tag = facet;
    schema.dataset = [facet](std::string_view) { return facet; };
    return schema;
}

void try_all(const std::string& text) {
    for (const Subject subject : kSubjects) {
        const auto condition = parse_filter(subject, text);
        if (condition) {
            Binder binder;
            const std::string sql = compile_filter(any_schema(), *condition, binder);
            // Nothing of the user's text may become SQL: ours has no quotes at all.
            EXPECT_EQ(sql.find_first_of("'\"`;"), std::string::npos) << text;
        } else {
            EXPECT_EQ(condition.error().code, Code::kInvalidParameterValue);
            EXPECT_FALSE(condition.error().message.empty());
        }
        const std::vector<std::string> order = {text};
        const auto keys = parse_order_by(subject, order);
        EXPECT_TRUE(keys || keys.error().code == Code::kInvalidParameterValue);
    }
    const auto token = read_page_token(1, text, 1);
    EXPECT_TRUE(token || token.error().code == Code::kInvalidParameterValue);
}

TEST(SearchFuzz, PiecesOfTheGrammarInAnyOrder) {
    std::mt19937 random(1);
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        const std::size_t length = 1 + random() % 12;
        for (std::size_t i = 0; i < length; ++i) text += kPieces[random() % std::size(kPieces)];
        try_all(text);
    }
}

TEST(SearchFuzz, AnyBytes) {
    std::mt19937 random(2);
    for (int round = 0; round < 20'000; ++round) {
        std::string text(random() % 40, '\0');
        for (char& c : text) c = static_cast<char>(random() % 256);
        try_all(text);
    }
}

TEST(SearchFuzz, DeepAndLongInputEndsSoon) {
    const std::size_t length = kFilterBytesMax;
    for (const char* piece : {"(", ")", "'", "`", "\"", "a.", "a-", "NOT ", "IS NOT ", "NOT (",
                              "OR ", "(NOT ", "\\'", "%", "AND ", "1", "-", "/*", "''"}) {
        std::string text;
        while (text.size() + 8 < length) text += piece;
        try_all(text);
        try_all("tags.a = " + text.substr(0, length - 16));
    }
}

}  // namespace
}  // namespace tune::tracker::search
