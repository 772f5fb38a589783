#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/limits.h"

namespace tune {
namespace {

TEST(ParseJson, ReadsAnObject) {
    const Result<Json> value = parse_json(R"({"a": [1, 2.5, null]})");
    ASSERT_TRUE(value.has_value());
    EXPECT_EQ((*value)["a"][1], 2.5);
}

TEST(ParseJson, NamesLineAndColumnOfTheError) {
    const Result<Json> value = parse_json("{\n  \"a\": }");
    ASSERT_FALSE(value.has_value());
    EXPECT_EQ(value.error().code, Code::kInvalidParameterValue);
    EXPECT_NE(value.error().message.find("line 2, column 8"), std::string::npos)
        << value.error().message;
}

TEST(ParseJson, RefusesTruncatedText) {
    EXPECT_FALSE(parse_json("{\"a\": [1, 2").has_value());
}

TEST(ParseJson, RefusesNestingThatWouldExhaustTheStack) {
    const std::string deep(200'000, '[');
    const Result<Json> value = parse_json(deep);
    ASSERT_FALSE(value.has_value());
    EXPECT_NE(value.error().message.find("nested deeper"), std::string::npos);
}

TEST(ParseJson, RefusesWhatFollowsANul) {
    const auto value = parse_json(std::string_view("{\"a\": 1}\0x", 10));
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().message, "invalid JSON at line 1, column 9: a NUL byte");
}

TEST(ParseJson, BracketsInsideStringsDoNotCount) {
    const std::string text =
        "\"" + std::string(static_cast<std::size_t>(kJsonDepthMax) + 5, '[') + "\"";
    EXPECT_TRUE(parse_json(text).has_value());
}

TEST(ParseJson, CommentsOnlyWhereAllowed) {
    EXPECT_FALSE(parse_json("// no\n1").has_value());
    EXPECT_EQ(parse_json_with_comments("// yes\n1").value(), 1);
}

TEST(ToText, ReplacesInvalidUtf8) {
    EXPECT_EQ(to_text(Json("a\xff")), "\"a\xEF\xBF\xBD\"");
}

TEST(JsonNumber, WritesNonFiniteValuesAsProtobufDoes) {
    EXPECT_EQ(json_number(std::nan("")), "NaN");
    EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()), "-Infinity");
    EXPECT_EQ(json_number(0.5), 0.5);
}

}  // namespace
}  // namespace tune
