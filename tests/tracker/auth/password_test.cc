#include "base/crypto/password.h"

#include <gtest/gtest.h>

#include "base/text/base64.h"
#include "tracker/auth/authorization.h"

namespace tune {
namespace {

TEST(Password, IsRightOnlyAsItWasHashed) {
    const std::string stored = hash_password("correct horse battery").value();
    EXPECT_TRUE(stored.starts_with("scrypt:32768:8:1$"));
    EXPECT_EQ(stored.find("correct"), std::string::npos);
    EXPECT_TRUE(check_password(stored, "correct horse battery"));
    EXPECT_FALSE(check_password(stored, "correct horse batterz"));
    EXPECT_FALSE(check_password(stored, ""));
    EXPECT_NE(stored, hash_password("correct horse battery").value()) << "each has its own salt";
}

TEST(Password, HashesOfMlflowsServerAreRead) {
    // werkzeug.security.generate_password_hash of 3.1, which MLflow 3.17.2 stores
    const std::string stored =
        "scrypt:32768:8:1$FX8NNMAq9ZvbDyEM$"
        "992fbddd53bbcbc33218e2009e6386b18c5e52121e871785e4e2294176ae844b"
        "691d634f1fc13c4018f1aa91ae826705d149fd8c09b780928684c1010735af74";
    EXPECT_TRUE(check_password(stored, "a password of mlflow"));
    EXPECT_FALSE(check_password(stored, "a password of mlflov"));
}

TEST(Password, WhatIsNoHashMatchesNothing) {
    for (const char* stored :
         {"", "$", "$$", "scrypt", "scrypt:32768:8:1", "scrypt:32768:8:1$salt", "plain$x$password",
          "scrypt:0:8:1$salt$00", "scrypt:32767:8:1$salt$00", "scrypt:99999999999:8:1$salt$00",
          "scrypt:32768:8:1:9$salt$00", "scrypt:1048576:8:1$salt$00"}) {
        EXPECT_FALSE(check_password(stored, "password")) << stored;
        EXPECT_FALSE(check_password(stored, "")) << stored;
    }
}

TEST(Authorization, IsReadAsClientsSendIt) {
    using tracker::basic_login_of;
    using tracker::bearer_of;
    using tracker::cookie_of;
    EXPECT_EQ(bearer_of("Bearer abc"), "abc");
    EXPECT_EQ(bearer_of("bearer  abc "), "abc");
    EXPECT_EQ(bearer_of("Basic abc"), "");
    const auto login = basic_login_of("Basic " + base64("ann:a:b"));
    ASSERT_TRUE(login.has_value());
    EXPECT_EQ(login->username, "ann");
    EXPECT_EQ(login->password, "a:b") << "only the first colon parts";
    EXPECT_EQ(basic_login_of("basic " + base64("ann:"))->password, "");
    for (const char* bad : {"", "Basic", "Basic ", "Basic ann", "Basic YW5u",
                            "Basic ====", "Basic YW5uOg=", "Basic YW5*Og==", "Bearer YW5uOg=="})
        EXPECT_FALSE(basic_login_of(bad)) << bad;
    EXPECT_EQ(cookie_of("a=1; b=2;c=3", "b"), "2");
    EXPECT_EQ(cookie_of("ab=1", "b"), "");
    EXPECT_EQ(cookie_of("", "b"), "");
}

TEST(Base64, IsDecodedOrRefused) {
    for (const char* text : {"", "a", "ab", "abc", "abcd", "\xff\x01\x80"})
        EXPECT_EQ(base64_decode(base64(text)), text);
    for (const char* bad : {"a", "ab", "abc", "a===", "ab=c", "ab cd123"})
        EXPECT_FALSE(base64_decode(bad)) << bad;
}

}  // namespace
}  // namespace tune
