#include "tracker/search/like.h"

#include <gtest/gtest.h>

#include <string>

namespace tune::tracker::search {
namespace {

TEST(Like, KnowsPercentAndUnderscore) {
    EXPECT_TRUE(is_like("", ""));
    EXPECT_TRUE(is_like("", "%"));
    EXPECT_FALSE(is_like("", "_"));
    EXPECT_TRUE(is_like("abc", "abc"));
    EXPECT_FALSE(is_like("abc", "ab"));
    EXPECT_FALSE(is_like("ab", "abc"));
    EXPECT_TRUE(is_like("abc", "a%"));
    EXPECT_TRUE(is_like("abc", "%c"));
    EXPECT_TRUE(is_like("abc", "%b%"));
    EXPECT_TRUE(is_like("abc", "a_c"));
    EXPECT_FALSE(is_like("abbc", "a_c"));
    EXPECT_TRUE(is_like("mississippi", "m%iss%ip%i"));
    EXPECT_FALSE(is_like("mississippi", "m%iss%ip%x"));
    EXPECT_TRUE(is_like("a%b", "a%b"));
}

TEST(Like, IsCaseSensitiveUnlessAsked) {
    EXPECT_FALSE(is_like("ABC", "abc"));
    EXPECT_TRUE(is_ilike("ABC", "aBc"));
    EXPECT_TRUE(is_ilike("xABCx", "%abc%"));
    EXPECT_FALSE(is_ilike("ABD", "abc"));
}

TEST(Like, CountsCharactersNotBytes) {
    EXPECT_TRUE(is_like("k\xc3\xa4se", "k_se"));
    EXPECT_TRUE(is_like("\xf0\x9f\x98\x80", "_"));
    EXPECT_FALSE(is_like("\xc3\xa4", "__"));
}

TEST(Like, DoesNotExplode) {
    std::string pattern;
    for (int i = 0; i < 50; ++i) pattern += "%a";
    EXPECT_FALSE(is_like(std::string(8000, 'a') + "b", pattern + "%c"));
}

}  // namespace
}  // namespace tune::tracker::search
