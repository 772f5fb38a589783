#include "base/system/address.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

TEST(Address, LoopbackIsDecidedByTheAddress) {
    for (const char* host : {"127.0.0.1", "127.255.3.4", "::1", "0:0:0:0:0:0:0:1",
                             "::ffff:127.0.0.1", "localhost", "LocalHost"})
        EXPECT_TRUE(is_loopback(host)) << host;
}

TEST(Address, ANameIsNoAddressHoweverItBegins) {
    for (const char* host :
         {"127.example.org", "127.0.0.1.example.org", "localhost.corp", "localhostess", "127.",
          "127.0.0.1 ", "127.0.0.256", "[::1]", "", "0.0.0.0", "::", "10.127.0.1", "128.0.0.1",
          "::ffff:128.0.0.1", "::1:0", "fe80::1"})
        EXPECT_FALSE(is_loopback(host)) << host;
    EXPECT_FALSE(is_loopback(std::string_view("127.0.0.1\0.example.org", 22)));
}

}  // namespace
}  // namespace tune
