#include "base/text/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace tune {
namespace {

TEST(Hex, KnowsItsDigits) {
    EXPECT_EQ(hex_value('0'), 0);
    EXPECT_EQ(hex_value('9'), 9);
    EXPECT_EQ(hex_value('a'), 10);
    EXPECT_EQ(hex_value('F'), 15);
    for (const char other : {'g', 'G', '/', ':', '@', '`', ' ', '\0', '\xff'})
        EXPECT_EQ(hex_value(other), -1);
}

TEST(Hex, ReadsWhatItWrote) {
    const std::array<unsigned char, 4> bytes = {0x00, 0x9a, 0xff, 0x10};
    EXPECT_EQ(hex_encode(bytes), "009aff10");
    std::array<unsigned char, 4> read{};
    EXPECT_TRUE(hex_decode("009aff10", read));
    EXPECT_EQ(read, bytes);
}

TEST(Hex, RefusesWhatItWouldNotHaveWritten) {
    std::array<unsigned char, 2> read{};
    for (const char* other : {"", "009a0", "009aff", "009A", "00g0", " 09a"})
        EXPECT_FALSE(hex_decode(other, read)) << other;
}

TEST(Hex, AppendsWithEitherDigits) {
    std::string text = "%";
    append_hex(text, '\xaf', kUpperHexDigits);
    append_hex(text, '\x01');
    EXPECT_EQ(text, "%AF01");
}

}  // namespace
}  // namespace tune
