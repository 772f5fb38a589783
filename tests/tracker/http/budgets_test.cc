// What many connections together may hold: bodies, answers, connections of one client.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/tracker/http/raw_client.h"
#include "tests/tracker/http/test_server.h"
#include "tracker/http/protocol/content_coding.h"

namespace tune::tracker {
namespace {

std::string packed_post(std::string_view path, std::size_t bytes) {
    return post(path, gzip(std::string(bytes, 'a')), "Content-Encoding: gzip\r\n");
}

TEST(Budgets, BodiesCountAsTheyAreUnfolded) {
    ServerOptions options;
    options.body_bytes_total_max = 20 << 20;
    TestServer server(options);
    std::vector<std::unique_ptr<RawClient>> kept;
    const auto held_count = [&] {
        const std::lock_guard lock(server.held_mutex);
        return server.held.size();
    };
    for (int i = 0; i < 30; ++i) {
        auto client = std::make_unique<RawClient>(server.port());
        client->send(packed_post("/held", 4 << 20));  // 4 kB on the wire
        while (held_count() == kept.size() && !client->is_readable(10)) {
        }
        if (held_count() > kept.size()) {
            kept.push_back(std::move(client));
            continue;
        }
        const RawResponse answer = client->read_response();
        EXPECT_EQ(answer.status, 429);
        EXPECT_EQ(answer.headers.at("retry-after"), "1");
    }
    EXPECT_GE(kept.size(), 2u);
    EXPECT_LE(kept.size(), 5u) << "of 4 MB each in 20 MB";
    {
        const std::lock_guard lock(server.held_mutex);
        for (const Responder& respond : server.held) respond(text_response("done"));
        server.held.clear();
    }
    for (const auto& client : kept) EXPECT_EQ(client->read_response().status, 200);
    RawClient again(server.port());
    EXPECT_EQ(again.exchange(packed_post("/echo", 4 << 20)).status, 200);
}

TEST(Budgets, AnswersThatNobodyReadsAreBounded) {
    constexpr std::size_t kBytes = 40 << 20;  // far more than the kernel takes
    ServerOptions options;
    options.answer_bytes_total_max = 2 * kBytes + 1000;
    TestServer server(options);
    server.large_body.assign(kBytes, 'j');
    RawClient first(server.port());
    RawClient second(server.port());
    for (RawClient* client : {&first, &second}) {
        client->send(get("/large"));
        EXPECT_NE(client->read_until("\r\n\r\n"), "");
    }
    RawClient third(server.port());
    const RawResponse refused = third.exchange(get("/large"));
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(refused.headers.at("retry-after"), "1");
    EXPECT_EQ(third.exchange(get("/hello/x")).status, 200) << "small ones need no room";
    EXPECT_EQ(first.read_bytes(kBytes).size(), kBytes);
    EXPECT_EQ(first.exchange(get("/hello/x")).status, 200);
    EXPECT_EQ(third.exchange(get("/large")).body.size(), kBytes);
}

TEST(Budgets, ALoneAnswerMayBeLargerThanTheBudget) {
    ServerOptions options;
    options.answer_bytes_total_max = 1 << 20;
    TestServer server(options);
    server.large_body.assign(8 << 20, 'j');
    RawClient client(server.port());
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(client.exchange(get("/large")).body.size(), server.large_body.size());
}

TEST(Budgets, OneClientLeavesConnectionsToOthers) {
    ServerOptions options;
    options.connections_per_client_max = 4;
    TestServer server(options);
    auto clients = answered_clients(server.port(), 4);
    RawClient extra(server.port());
    const RawResponse refused = extra.exchange(get("/hello/x"));
    EXPECT_EQ(refused.status, 429);
    EXPECT_NE(refused.body.find("Your address has 4 open connections"), std::string::npos)
        << refused.body;
    RawClient other(server.port(), 2);
    EXPECT_EQ(other.exchange(get("/hello/x")).status, 200);
    clients.clear();
    wait_for_place(server.port());
}

/// Believes nobody who sends a login, and knows whoever sends "Bearer known".
class Doorman final : public Authenticator {
public:
    Principal authenticate(const Credentials& credentials) const override {
        if (credentials.authorization.starts_with("Basic ")) {
            ClaimedPrincipal claimed;
            claimed.most = Access::kAdmin;
            return claimed;
        }
        if (credentials.authorization != "Bearer known") return AnonymousPrincipal();
        return UserPrincipal{.user_id = 1, .username = "ann", .most = Access::kRun};
    }
    Result<void> check_metrics(const Principal&, std::string_view,
                               std::span<const Metric>) const override {
        return {};
    }
};

TEST(Budgets, OnlyWhoHasProvedToBeSomebodyLeavesTheShare) {
    const Doorman doorman;
    ServerOptions options;
    options.connections_per_client_max = 2;
    TestServer server(options, 2000, &doorman);
    const auto ask = [](RawClient& client, const char* credential) {
        return client.exchange(
            get("/hello/x", std::string("Authorization: ") + credential + "\r\n"));
    };
    RawClient known(server.port());
    EXPECT_EQ(ask(known, "Bearer known").status, 200);
    RawClient made_up(server.port());
    RawClient another(server.port());
    for (RawClient* client : {&made_up, &another})
        EXPECT_EQ(ask(*client, "Basic YTpi").status, 200) << "the route asks nobody for anything";
    RawClient extra(server.port());
    EXPECT_EQ(ask(extra, "Basic YTpj").status, 429);
}

/// A connection that has become a stream keeps its place, and gives it back.
TEST(Budgets, StreamsCountAsConnectionsOfTheirClient) {
    ServerOptions options;
    options.connections_per_client_max = 1;
    TestServer server(options);
    {
        RawClient stream(server.port());
        stream.send(get("/events"));
        EXPECT_NE(stream.read_until("retry: 1000"), "");
        RawClient extra(server.port());
        EXPECT_EQ(extra.exchange(get("/hello/x")).status, 429);
    }
    wait_for_place(server.port());
}

}  // namespace
}  // namespace tune::tracker
