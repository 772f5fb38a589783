#include "base/text/base64.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

TEST(Base64, IsRfc4648) {
    // The vectors of RFC 4648, section 10.
    EXPECT_EQ(base64(""), "");
    EXPECT_EQ(base64("f"), "Zg==");
    EXPECT_EQ(base64("fo"), "Zm8=");
    EXPECT_EQ(base64("foo"), "Zm9v");
    EXPECT_EQ(base64("foob"), "Zm9vYg==");
    EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
    EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
    EXPECT_EQ(base64(std::string_view("\0\xff\xfe", 3)), "AP/+");
}

TEST(Base64, ForUrlsHasOtherCharactersAndNoPadding) {
    EXPECT_EQ(base64_url(std::string_view("\0\xff\xfe", 3)), "AP_-");
    EXPECT_EQ(base64_url("f"), "Zg");
}

}  // namespace
}  // namespace tune
