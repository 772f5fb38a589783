// Which addresses a webhook may reach. The expectations for IPv4 are Python's ipaddress.is_global
// (mlflow/utils/validation.py of 3.17.2) but for multicast.

#include "tracker/webhooks/address.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>

namespace tune::tracker {
namespace {

struct Case {
    const char* address;
    bool is_public;
};

constexpr Case kCases[] = {
    {"1.1.1.1", true},
    {"8.8.8.8", true},
    {"9.255.255.255", true},
    {"11.0.0.0", true},
    {"100.63.255.255", true},
    {"100.128.0.0", true},
    {"172.15.255.255", true},
    {"172.32.0.0", true},
    {"192.167.255.255", true},
    {"192.169.0.0", true},
    {"198.17.255.255", true},
    {"198.20.0.0", true},
    {"223.255.255.255", true},
    {"0.0.0.0", false},
    {"0.1.2.3", false},
    {"10.0.0.1", false},
    {"10.255.255.255", false},
    {"100.64.0.1", false},
    {"100.127.255.255", false},
    {"127.0.0.1", false},
    {"127.255.255.255", false},
    {"169.254.169.254", false},
    {"172.16.0.1", false},
    {"172.31.255.255", false},
    {"192.0.0.1", false},
    {"192.0.2.1", false},
    {"192.168.0.1", false},
    {"198.18.0.1", false},
    {"198.19.255.255", false},
    {"198.51.100.7", false},
    {"203.0.113.7", false},
    {"224.0.0.1", false},
    {"239.255.255.255", false},
    {"240.0.0.1", false},
    {"255.255.255.255", false},
    {"2606:4700:4700::1111", true},
    {"2a00:1450:4001::8a", true},
    {"3ffe::1", true},
    {"::", false},
    {"::1", false},
    {"::7f00:1", false},
    {"::ffff:127.0.0.1", false},
    {"::ffff:10.1.2.3", false},
    {"::ffff:169.254.169.254", false},
    {"::ffff:1.1.1.1", true},
    {"::ffff:0:127.0.0.1", false},
    {"2002:7f00:1::", false},
    {"2002:a9fe:a9fe::1", false},
    {"2002:c0a8:1::1", false},
    {"2002:101:101::1", true},
    {"64:ff9b::127.0.0.1", false},
    {"64:ff9b::a00:1", false},
    {"64:ff9b::101:101", true},
    {"64:ff9b:1::101:101", false},
    {"100::1", false},
    {"2001::1", false},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", false},
    {"2001:10::1", false},
    {"2001:1ff::1", false},
    {"2001:200::1", true},
    {"2001:db8::1", false},
    {"3fff::1", false},
    {"4000::1", false},
    {"fc00::1", false},
    {"fd12:3456::1", false},
    {"fe80::1", false},
    {"fec0::1", false},
    {"ff02::1", false},
};

TEST(Address, OnlyTheInternetIsPublic) {
    for (const Case& one : kCases)
        EXPECT_EQ(is_public_address(std::string_view(one.address)), one.is_public) << one.address;
}

TEST(Address, ASocketsAddressIsValidatedAsItsText) {
    for (const Case& one : kCases) {
        sockaddr_storage storage{};
        auto& four = reinterpret_cast<sockaddr_in&>(storage);
        auto& six = reinterpret_cast<sockaddr_in6&>(storage);
        if (inet_pton(AF_INET, one.address, &four.sin_addr) == 1) {
            storage.ss_family = AF_INET;
        } else {
            ASSERT_EQ(inet_pton(AF_INET6, one.address, &six.sin6_addr), 1) << one.address;
            storage.ss_family = AF_INET6;
        }
        const auto& address = reinterpret_cast<const sockaddr&>(storage);
        EXPECT_EQ(is_public_address(address), one.is_public) << one.address;
        EXPECT_EQ(address_text(address).empty(), false);
    }
}

TEST(Address, WhatIsNoneIsNotPublic) {
    for (const char* text :
         {"", "localhost", "1.1.1", "1.1.1.1.1", "0x01010101", "1.1.1.1 ", "::g"})
        EXPECT_FALSE(is_public_address(std::string_view(text))) << text;
    sockaddr local{};
    local.sa_family = AF_UNIX;
    EXPECT_FALSE(is_public_address(local));
    EXPECT_EQ(address_text(local), "");
}

}  // namespace
}  // namespace tune::tracker
