#include "base/text/uri_text.h"

#include <gtest/gtest.h>

#include "tracker/store/registry/model_source.h"
#include "tracker/store/registry/registry_validation.h"

namespace tune::tracker {
namespace {

std::string shown(std::string_view uri) {
    const UriParts parts = split_uri(uri);
    return parts.scheme + "|" + parts.authority + "|" + parts.path;
}

TEST(UriText, SplitsAsUrllibDoes) {
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

TEST(UriText, UnquotesUntilNothingChanges) {
    EXPECT_EQ(unquote_all("%252e%25252e", false), "..");
    EXPECT_EQ(unquote_all("%2%35e", false), "%e");
    EXPECT_EQ(unquote_all("a+b%2Bc", true), "a b c");
    EXPECT_EQ(unquote_all("100%", false), "100%");
    EXPECT_EQ(unquote_once("%252e"), "%2e");
    std::string deep = "%2e";
    for (int i = 0; i < 1000; ++i) deep.insert(1, "25");
    EXPECT_EQ(unquote_all(deep, false), ".");
}

TEST(UriText, ResolvesPaths) {
    EXPECT_EQ(resolved_parts("/a/./b/../c//d"), (std::vector<std::string>{"a", "c", "d"}));
    EXPECT_EQ(resolved_parts("/../.."), std::vector<std::string>{});
    EXPECT_TRUE(is_beneath({"a", "b"}, {"a"}));
    EXPECT_FALSE(is_beneath({"ab"}, {"a"}));
}

TEST(ModelUri, IsReadAsMlflowReadsIt) {
    EXPECT_EQ(parse_model_uri("models:/m-1")->model_id, "m-1");
    EXPECT_EQ(parse_model_uri("models:/a/12")->version, "12");
    EXPECT_EQ(parse_model_uri("models:/a/LATEST")->stage, "");
    EXPECT_EQ(parse_model_uri("models:/a/Staging")->stage, "Staging");
    EXPECT_EQ(parse_model_uri("models:/a@b@c")->alias, "c");
    EXPECT_EQ(parse_model_uri("models:/a@b@c")->name, "a@b");
    for (const char* bad : {"models:/", "models:", "models:a", "models:/a/", "models:/a/1/2",
                            "models:/a@", "models:/ /1", "runs:/a", ""})
        EXPECT_FALSE(parse_model_uri(bad)) << bad;
}

TEST(Version, IsReadAsPythonReadsIntegers) {
    EXPECT_EQ(parse_version(" 1_0 ")->number, 10);
    EXPECT_EQ(parse_version("+2")->number, 2);
    EXPECT_EQ(parse_version("007")->text, "7");
    EXPECT_EQ(parse_version("-3")->text, "-3");
    EXPECT_EQ(parse_version("99999999999999999999")->number, -1);
    for (const char* bad : {"", " ", "1.0", "_1", "1_", "1__0", "x", "--1", "+"})
        EXPECT_EQ(parse_version(bad).error().message,
                  "Parameter 'version' must be an integer, got '" + std::string(bad) + "'.");
    EXPECT_FALSE(parse_version(std::string(5000, '9')));
}

}  // namespace
}  // namespace tune::tracker
