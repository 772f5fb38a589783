#include "base/text/percent.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

TEST(Percent, EncodesAllThatAPathMayNotHold) {
    EXPECT_EQ(percent_encode("a b/ü+~"), "a%20b/%C3%BC%2B~");
    EXPECT_EQ(percent_encode("a/b", false), "a%2Fb");
    EXPECT_EQ(percent_encode(std::string(1, '\0')), "%00");
}

TEST(Percent, DecodesOneLayer) {
    EXPECT_EQ(percent_decode("a%20b%2Fc%2520+%zz%4"), "a b/c%20+%zz%4");
    EXPECT_EQ(percent_decode("a+b%2B", true), "a b+");
    EXPECT_EQ(percent_decode("%00%fF"), std::string("\0\xff", 2));
    EXPECT_EQ(percent_decode("%252e"), "%2e");
    EXPECT_EQ(percent_decode("%-5%+5"), "%-5%+5");
    EXPECT_EQ(percent_decode("%"), "%");
}

TEST(Percent, DecodesUntilNothingChanges) {
    EXPECT_EQ(percent_decode_all("%252e%25252e"), "..");
    EXPECT_EQ(percent_decode_all("%2%35e"), "%e");
    EXPECT_EQ(percent_decode_all("a+b%2Bc", true), "a b c");
    EXPECT_EQ(percent_decode_all("100%"), "100%");
    std::string deep = "%2e";
    for (int i = 0; i < 1000; ++i) deep.insert(1, "25");
    EXPECT_EQ(percent_decode_all(deep), ".");
}

TEST(Percent, DecodingUndoesEncoding) {
    std::string all;
    for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
    EXPECT_EQ(percent_decode(percent_encode(all)), all);
    EXPECT_EQ(percent_decode(percent_encode(all, false)), all);
}

}  // namespace
}  // namespace tune
