#include "tracker/transfer/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json.h"
#include "tracker/transfer/uri_map.h"

namespace tune::tracker {
namespace {

std::string clean(std::string_view text) {
    std::int64_t changed = 0;
    return clean_text(text, changed);
}

TEST(CleanText, KeepsGoodTextAndCountsTheRest) {
    std::int64_t changed = 0;
    EXPECT_EQ(clean_text("a\nü日\xF0\x9F\x98\x80", changed), "a\nü日\xF0\x9F\x98\x80");
    EXPECT_EQ(changed, 0);
    const std::string with_nul("a\0b", 3);
    EXPECT_EQ(clean_text(with_nul, changed), with_nul);
    EXPECT_EQ(changed, 0);
    EXPECT_EQ(clean_text("a\xff"
                         "b",
                         changed),
              "a\xEF\xBF\xBD"
              "b");
    EXPECT_EQ(changed, 1);
}

TEST(CleanText, ReplacesWhatIsNoUtf8) {
    const std::string bad = "\xEF\xBF\xBD";
    EXPECT_EQ(clean("\xff"), bad);
    EXPECT_EQ(clean("\xc3"), bad);                                // cut off
    EXPECT_EQ(clean("\xc0\xaf"), bad + bad);                      // overlong
    EXPECT_EQ(clean("\xed\xa0\x80"), bad + bad + bad);            // surrogate
    EXPECT_EQ(clean("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // beyond Unicode
    EXPECT_EQ(clean("\xe0\x80\x80x"), bad + bad + bad + "x");
}

TEST(CleanText, OfRandomBytesIsWhatJsonCanCarry) {
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (int i = 0; i < 20; ++i) text += static_cast<char>(random() % 256);
        const std::string cleaned = clean(text);
        EXPECT_EQ(clean(cleaned), cleaned);
        std::string json = "\"";
        for (const char c : cleaned)
            if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') json += c;
        EXPECT_TRUE(parse_json(json + "\"")) << text;
    }
}

TEST(ParseNumber, TakesWholeTextsOnly) {
    std::int64_t integer = 0;
    EXPECT_TRUE(parse_number(std::string_view("-12"), integer));
    EXPECT_EQ(integer, -12);
    EXPECT_TRUE(parse_number(std::string_view("+7"), integer));
    for (const char* bad : {"", " 1", "1 ", "1.5", "0x10", "99999999999999999999", "one"})
        EXPECT_FALSE(parse_number(std::string_view(bad), integer)) << bad;
    double real = 0;
    for (const char* infinite : {"inf", "Infinity", "-inf"})
        EXPECT_TRUE(parse_number(std::string_view(infinite), real) && std::isinf(real)) << infinite;
    EXPECT_TRUE(parse_number(std::string_view("nan"), real) && std::isnan(real));
    EXPECT_TRUE(parse_number(std::string_view("5e-324"), real) && real > 0);
    EXPECT_FALSE(parse_number(std::string_view("1,5"), real));
}

TEST(Shown, IsShortAndHarmless) {
    EXPECT_EQ(shown("a\x1b[2Jb"), "a?[2Jb");
    EXPECT_LT(shown(std::string(5000, 'x')).size(), 300u);
}

TEST(UriMap, TranslatesTheLongestFolderThatMoved) {
    UriMap uris;
    uris.add("file:///old/1/r/artifacts", "mlflow-artifacts:/5/r/artifacts");
    uris.add("file:///old/1", "mlflow-artifacts:/5");
    EXPECT_EQ(uris.translate("file:///old/1/r/artifacts/model"),
              "mlflow-artifacts:/5/r/artifacts/model");
    EXPECT_EQ(uris.translate("file:///old/1/other"), "mlflow-artifacts:/5/other");
    EXPECT_EQ(uris.translate("file:///old/12/x"), "file:///old/12/x");
    EXPECT_EQ(uris.translate("models:/m-1"), "models:/m-1");
    EXPECT_EQ(uris.translate(""), "");
}

}  // namespace
}  // namespace tune::tracker
