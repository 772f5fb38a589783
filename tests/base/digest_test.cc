#include "base/crypto/digest.h"

#include <gtest/gtest.h>

#include "base/text/hex.h"

namespace tune {
namespace {

TEST(Digest, Sha256IsTheRealOne) {
    // FIPS 180-2, appendix B.1.
    EXPECT_EQ(hex_encode(sha256("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    Sha256 pieces;
    pieces.update("a");
    pieces.update("");
    pieces.update("bc");
    EXPECT_EQ(pieces.finish(), sha256("abc"));
}

TEST(Digest, HmacIsTheRealOne) {
    // RFC 4231, test case 2.
    EXPECT_EQ(hex_encode(hmac_sha256("Jefe", "what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    // RFC 4231, test case 6: a key longer than a block.
    EXPECT_EQ(hex_encode(hmac_sha256(std::string(131, '\xaa'),
                                     "Test Using Larger Than Block-Size Key - Hash Key First")),
              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Digest, KnowsAlgorithmsByName) {
    std::optional<Digest> md5 = Digest::make("MD5");
    ASSERT_TRUE(md5.has_value());
    md5->update("abc");
    std::string text;
    for (const char byte : md5->finish()) append_hex(text, byte);
    EXPECT_EQ(text, "900150983cd24fb0d6963f7d28e17f72");
    EXPECT_FALSE(Digest::make("NO-SUCH-DIGEST").has_value());
}

TEST(Digest, ComparesSecrets) {
    EXPECT_TRUE(equal_secrets("abc", "abc"));
    EXPECT_TRUE(equal_secrets("", ""));
    EXPECT_FALSE(equal_secrets("abc", "abd"));
    EXPECT_FALSE(equal_secrets("abc", "abcd"));
}

}  // namespace
}  // namespace tune
