#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

constexpr std::string_view kIllFormed[] = {"\x80",         "\xc0\xaf",         "\xc1\xbf",
                                           "\xe0\x80\x80", "\xe0\x9f\xbf",     "\xed\xa0\x80",
                                           "\xc3",         "\xe2\x82",         "\xf0\x9f\x98",
                                           "\xff",         "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80",
                                           "\xc3(",        "\xf5\x80\x80\x80"};

TEST(Utf8, DecodesTheFirstAndLastOfEachLength) {
    const std::pair<std::string_view, char32_t> cases[] = {{std::string_view("\0", 1), 0},
                                                           {"\x7f", 0x7f},
                                                           {"\xc2\x80", 0x80},
                                                           {"\xdf\xbf", 0x7ff},
                                                           {"\xe0\xa0\x80", 0x800},
                                                           {"\xed\x9f\xbf", 0xd7ff},
                                                           {"\xee\x80\x80", 0xe000},
                                                           {"\xef\xbf\xbf", 0xffff},
                                                           {"\xf0\x90\x80\x80", 0x10000},
                                                           {"\xf4\x8f\xbf\xbf", 0x10ffff}};
    for (const auto& [text, code] : cases) {
        const CodePoint found = decode_utf8(std::string(text) + "x");
        EXPECT_EQ(found.code, code);
        EXPECT_EQ(found.bytes, text.size());
    }
}

TEST(Utf8, RefusesWhatRfc3629Forbids) {
    for (const std::string_view bad : kIllFormed) {
        EXPECT_EQ(decode_utf8(bad).bytes, 0u);
        EXPECT_FALSE(is_utf8("good" + std::string(bad)));
        EXPECT_FALSE(is_of_word_characters(bad, ""));
    }
    EXPECT_TRUE(is_utf8(""));
    EXPECT_TRUE(is_utf8("a\xc3\xa9\xf0\x9f\x98\x80"));
}

TEST(Utf8, CutsBetweenCharacters) {
    std::string text = "a\xc3\xa9\xf0\x9f\x98\x80z";
    EXPECT_EQ(count_characters(text), 4u);
    EXPECT_EQ(cut_to_bytes(text, 8), text);
    EXPECT_EQ(cut_to_bytes(text, 6), "a\xc3\xa9");
    EXPECT_EQ(cut_to_bytes(text, 2), "a");
    EXPECT_EQ(cut_to_bytes(text, 0), "");
    EXPECT_FALSE(cut_to_characters(text, 4));
    EXPECT_TRUE(cut_to_characters(text, 2));
    EXPECT_EQ(text, "a\xc3\xa9");
}

TEST(Utf8, KnowsWordCharactersOfEveryScript) {
    EXPECT_TRUE(is_of_word_characters("a_9\xc3\xa9\xd0\xb6\xe4\xb8\xad", ""));
    EXPECT_FALSE(is_of_word_characters("a-b", ""));
    EXPECT_TRUE(is_of_word_characters("a-b", "-"));
    EXPECT_FALSE(is_of_word_characters("\xf0\x9f\x98\x80", ""));
}

}  // namespace
}  // namespace tune
