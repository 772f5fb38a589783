#include "base/text/uri.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

std::string shown(std::string_view uri) {
    const UriParts parts = split_uri(uri);
    return parts.scheme + "|" + parts.authority + "|" + parts.path;
}

TEST(Uri, SplitsAsUrllibDoes) {
    EXPECT_EQ(shown("s3://Bucket/a/b?x#y"), "s3|bucket|/a/b");
    EXPECT_EQ(shown("HTTP://h"), "http|h|");
    EXPECT_EQ(shown(" \x01http://h/x"), "http|h|/x");
    EXPECT_EQ(shown("ht\ttp://h/x"), "http|h|/x");
    EXPECT_EQ(shown("models:/m/1"), "models||/m/1");
    EXPECT_EQ(shown("/a:b"), "||/a:b");
    EXPECT_EQ(shown("1a:b"), "||1a:b");
    EXPECT_EQ(shown("//host/x"), "|host|/x");
    EXPECT_EQ(shown(""), "||");
}

TEST(Uri, ResolvesPaths) {
    EXPECT_EQ(resolved_parts("/a/./b/../c//d"), (std::vector<std::string>{"a", "c", "d"}));
    EXPECT_EQ(resolved_parts("/../.."), std::vector<std::string>{});
    EXPECT_TRUE(is_in_folder({"a", "b"}, {"a"}));
    EXPECT_FALSE(is_in_folder({"ab"}, {"a"}));
}

TEST(Uri, KnowsSchemes) {
    for (const char* good : {"s3", "https", "a+b-c.d9", "X"})
        EXPECT_TRUE(is_uri_scheme(good)) << good;
    for (const char* bad : {"", "3s", "a b", "-a", "a/b"}) EXPECT_FALSE(is_uri_scheme(bad)) << bad;
}

struct AuthorityCase {
    const char* text;
    const char* user;
    const char* host;
    const char* port;
    Authority::Flaw flaw = Authority::Flaw::kNone;
};

TEST(Uri, TakesAuthoritiesApart) {
    using Flaw = Authority::Flaw;
    const AuthorityCase cases[] = {
        {"h", "", "h", ""},
        {"h:80", "", "h", "80"},
        {"u:p@h:80", "u:p", "h", "80"},
        {"a@b@h", "a@b", "h", ""},
        {"[::1]", "", "::1", ""},
        {"[::1]:81", "", "::1", "81"},
        {"h:", "", "h", ""},
        {"", "", "", ""},
        {"[::1", "", "", "", Flaw::kUnclosedBracket},
        {"[::1]x:80", "", "::1", "", Flaw::kTextAfterBracket},
        {"a:b:80", "", "a:b", "80", Flaw::kColonInHost},
    };
    for (const AuthorityCase& each : cases) {
        const Authority parts = split_authority(each.text);
        EXPECT_EQ(parts.user, each.user) << each.text;
        EXPECT_EQ(parts.host, each.host) << each.text;
        EXPECT_EQ(parts.port, each.port) << each.text;
        EXPECT_EQ(parts.flaw, each.flaw) << each.text;
    }
    EXPECT_TRUE(split_authority("h:").has_port);
    EXPECT_FALSE(split_authority("h").has_port);
    EXPECT_TRUE(split_authority("@h").has_user);
    EXPECT_TRUE(split_authority("[::1]").is_bracketed);
}

}  // namespace
}  // namespace tune
