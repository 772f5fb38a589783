#include "tracker/http/protocol/request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tune::tracker {
namespace {

using Progress = RequestParser::Progress;

struct Parsed {
    Progress end = Progress::kNeedMore;
    std::string body;
    std::string rest;
    int status = 0;
};

/// Feeds `text` in pieces of `piece` bytes, as a network would.
Parsed parse(RequestParser& parser, std::string_view text, std::size_t piece,
             std::uint64_t body_max = UINT64_MAX) {
    Parsed out;
    std::string pending;
    while (true) {
        std::size_t consumed = 0;
        const Progress progress = parser.feed(pending, consumed);
        if (progress == Progress::kChunk) out.body += parser.chunk();
        pending.erase(0, consumed);
        if (progress == Progress::kHeader) parser.limit_body(body_max);
        if (progress == Progress::kDone || progress == Progress::kError) {
            out.end = progress;
            out.rest = pending + std::string(text);
            out.status = parser.error_status();
            return out;
        }
        if (progress == Progress::kNeedMore) {
            if (text.empty()) return out;
            pending += text.substr(0, piece);
            text.remove_prefix(std::min(piece, text.size()));
        }
    }
}

int fault_of(std::string_view text, std::size_t header_max = 4096) {
    RequestParser parser(header_max);
    const Parsed parsed = parse(parser, text, 7);
    return parsed.end == Progress::kError ? parsed.status : 0;
}

TEST(RequestParser, ReadsARequestInAnyPieces) {
    const std::string text =
        "POST /a%2Fb%20c/%7Ex?q=1&r=x%20y+z&q=2&flag HTTP/1.1\r\nHost: h\r\nX-Two:  v \r\n"
        "Content-Length: 5\r\n\r\nhelloGET";
    for (std::size_t piece : {1u, 2u, 3u, 17u, 1000u}) {
        RequestParser parser(4096);
        const Parsed parsed = parse(parser, text, piece);
        ASSERT_EQ(parsed.end, Progress::kDone) << piece;
        const Request& request = *parser.request();
        EXPECT_EQ(request.method, Method::kPost);
        EXPECT_EQ(request.path, "/a/b c/~x");
        EXPECT_EQ(request.raw_path, "/a%2Fb%20c/%7Ex");
        EXPECT_THAT(request.query,
                    testing::ElementsAre(testing::Pair("q", "1"), testing::Pair("r", "x y z"),
                                         testing::Pair("q", "2"), testing::Pair("flag", "")));
        EXPECT_EQ(request.header("x-two"), "v");
        EXPECT_EQ(parsed.body, "hello");
        EXPECT_TRUE(parsed.rest.starts_with("G"));
        EXPECT_TRUE(parser.keep_alive());
    }
}

TEST(RequestParser, ReadsChunksAndDropsTrailers) {
    const std::string text =
        "PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "3\r\nabc\r\n4;ext=1\r\ndefg\r\n0\r\nX-Evil: 1\r\nHost: other\r\n\r\n";
    for (std::size_t piece : {1u, 5u, 1000u}) {
        RequestParser parser(4096);
        const Parsed parsed = parse(parser, text, piece);
        ASSERT_EQ(parsed.end, Progress::kDone) << piece;
        EXPECT_EQ(parsed.body, "abcdefg");
        EXPECT_EQ(parser.request()->header("X-Evil"), "");
        EXPECT_EQ(parser.request()->header("Host"), "h");
    }
}

TEST(RequestParser, RefusesWhatCouldBeReadInTwoWays) {
    EXPECT_EQ(fault_of("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
    EXPECT_EQ(fault_of("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              400);
    EXPECT_EQ(fault_of("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                       "Content-Length: 4\r\n\r\nabcd"),
              400);
    EXPECT_EQ(fault_of("POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
    EXPECT_EQ(fault_of("GET http://evil.com/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(fault_of("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    EXPECT_EQ(fault_of("GET /x HTTP/1.1\r\nHo st: a\r\n\r\n"), 400);
    EXPECT_EQ(fault_of("GET /x HTTP/2.0\r\n\r\n"), 505);
    EXPECT_EQ(fault_of("BREW /x HTTP/1.1\r\n\r\n"), 405);
    EXPECT_EQ(fault_of("TRACE /x HTTP/1.1\r\n\r\n"), 405);
    EXPECT_EQ(fault_of("\x16\x03\x01\x02 TLS hello \x01\x02\x03\x04\r\n\r\n"), 400);
}

TEST(RequestParser, BoundsHeadersAndChunkHeaders) {
    const std::string large = "GET /x HTTP/1.1\r\nX: " + std::string(5000, 'a') + "\r\n\r\n";
    EXPECT_EQ(fault_of(large), 431);
    EXPECT_EQ(fault_of("GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n\r\n"), 431);
    EXPECT_EQ(fault_of("PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
                       std::string(6000, 'e')),
              431);
    std::string many = "GET /x HTTP/1.1\r\n";
    for (int i = 0; i < 2000; ++i) many += "A: b\r\n";
    EXPECT_EQ(fault_of(many + "\r\n"), 431);
}

TEST(RequestParser, BoundsAChunkedBody) {
    RequestParser parser(4096);
    const Parsed parsed = parse(
        parser, "PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n0\r\n\r\n",
        1000, 5);
    EXPECT_EQ(parsed.end, Progress::kError);
    EXPECT_EQ(parsed.status, 413);
}

TEST(RequestParser, IsReusable) {
    RequestParser parser(4096);
    EXPECT_EQ(parse(parser, "GET /1 HTTP/1.0\r\n\r\n", 100).end, Progress::kDone);
    EXPECT_FALSE(parser.keep_alive());
    const std::shared_ptr<Request> first = parser.request();
    parser.reset();
    EXPECT_FALSE(parser.started());
    EXPECT_EQ(parse(parser, "GET /2 HTTP/1.1\r\nExpect: 100-Continue\r\n\r\n", 100).end,
              Progress::kDone);
    EXPECT_FALSE(parser.expects_continue()) << "there is no body to wait for";
    EXPECT_EQ(first->path, "/1");
    EXPECT_EQ(parser.request()->path, "/2");
}

}  // namespace
}  // namespace tune::tracker
