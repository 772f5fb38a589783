// The server against clients that are broken, slow, greedy or hostile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/tracker/http/raw_client.h"
#include "tests/tracker/http/test_server.h"
#include "tracker/http/protocol/content_coding.h"

namespace tune::tracker {
namespace {

TEST(HostileClient, OfAForeignHostIsRefused) {
    TestServer server;
    for (const char* host : {"Host: evil.com\r\n", "Host: 127.0.0.1.evil.com\r\n", ""}) {
        RawClient client(server.port());
        const RawResponse response =
            client.exchange("GET /hello/x HTTP/1.1\r\n" + std::string(host) + "\r\n");
        EXPECT_EQ(response.status, 403) << host;
        EXPECT_THAT(response.body, testing::HasSubstr("DNS rebinding"));
    }
    RawClient probe(server.port());
    EXPECT_EQ(probe.exchange("GET /health HTTP/1.1\r\nHost: evil.com\r\n\r\n").status, 200);
}

TEST(HostileClient, OfAForeignPageMayReadButNotChange) {
    TestServer server;
    RawClient client(server.port());
    EXPECT_EQ(client.exchange(post("/echo", "{}", "Origin: http://evil.com\r\n")).status, 403);
    EXPECT_EQ(client.exchange(post("/echo", "{}", "Origin: null\r\n")).status, 403);
    EXPECT_EQ(client.exchange(post("/echo", "{}", "Sec-Fetch-Site: cross-site\r\n")).status, 403);
    EXPECT_EQ(client.exchange(post("/echo", "{}", "Origin: http://localhost\r\n")).status, 200);
    const RawResponse read = client.exchange(get("/hello/x", "Origin: http://evil.com\r\n"));
    EXPECT_EQ(read.status, 200);
    EXPECT_EQ(read.headers.count("access-control-allow-origin"), 0u);
}

TEST(HostileClient, WithLargeHeadersGets431) {
    TestServer server;
    RawClient client(server.port());
    const RawResponse response =
        client.exchange(get("/hello/x", "X: " + std::string(100'000, 'a') + "\r\n"));
    EXPECT_EQ(response.status, 431);
    EXPECT_THAT(response.body, testing::HasSubstr("error_code"));
    EXPECT_TRUE(client.is_closed_by_peer());
}

TEST(HostileClient, WithALargeBodyGets413) {
    ServerOptions options;
    options.json_body_bytes_max = 100'000;
    TestServer server(options);
    RawClient announced(server.port());
    EXPECT_EQ(announced
                  .exchange("POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Length: 100001\r\n\r\n")
                  .status,
              413);
    RawClient chunked(server.port());
    chunked.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 30 && chunked.send("2000\r\n" + std::string(0x2000, 'x') + "\r\n"); ++i) {
    }
    EXPECT_EQ(chunked.read_response().status, 413);
    RawClient bomb(server.port());
    const RawResponse unfolded = bomb.exchange(
        post("/echo", gzip(std::string(10'000'000, 'x')), "Content-Encoding: gzip\r\n"));
    EXPECT_EQ(unfolded.status, 413);
    EXPECT_THAT(unfolded.body, testing::HasSubstr("REQUEST_ENTITY_TOO_LARGE"));
}

TEST(HostileClient, ThatIsSlowGets408) {
    ServerOptions options;
    options.request_timeout_ms = 100;
    TestServer server(options);
    RawClient headers(server.port());
    headers.send("GET /hello/x HTTP/1.1\r\nHost: loc");
    const RawResponse response = headers.read_response();
    EXPECT_EQ(response.status, 408);
    EXPECT_TRUE(headers.is_closed_by_peer());
    RawClient body(server.port());
    body.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    EXPECT_EQ(body.read_response().status, 408);
    RawClient upload(server.port());
    upload.send("PUT /upload/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
    EXPECT_EQ(upload.read_response().status, 408);
    server.upload.wait_until([&] { return server.upload.abandoned == 1; });
}

TEST(HostileClient, ThatIsIdleIsClosed) {
    ServerOptions options;
    options.idle_timeout_ms = 60;
    TestServer server(options);
    RawClient fresh(server.port());
    EXPECT_TRUE(fresh.is_closed_by_peer());
    for (;;) {  // until this thread sends before its new connection counts as idle
        RawClient used(server.port());
        const int status = used.exchange(get("/hello/x")).status;
        if (status == 0) continue;
        EXPECT_EQ(status, 200);
        EXPECT_TRUE(used.is_closed_by_peer());
        break;
    }
}

TEST(HostileClient, ThatDoesNotReadIsClosed) {
    ServerOptions options;
    options.request_timeout_ms = 100;
    options.connections_max = 1;
    TestServer server(options);
    server.large_body.assign(64 << 20, 'j');
    RawClient client(server.port());
    client.send(get("/large"));
    client.read_until("\r\n\r\n");
    wait_for_place(server.port());
    EXPECT_LT(client.read_bytes(64 << 20).size(), 64u << 20);
}

TEST(HostileClient, OneTooManyIsRefused) {
    ServerOptions options;
    options.connections_max = 4;
    TestServer server(options);
    auto clients = answered_clients(server.port(), 4);
    RawClient extra(server.port());
    const RawResponse refused = extra.exchange(get("/hello/x"));
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
    clients.clear();
    wait_for_place(server.port());
}

TEST(HostileClient, ThatSendsGarbageGets400AndIsClosed) {
    TestServer server;
    for (const char* text :
         {"\x16\x03\x01\x02\x01\x01\x01\r\n\r\n", "GET\r\n\r\n", "GET /x HTTP/9.9\r\n\r\n",
          "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
          "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
          "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n"}) {
        RawClient client(server.port());
        const int status = client.exchange(text).status;
        EXPECT_TRUE(status == 400 || status == 505) << status << " for " << text;
        EXPECT_TRUE(client.is_closed_by_peer());
    }
    RawClient good(server.port());
    EXPECT_EQ(good.exchange(get("/hello/x")).status, 200);
}

/// Random damage to a pipeline of requests: the server answers or closes, and lives.
TEST(HostileClient, SurvivesMutatedRequests) {
    ServerOptions options;
    options.request_timeout_ms = 200;
    TestServer server(options);
    std::mt19937 random(7);
    const std::string good = post("/echo", "{\"a\": [1, 2]}") + get("/hello/x") +
                             "PUT /upload/f HTTP/1.1\r\nHost: localhost\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    for (int round = 0; round < 300; ++round) {
        std::string text = good;
        const std::size_t edits = 1 + random() % 4;
        for (std::size_t i = 0; i < edits; ++i) {
            const std::size_t at = random() % text.size();
            switch (random() % 3) {
                case 0: text[at] = static_cast<char>(random() % 256); break;
                case 1: text.erase(at, 1 + random() % 8); break;
                default: text.insert(at, text.substr(random() % text.size(), random() % 20));
            }
        }
        RawClient client(server.port());
        client.send(text);
        client.end_sending();
        while (client.read_response().status != 0) {
        }
    }
    RawClient client(server.port());
    EXPECT_EQ(client.exchange(get("/hello/x")).status, 200);
}

}  // namespace
}  // namespace tune::tracker
