#include "tracker/webhooks/target_url.h"

#include <gtest/gtest.h>

#include <string>

namespace tune::tracker {
namespace {

std::string host(const std::string& url, TargetPolicy policy = {}) {
    const Result<std::string> found = target_host(url, policy);
    return found ? *found : "! " + found.error().message;
}

std::string refusal(const std::string& url, TargetPolicy policy = {}) {
    const Result<void> checked = check_target(url, policy);
    if (checked) return "";
    EXPECT_EQ(checked.error().code, Code::kInvalidParameterValue);
    return checked.error().message;
}

TEST(TargetUrl, FindsTheHost) {
    EXPECT_EQ(host("https://Example.COM/hook?x=1#y"), "example.com");
    EXPECT_EQ(host("HTTPS://example.com:8443"), "example.com");
    EXPECT_EQ(host("https://user:p@ss@example.com/"), "example.com");
    EXPECT_EQ(host("https://[2606:4700::1111]:443/"), "2606:4700::1111");
    EXPECT_EQ(host("https://evil.com@example.com?@other.com"), "example.com");
    EXPECT_EQ(host("http://example.com", {.allow_http = true}), "example.com");
}

TEST(TargetUrl, RefusesWithMlflowsSentences) {
    EXPECT_EQ(host(""), "! Webhook URL cannot be empty or just whitespace: ''");
    EXPECT_EQ(host(" \t"), "! Webhook URL cannot be empty or just whitespace: ' \\t'");
    EXPECT_EQ(host("foo"), "! Invalid webhook URL scheme: ''. Allowed schemes are: https.");
    EXPECT_EQ(host("http://example.com"),
              "! Invalid webhook URL scheme: 'http'. Allowed schemes are: https.");
    EXPECT_EQ(host("ftp://x/", {.allow_http = true}),
              "! Invalid webhook URL scheme: 'ftp'. Allowed schemes are: https, http.");
    EXPECT_EQ(host("https://"), "! Webhook URL must include a hostname: 'https://'");
    EXPECT_EQ(host("https:///x"), "! Webhook URL must include a hostname: 'https:///x'");
    EXPECT_EQ(host("https:example.com"),
              "! Webhook URL must include a hostname: 'https:example.com'");
    EXPECT_EQ(host("https://[::1"),
              "! Invalid webhook URL 'https://[::1': ValueError('Invalid IPv6 URL')");
    EXPECT_EQ(host("https://" + std::string(3000, 'a')),
              "! Webhook URL has 3008 bytes; the limit is 2048.");
}

TEST(TargetUrl, RefusesWhatParsersReadInTwoWays) {
    for (const std::string url :
         {"https://a.com\\@127.0.0.1/", "https://a.com/ b", "https://a.com/\r\nX: y",
          "https://a\x01.com/", "https://a.com/\x7f", " https://a.com/", "https://a.com/\t"})
        EXPECT_FALSE(target_host(url, {})) << url;
    EXPECT_FALSE(target_host(std::string("https://a.com/\0x", 16), {}));
    for (const std::string url : {"file:///etc/passwd", "gopher://x/", "javascript:1", "//x/",
                                  "https//x", ":", "1https://x", "unix:///x"})
        EXPECT_FALSE(target_host(url, {.allow_http = true})) << url;
}

TEST(TargetUrl, RefusesAddressesThatAreNotPublic) {
    EXPECT_EQ(refusal("https://127.0.0.1/"),
              "Webhook URL must not resolve to a non-public IP address. '127.0.0.1' resolves to "
              "127.0.0.1.");
    for (const std::string name :
         {"localhost", "127.1", "0x7f.1", "2130706433", "017700000001", "[::1]",
          "[::ffff:10.0.0.1]", "[2002:7f00:1::]", "[64:ff9b::7f00:1]", "169.254.169.254", "0",
          "10.0.0.1", "[fe80::1]"})
        EXPECT_NE(refusal("https://" + name + "/").find("non-public"), std::string::npos) << name;
    EXPECT_EQ(refusal("https://1.1.1.1/"), "");
    EXPECT_EQ(refusal("https://[2606:4700:4700::1111]/"), "");
    EXPECT_EQ(refusal("https://localhost/", {.allow_private = true}), "");
    EXPECT_EQ(refusal("https://no-such-name.invalid/")
                  .find("Cannot resolve Webhook URL hostname 'no-such-name.invalid': [Errno -"),
              0u);
}

}  // namespace
}  // namespace tune::tracker
