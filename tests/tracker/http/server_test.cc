// The server over real sockets: what well-behaved clients get.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/system/late_wakes.h"
#include "tests/tracker/http/raw_client.h"
#include "tests/tracker/http/test_server.h"
#include "tracker/http/protocol/content_coding.h"

namespace tune::tracker {
namespace {

TEST(Server, KeepsConnectionsAlive) {
    TestServer server;
    RawClient client(server.port());
    for (int i = 0; i < 3; ++i) {
        const RawResponse response = client.exchange(get("/hello/" + std::to_string(i)));
        EXPECT_EQ(response.status, 200);
        EXPECT_EQ(response.body, "hello " + std::to_string(i));
        EXPECT_EQ(response.headers.count("connection"), 0u);
    }
    const RawResponse last = client.exchange(get("/hello/x", "Connection: close\r\n"));
    EXPECT_EQ(last.headers.at("connection"), "close");
    EXPECT_TRUE(client.is_closed_by_peer());
}

TEST(Server, AnswersOnlyOnceItServes) {
    Router router;
    bool may_answer = false;
    router.add({Method::kGet, Access::kOpen, "/ready", Body::kNone, "",
                [&](const std::shared_ptr<Request>&, const Responder& respond) {
                    EXPECT_TRUE(may_answer);
                    Response response;
                    response.body = "yes";
                    respond(std::move(response));
                }});
    const auto server = Server::listen({.port = 0}, router).value();
    RawClient client(server->port());
    client.send(get("/ready"));
    may_answer = true;
    server->serve();
    EXPECT_EQ(client.read_response().body, "yes");
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
    TestServer server;
    RawClient client(server.port());
    std::string all;
    for (int i = 0; i < 50; ++i) {
        all += get("/elsewhere");
        all += post("/echo", "[" + std::to_string(i) + "]");
        all += get("/hello/" + std::to_string(i));
    }
    client.send(all);
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(client.read_response().body, "from another thread");
        EXPECT_EQ(client.read_response().body, "[" + std::to_string(i) + "]");
        EXPECT_EQ(client.read_response().body, "hello " + std::to_string(i));
    }
}

TEST(Server, AnswersRequestsThatComeByteByByte) {
    TestServer server;
    RawClient client(server.port());
    for (const char c : post("/echo", "{\"a\": 1}")) client.send(std::string(1, c));
    EXPECT_EQ(client.read_response().body, "{\"a\": 1}");
}

TEST(Server, AnswersHeadWithoutABody) {
    TestServer server;
    RawClient client(server.port());
    client.send("HEAD /hello/you HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const RawResponse head = client.read_response(false);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("content-length"), "9");
    EXPECT_EQ(client.exchange(get("/hello/you")).body, "hello you") << "the stream is in step";
}

TEST(Server, RefusesUnknownRoutesAndMethodsAndContinues) {
    TestServer server;
    RawClient client(server.port());
    const RawResponse missing = client.exchange(post("/nowhere", "{\"x\": 1}"));
    EXPECT_EQ(missing.status, 404);
    EXPECT_THAT(missing.body, testing::HasSubstr("ENDPOINT_NOT_FOUND"));
    const RawResponse wrong = client.exchange(post("/hello/x", ""));
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.at("allow"), "GET, HEAD, OPTIONS");
    client.send("OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const RawResponse options = client.read_response();
    EXPECT_EQ(options.status, 204);
    EXPECT_EQ(options.headers.at("allow"), "POST, OPTIONS");
    EXPECT_EQ(client.exchange(get("/hello/x")).status, 200);
}

TEST(Server, InvitesABodyThatWaitsForIt) {
    TestServer server;
    RawClient client(server.port());
    client.send(
        "PUT /upload/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
        "Expect: 100-continue\r\n\r\n");
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("abc");
    EXPECT_EQ(client.read_response().body, "stored");
    EXPECT_EQ(server.upload.bytes, "abc");
}

TEST(Server, RefusesBeforeTheBodyIsSent) {
    TestServer server;
    RawClient client(server.port());
    client.send(
        "PUT /upload/forbidden HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n"
        "Expect: 100-continue\r\n\r\n");
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 403);
    EXPECT_THAT(response.body, testing::HasSubstr("not here"));
}

TEST(Server, StreamsUploadsWithBackPressure) {
    TestServer server;
    server.upload.set_gate(false);
    RawClient client(server.port());
    constexpr std::size_t kSize = 64 << 20;
    std::thread sender([&] {
        client.send("PUT /upload/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                    std::to_string(kSize) + "\r\n\r\n");
        const std::string piece(1 << 20, 'u');
        for (std::size_t sent = 0; sent < kSize; sent += piece.size()) client.send(piece);
    });
    server.upload.wait_until([&] { return server.upload.waiting == 1; });
    {
        const std::lock_guard lock(server.upload.mutex);
        EXPECT_EQ(server.upload.bytes.size(), 0u) << "one chunk waits, the rest is the client's";
    }
    server.upload.set_gate(true);
    const RawResponse response = client.read_response();
    sender.join();
    EXPECT_EQ(response.body, "stored");
    EXPECT_EQ(server.upload.bytes.size(), kSize);
    EXPECT_LE(server.upload.largest_chunk, 256u << 10);
}

TEST(Server, DropsAnUploadThatBreaksOff) {
    TestServer server;
    {
        RawClient client(server.port());
        client.send("PUT /upload/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
        server.upload.wait_until([&] { return server.upload.bytes == "abc"; });
    }
    server.upload.wait_until([&] { return server.upload.abandoned == 1; });
}

TEST(Server, ReportsWhyAnUploadFailed) {
    TestServer server;
    server.upload.verdict = Error{Code::kResourceExhausted, "the disk is full"};
    RawClient client(server.port());
    client.send("PUT /upload/f HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n");
    client.send(std::string(300'000, 'x'));
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 429);
    EXPECT_THAT(response.body, testing::HasSubstr("the disk is full"));
}

TEST(Server, SendsFilesWholeInPartsAndNotAtAll) {
    TestServer server;
    std::string content;
    for (int i = 0; i < 200'000; ++i) content += std::to_string(i);
    const int fd = ::memfd_create("content", MFD_CLOEXEC);
    ASSERT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    server.file = std::make_shared<const UniqueFd>(fd);
    server.file_size = content.size();
    RawClient client(server.port());

    const RawResponse whole = client.exchange(get("/file"));
    EXPECT_EQ(whole.status, 200);
    EXPECT_TRUE(whole.body == content);
    EXPECT_EQ(whole.headers.at("etag"), "\"v1\"");
    EXPECT_EQ(whole.headers.at("accept-ranges"), "bytes");

    const RawResponse part = client.exchange(get("/file", "Range: bytes=1000-600000\r\n"));
    EXPECT_EQ(part.status, 206);
    EXPECT_TRUE(part.body == content.substr(1000, 599'001));
    EXPECT_EQ(part.headers.at("content-range"),
              "bytes 1000-600000/" + std::to_string(content.size()));

    EXPECT_EQ(client.exchange(get("/file", "Range: bytes=99999999-\r\n")).status, 416);
    EXPECT_EQ(client.exchange(get("/file", "Range: bytes=0-1\r\nIf-Range: \"old\"\r\n")).status,
              200);
    EXPECT_EQ(client.exchange(get("/file", "Range: bytes=0-1\r\nIf-Range: \"v1\"\r\n")).body,
              content.substr(0, 2));
    const RawResponse unchanged = client.exchange(get("/file", "If-None-Match: \"v1\"\r\n"));
    EXPECT_EQ(unchanged.status, 304);
    EXPECT_EQ(unchanged.body, "");
    client.send("HEAD /file HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.read_response(false).headers.at("content-length"),
              std::to_string(content.size()));
    EXPECT_EQ(client.exchange(get("/hello/x")).status, 200);
}

TEST(Server, ClosesWhenAFileBecameShorter) {
    TestServer server;
    const int fd = ::memfd_create("content", MFD_CLOEXEC);
    ASSERT_EQ(::write(fd, "abc", 3), 3);
    server.file = std::make_shared<const UniqueFd>(fd);
    server.file_size = 10;
    RawClient client(server.port());
    client.send(get("/file"));
    EXPECT_THAT(client.read_until("\r\n\r\n"), testing::HasSubstr("Content-Length: 10"));
    EXPECT_EQ(client.read_bytes(10), "abc");
}

TEST(Server, CompressesLargeAnswersWhenAsked) {
    ServerOptions options;
    options.compress_for_loopback = true;
    TestServer server(options);
    RawClient client(server.port());
    const RawResponse packed = client.exchange(get("/large", "Accept-Encoding: gzip, br\r\n"));
    EXPECT_EQ(packed.headers.at("content-encoding"), "gzip");
    EXPECT_LT(packed.body.size(), 2000u);
    EXPECT_EQ(*gunzip(packed.body, 1 << 20), server.large_body);
    EXPECT_EQ(client.exchange(get("/large")).body, server.large_body);
    EXPECT_EQ(client.exchange(get("/hello/x", "Accept-Encoding: gzip\r\n")).body, "hello x");
}

TEST(Server, UnpacksCompressedBodies) {
    TestServer server;
    RawClient client(server.port());
    const std::string text = "{\"a\": \"" + std::string(50'000, 'x') + "\"}";
    const RawResponse response =
        client.exchange(post("/echo", gzip(text), "Content-Encoding: gzip\r\n"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, text);
    EXPECT_EQ(client.exchange(post("/echo", "x", "Content-Encoding: br\r\n")).status, 415);
    EXPECT_EQ(client.exchange(post("/echo", "not gzip", "Content-Encoding: gzip\r\n")).status, 400);
}

TEST(Server, AnswersForAHandlerThatForgot) {
    TestServer server;
    RawClient client(server.port());
    EXPECT_EQ(client.exchange(get("/forgotten")).status, 500);
    EXPECT_EQ(client.exchange(get("/hello/x")).status, 200);
}

/// `count` clients of one network thread that wait for /held; ends when all requests are there.
std::vector<std::unique_ptr<RawClient>> hold_clients(TestServer& server, std::size_t count) {
    std::vector<std::unique_ptr<RawClient>> clients;
    for (std::size_t i = 0; i < count; ++i) {
        clients.push_back(std::make_unique<RawClient>(server.port()));
        clients.back()->send(get("/held"));
        std::unique_lock lock(server.held_mutex);
        server.held_changed.wait(lock, [&] { return server.held.size() == i + 1; });
    }
    return clients;
}

TEST(Server, AnswersThatAreHandedOutTogetherAllCome) {
    ServerOptions options;
    options.threads = 1;
    TestServer server(options);
    const auto clients = hold_clients(server, 20);
    {
        const LateWakes until_all_are_answered;
        for (std::size_t i = 0; i < clients.size(); ++i)
            server.held[i](text_response("answer " + std::to_string(i)));
    }
    for (std::size_t i = 0; i < clients.size(); ++i)
        EXPECT_EQ(clients[i]->read_response().body, "answer " + std::to_string(i));
}

TEST(Server, AWakeThatIsPutOffHoldsNoOtherThreadsAnswerBack) {
    ServerOptions options;
    options.threads = 1;
    TestServer server(options);
    const auto clients = hold_clients(server, 2);
    const LateWakes to_the_end_of_the_test;
    server.held[0](text_response("put off"));
    std::thread([&server] { server.held[1](text_response("at once")); }).join();
    EXPECT_EQ(clients[1]->read_response().body, "at once");
    EXPECT_EQ(clients[0]->read_response().body, "put off") << "who is awake takes all";
}

TEST(Server, TakesOnlyTheFirstAnswer) {
    TestServer server;
    RawClient client(server.port());
    client.send(get("/held"));
    std::unique_lock lock(server.held_mutex);
    server.held_changed.wait(lock, [&] { return !server.held.empty(); });
    server.held[0](text_response("first"));
    server.held[0](text_response("second"));
    lock.unlock();
    EXPECT_EQ(client.read_response().body, "first");
    EXPECT_EQ(client.exchange(get("/hello/x")).body, "hello x");
}

TEST(Server, StreamsEventsAndResumes) {
    TestServer server;
    std::uint64_t last = 0;
    {
        RawClient client(server.port());
        client.send(get("/events"));
        EXPECT_THAT(client.read_until("\r\n\r\n"), testing::HasSubstr("text/event-stream"));
        EXPECT_EQ(client.read_until("\n\n"), "retry: 1000\n\n");
        last = server.hub.publish("t", "tick", 1);
        EXPECT_EQ(client.read_until("\n\n"),
                  "id: " + std::to_string(last) + "\nevent: tick\ndata: 1\n\n");
    }
    server.hub.publish("t", "tick", 2);
    RawClient again(server.port());
    again.send(get("/events", "Last-Event-ID: " + std::to_string(last) + "\r\n"));
    again.read_until("\r\n\r\n");
    again.read_until("\n\n");
    EXPECT_THAT(again.read_until("\n\n"), testing::HasSubstr("data: 2\n"));
}

TEST(Server, KeepsQuietEventStreamsOpen) {
    ServerOptions options;
    options.event_keep_alive_ms = 50;
    TestServer server(options);
    RawClient client(server.port());
    client.send(get("/events"));
    client.read_until("retry: 1000\n\n");
    EXPECT_EQ(client.read_until("\n\n"), ": keep-alive\n\n");
    EXPECT_EQ(client.read_until("\n\n"), ": keep-alive\n\n");
}

TEST(Server, FinishesRunningRequestsWhenItStops) {
    constexpr int kPatience_ms = 60'000;
    ServerOptions options;
    options.drain_timeout_ms = kPatience_ms;
    TestServer server(options, kPatience_ms);
    RawClient idle(server.port());
    idle.exchange(get("/hello/x"));
    RawClient events(server.port());
    events.send(get("/events"));
    events.read_until("\n\n");
    RawClient busy(server.port());
    busy.send(get("/held"));
    {
        std::unique_lock lock(server.held_mutex);
        server.held_changed.wait(lock, [&] { return !server.held.empty(); });
    }
    std::thread stopper([&] { server.server->stop(); });
    EXPECT_TRUE(idle.is_closed_by_peer());
    EXPECT_TRUE(events.is_closed_by_peer());
    server.held[0](text_response("done"));
    const RawResponse response = busy.read_response();
    EXPECT_EQ(response.body, "done");
    EXPECT_EQ(response.headers.at("connection"), "close");
    EXPECT_TRUE(busy.is_closed_by_peer());
    stopper.join();
    EXPECT_THROW(RawClient(server.port()), std::runtime_error);
}

/// Many more than a network thread looks at in one go.
std::vector<std::unique_ptr<RawClient>> crowd_of(const TestServer& server) {
    std::vector<std::unique_ptr<RawClient>> crowd;
    for (int i = 0; i < 300; ++i) {
        crowd.push_back(std::make_unique<RawClient>(server.port()));
        EXPECT_EQ(crowd.back()->exchange(get("/hello/x")).status, 200);
    }
    return crowd;
}

TEST(Server, TimesOutAndDrainsACrowdToTheLast) {
    ServerOptions options;
    options.threads = 1;
    options.connections_per_client_max = 1000;
    {
        options.idle_timeout_ms = 500;
        TestServer server(options);
        for (const auto& idle : crowd_of(server)) EXPECT_TRUE(idle->is_closed_by_peer());
    }
    options.idle_timeout_ms = RawClient::kPatience_ms;
    options.drain_timeout_ms = RawClient::kPatience_ms;
    TestServer server(options, RawClient::kPatience_ms);
    const auto crowd = crowd_of(server);
    std::thread stopper([&] { server.server->stop(); });
    for (const auto& idle : crowd) EXPECT_TRUE(idle->is_closed_by_peer());
    stopper.join();
}

TEST(Server, DropsAnswersThatComeAfterItsEnd) {
    Responder late;
    {
        ServerOptions options;
        options.drain_timeout_ms = 50;
        TestServer server(options);
        RawClient client(server.port());
        client.send(get("/held"));
        std::unique_lock lock(server.held_mutex);
        server.held_changed.wait(lock, [&] { return !server.held.empty(); });
        late = server.held[0];
        lock.unlock();
        server.server->stop();
        EXPECT_EQ(client.read_response().status, 0);
    }
    late(text_response("nobody hears this"));
}

TEST(Server, ReportsThatThePortIsInUse) {
    TestServer server;
    ServerOptions options;
    options.port = server.port();
    const auto second = Server::start(options, server.router);
    ASSERT_FALSE(second.has_value());
    EXPECT_THAT(second.error().message,
                testing::AllOf(testing::HasSubstr("port is in use"), testing::HasSubstr("--port")));
    options.host = "no.such.host.invalid";
    EXPECT_EQ(Server::start(options, server.router).error().code, Code::kInvalidParameterValue);
}

}  // namespace
}  // namespace tune::tracker
