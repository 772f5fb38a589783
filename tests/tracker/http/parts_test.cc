// The pure parts of the server: hosts and origins, ranges, codings, heads.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tracker/http/protocol/byte_range.h"
#include "tracker/http/protocol/content_coding.h"
#include "tracker/http/protocol/host_check.h"
#include "tracker/http/protocol/response_head.h"

namespace tune::tracker {
namespace {

TEST(HostCheck, AllowsLoopbackPrivateAndOwnAddresses) {
    const HostCheck check("tracker.lan", {}, {});
    for (const char* host :
         {"localhost", "localhost:5000", "LOCALHOST", "127.0.0.1:5000", "127.8.9.1", "[::1]:5000",
          "10.1.2.3", "192.168.0.9:80", "172.31.255.1", "[fd12::1]:5000", "0.0.0.0:5000",
          "tracker.lan:5000", "203.0.113.7:5000"})
        EXPECT_TRUE(check.host_allowed(host, "203.0.113.7")) << host;
}

TEST(HostCheck, RefusesNamesThatOnlyLookLikeAddresses) {
    const HostCheck check("127.0.0.1", {}, {});
    for (const char* host :
         {"", "evil.com", "evil.com:5000", "10.evil.com", "127.0.0.1.evil.com",
          "localhost.evil.com", "localhost:5000.evil.com", "localhost:", "127.0.0.1:80x",
          "172.32.0.1", "8.8.8.8", "[::1", "[::1]evil", "user@localhost", "localhost#", "a/b",
          "[2001:db8::1]", "0x7f.1", "127.1@evil.com"})
        EXPECT_FALSE(check.host_allowed(host, "127.0.0.1")) << host;
}

TEST(HostCheck, TakesOnlyAddressesInBrackets) {
    const HostCheck check("127.0.0.1", {}, {});
    EXPECT_TRUE(check.host_allowed("[::1]:5000", "127.0.0.1"));
    EXPECT_FALSE(check.host_allowed("[localhost]", "127.0.0.1"));
    EXPECT_FALSE(check.host_allowed("[127.0.0.1]", "127.0.0.1"));
    EXPECT_FALSE(check.host_allowed("[]", "127.0.0.1"));
}

TEST(HostCheck, TakesConfiguredNamesAndPatterns) {
    const HostCheck check("0.0.0.0", {"Tune.example.com", "*.corp", "only.port:81"}, {});
    EXPECT_TRUE(check.host_allowed("tune.EXAMPLE.com:5000", ""));
    EXPECT_TRUE(check.host_allowed("a.b.corp", ""));
    EXPECT_FALSE(check.host_allowed("corp", ""));
    EXPECT_FALSE(check.host_allowed("notcorp", ""));
    EXPECT_TRUE(check.host_allowed("only.port:81", ""));
    EXPECT_FALSE(check.host_allowed("only.port:82", ""));
    EXPECT_TRUE(HostCheck("x", {"*"}, {}).host_allowed("anything.at.all", ""));
}

TEST(OriginCheck, LetsOnlyTheServersOwnPagesChangeThings) {
    const HostCheck check("127.0.0.1", {}, {"https://dash.example.com"});
    const std::string host = "127.0.0.1:5000";
    EXPECT_TRUE(check.origin_allowed("", "", host));
    EXPECT_TRUE(check.origin_allowed("http://127.0.0.1:5000", "same-origin", host));
    EXPECT_TRUE(check.origin_allowed("https://dash.example.com", "cross-site", host));
    for (const char* origin :
         {"http://evil.com", "null", "http://127.0.0.1:5001", "http://localhost:5000",
          "http://127.0.0.1:5000.evil.com", "x", "http://127.0.0.1:5000@evil.com"})
        EXPECT_FALSE(check.origin_allowed(origin, "", host)) << origin;
    EXPECT_FALSE(check.origin_allowed("", "cross-site", host)) << "a form without Origin";
    EXPECT_TRUE(check.origin_allowed("https://tune.lan", "", "tune.lan"));
    EXPECT_TRUE(check.origin_allowed("https://tune.lan", "", "tune.lan:443"));
    EXPECT_TRUE(HostCheck("x", {}, {"*"}).origin_allowed("http://evil.com", "", host));
}

void expect_range(const char* header, std::uint64_t size, ByteRange::Kind kind, std::uint64_t begin,
                  std::uint64_t end) {
    const ByteRange range = parse_byte_range(header, size);
    EXPECT_EQ(range.kind, kind) << header;
    EXPECT_EQ(range.begin, begin) << header;
    EXPECT_EQ(range.end, end) << header;
}

TEST(ByteRange, ReadsTheThreeForms) {
    expect_range("bytes=0-0", 10, ByteRange::Kind::kPart, 0, 1);
    expect_range("bytes=2-5", 10, ByteRange::Kind::kPart, 2, 6);
    expect_range("bytes=2-", 10, ByteRange::Kind::kPart, 2, 10);
    expect_range("bytes=2-999", 10, ByteRange::Kind::kPart, 2, 10);
    expect_range("bytes=-3", 10, ByteRange::Kind::kPart, 7, 10);
    expect_range("bytes=-30", 10, ByteRange::Kind::kPart, 0, 10);
}

TEST(ByteRange, TakesOddOnesAsTheWholeFileOrRefusesThem) {
    for (const char* header : {"", "bytes=", "bytes=a-b", "bytes=5-2", "bytes=0-1,3-4", "items=0-1",
                               "bytes=--1", "bytes=1-x", "bytes=99999999999999999999-"})
        expect_range(header, 10, ByteRange::Kind::kWhole, 0, 10);
    for (const char* header : {"bytes=10-", "bytes=10-11", "bytes=-0"})
        expect_range(header, 10, ByteRange::Kind::kUnsatisfiable, 0, 0);
    expect_range("bytes=-1", 0, ByteRange::Kind::kUnsatisfiable, 0, 0);
}

TEST(ETag, IsFoundInListsAndWeakForms) {
    EXPECT_TRUE(etag_listed("\"a\"", "\"a\""));
    EXPECT_TRUE(etag_listed("W/\"a\", \"b\"", "\"b\""));
    EXPECT_TRUE(etag_listed("*", "\"a\""));
    EXPECT_FALSE(etag_listed("\"ab\"", "\"a\""));
    EXPECT_FALSE(etag_listed("", "\"a\""));
    EXPECT_FALSE(etag_listed("*", ""));
}

TEST(ContentCoding, ReadsAcceptEncoding) {
    EXPECT_TRUE(accepts_gzip("gzip, deflate"));
    EXPECT_TRUE(accepts_gzip("br, gzip;q=0.5"));
    EXPECT_FALSE(accepts_gzip(""));
    EXPECT_FALSE(accepts_gzip("deflate"));
    EXPECT_FALSE(accepts_gzip("gzip;q=0"));
    EXPECT_FALSE(accepts_gzip("gzip;q=0.00, br"));
    EXPECT_FALSE(accepts_gzip("xgzip"));
}

TEST(ContentCoding, RoundTripsAndBoundsWhatUnfolds) {
    const std::string text(3'000'000, 'x');
    const std::string packed = gzip(text);
    EXPECT_LT(packed.size(), 30'000u);
    EXPECT_EQ(*gunzip(packed, text.size()), text);
    EXPECT_EQ(*gunzip(gzip(""), 10), "");
    EXPECT_EQ(gunzip(packed, text.size() - 1).error().code, Code::kRequestEntityTooLarge);
    EXPECT_EQ(gunzip(packed.substr(0, packed.size() / 2), text.size()).error().code,
              Code::kBadRequest);
    EXPECT_EQ(gunzip("not gzip at all", 100).error().code, Code::kBadRequest);
    EXPECT_EQ(gunzip("", 100).error().code, Code::kBadRequest);
}

TEST(ResponseHead, CannotBeSplitByHeaderValues) {
    Response response;
    response.headers.emplace_back("X-Name", "a\r\nSet-Cookie: b\0c");
    std::string head;
    append_head(head, response, {200, 0, true});
    EXPECT_THAT(head, testing::HasSubstr("X-Name: aSet-Cookie: b"));
    EXPECT_THAT(head, testing::HasSubstr("X-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(head, testing::Not(testing::HasSubstr("\nSet-Cookie")));
    EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

}  // namespace
}  // namespace tune::tracker
