#include "base/text/text.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

TEST(Text, LowersTheLettersOfAsciiOnly) {
    EXPECT_EQ(lower_ascii("Retry-AFTER_[@`Z"), "retry-after_[@`z");
    EXPECT_EQ(lower_ascii("\xC3\x84"), "\xC3\x84") << "an umlaut";
    EXPECT_EQ(lower_ascii(""), "");
}

TEST(Text, ComparesWithoutCase) {
    EXPECT_TRUE(equals_ignoring_case("LOCATION", "location"));
    EXPECT_TRUE(equals_ignoring_case("", ""));
    EXPECT_FALSE(equals_ignoring_case("location", "locations"));
    EXPECT_FALSE(equals_ignoring_case("[", "{")) << "they are 32 apart, as A and a are";
}

TEST(Text, TrimsBothEndsAndNothingBetween) {
    EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
    EXPECT_EQ(trimmed(" \t\r\n"), "");
    EXPECT_EQ(trimmed(""), "");
    EXPECT_EQ(trimmed(" \ta\n ", " \t"), "a\n");
}

}  // namespace
}  // namespace tune
