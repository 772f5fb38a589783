// The client against the real server, and against servers that fail in every way.

#include "tracker/client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/id.h"
#include "tests/tracker/client/bad_server.h"
#include "tests/tracker/client/silent_server.h"
#include "tests/tracker/http/test_server.h"
#include "tracker/client/url_parts.h"

namespace tune::tracker {
namespace {

std::unique_ptr<Client> client_of(std::uint16_t port, int retries = 0) {
    ClientOptions options;
    options.url = "http://127.0.0.1:" + std::to_string(port);
    options.retries = retries;
    options.backoff_first_ms = 1;
    options.backoff_max_ms = 5;
    options.timeout_ms = 60'000;
    return Client::create(options).value();
}

TEST(ClientUrl, IsTakenApart) {
    const UrlParts plain = parse_url("http://localhost:5000").value();
    EXPECT_EQ(plain.host, "localhost");
    EXPECT_EQ(plain.port, "5000");
    EXPECT_EQ(plain.prefix, "");
    EXPECT_EQ(plain.authority, "localhost:5000");
    const UrlParts v6 = parse_url("http://[::1]:81/mlflow/").value();
    EXPECT_EQ(v6.host, "::1");
    EXPECT_EQ(v6.port, "81");
    EXPECT_EQ(v6.prefix, "/mlflow");
    EXPECT_EQ(v6.authority, "[::1]:81");
    EXPECT_EQ(parse_url("http://h").value().authority, "h");
    const UrlParts secured = parse_url("https://h/a/").value();
    EXPECT_TRUE(secured.is_tls);
    EXPECT_EQ(secured.port, "443");
    EXPECT_EQ(secured.authority, "h");
    EXPECT_EQ(parse_url("https://h:80").value().authority, "h:80");
    for (const char* bad :
         {"", "localhost:5000", "ftp://h", "https://", "http://", "http://:5", "http://h:x",
          "http://u:p@h", "http://h/?q", "http://[::1", "http://[::1]x:80", "file:/x"})
        EXPECT_EQ(parse_url(bad).error().code, Code::kInvalidParameterValue) << bad;
}

TEST(Client, TalksJsonOverOneConnection) {
    TestServer server;
    const auto client = client_of(server.port());
    for (int i = 0; i < 3; ++i) {
        const Result<Json> answer = client->post("/echo", {{"number", i}});
        ASSERT_TRUE(answer.has_value()) << answer.error().text();
        EXPECT_EQ((*answer)["number"], i);
    }
    const Result<Json> text = client->get("/hello/x");
    EXPECT_EQ(text.error().code, Code::kDataLoss) << "not JSON";
}

TEST(Client, PassesTheServersErrorsOn) {
    TestServer server;
    const auto client = client_of(server.port());
    const Result<Json> missing = client->get("/api/none");
    EXPECT_EQ(missing.error().code, Code::kEndpointNotFound);
    EXPECT_THAT(missing.error().text(), testing::HasSubstr("GET /api/none: There is no route"));
}

TEST(Client, SendsFilesInPieces) {
    TestServer server;
    const auto client = client_of(server.port());
    const auto path = std::filesystem::temp_directory_path() / ("upload-" + random_hex(8));
    std::string content;
    for (int i = 0; i < 300'000; ++i) content += std::to_string(i);
    std::ofstream(path) << content;
    ASSERT_TRUE(client->put_file("/upload/f", path).has_value());
    EXPECT_TRUE(server.upload.bytes == content);
    server.upload.bytes.clear();
    ASSERT_TRUE(client->put_file("/upload/f", path, 1000).has_value());
    EXPECT_EQ(server.upload.bytes, content.substr(0, 1000));
    server.upload.bytes.clear();
    ASSERT_TRUE(client->put_bytes("/upload/f", "").has_value());
    EXPECT_EQ(server.upload.bytes, "");
    std::filesystem::remove(path);
    EXPECT_EQ(client->put_file("/upload/f", path).error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(client->put_file("/upload/f", "/").error().code, Code::kResourceDoesNotExist);
    EXPECT_EQ(client->put_bytes("/upload/forbidden", std::string(1 << 20, 'x')).error().code,
              Code::kPermissionDenied)
        << "the refusal is read although the body was not";
}

TEST(Client, WaitsForALongPollUntilItIsCancelled) {
    TestServer server;
    const auto client = client_of(server.port());
    std::atomic<bool> is_cancelled{false};
    std::thread canceller([&] {
        std::unique_lock lock(server.held_mutex);
        server.held_changed.wait(lock, [&] { return !server.held.empty(); });
        is_cancelled = true;
        client->cancel();
    });
    const Result<Json> answer = client->get("/held", 60'000);
    canceller.join();
    EXPECT_TRUE(is_cancelled);
    EXPECT_EQ(answer.error().code, Code::kCancelled);
    EXPECT_EQ(client->get("/echo").error().code, Code::kCancelled) << "and all later ones";
}

TEST(Client, GivesUpAtTheDeadline) {
    TestServer server;
    const auto client = client_of(server.port(), 5);
    std::size_t calls = 0;
    std::size_t arrived = 0;
    for (int timeout_ms = 50; arrived == 0; timeout_ms *= 2) {  // until one was long enough to send
        ++calls;
        EXPECT_EQ(client->get("/held", timeout_ms).error().code, Code::kDeadlineExceeded);
        const std::lock_guard lock(server.held_mutex);
        arrived = server.held.size();
    }
    EXPECT_LE(arrived, calls) << "a time-out is not tried again";
    EXPECT_TRUE(client->post("/echo", Json::object()).has_value());
}

std::unique_ptr<Client> secured_client_of(std::uint16_t port) {
    ClientOptions options;
    options.url = "https://127.0.0.1:" + std::to_string(port);
    options.retries = 0;
    return Client::create(options).value();
}

/// The handshake of a server that takes connections and sends nothing. (Real TLS servers are in
/// tests/contract/transfer/test_transfer_https.py.)
TEST(ClientTls, GivesUpAtTheDeadlineAndOnCancel) {
    SilentServer first;
    EXPECT_EQ(secured_client_of(first.port())->get("/x", 50).error().code, Code::kDeadlineExceeded);
    SilentServer server;  // another: within 50 ms the first one may not have seen a connection
    const auto client = secured_client_of(server.port());
    std::thread canceller([&] {
        server.wait_for(1);
        client->cancel();
    });
    EXPECT_EQ(client->get("/x", 60'000).error().code, Code::kCancelled);
    canceller.join();
    EXPECT_EQ(client->get("/x").error().code, Code::kCancelled) << "and all later ones";
}

TEST(ClientTls, SaysThatNobodySpeaksTls) {
    TestServer server;
    const Result<Json> answer = secured_client_of(server.port())->get("/x");
    EXPECT_EQ(answer.error().code, Code::kTemporarilyUnavailable) << answer.error().text();
}

TEST(Client, NamesTheAddressThatARedirectNames) {
    BadServer server(
        {"HTTP/1.1 301 x\r\nLocation: https://h.example/\r\nContent-Length: 0\r\n\r\n"});
    EXPECT_THAT(client_of(server.port())->get("/x").error().text(),
                testing::HasSubstr("'https://h.example/'; redirects are not followed"));
}

TEST(Client, RefusesCredentialsThatWouldBeHeaders) {
    ClientOptions options;
    options.url = "http://127.0.0.1:1";
    options.authorization = "Bearer a\r\nX-Evil: 1";
    EXPECT_EQ(Client::create(options).error().code, Code::kInvalidParameterValue);
}

TEST(Client, SaysThatNobodyListens) {
    std::uint16_t port = 0;
    { port = TestServer().port(); }
    const Result<Json> answer = client_of(port, 2)->get("/x");
    EXPECT_EQ(answer.error().code, Code::kTemporarilyUnavailable);
    EXPECT_THAT(answer.error().text(), testing::HasSubstr("cannot be reached"));
}

TEST(Client, ReplacesAConnectionThatTheServerClosed) {
    BadServer server({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"});  // closes after each
    const auto client = client_of(server.port());
    EXPECT_TRUE(client->get("/1").has_value());
    EXPECT_TRUE(client->get("/2").has_value());
    EXPECT_EQ(server.served(), 2);
}

TEST(Client, TriesAgainWhereThatMayHelp) {
    for (const char* refusal :
         {"HTTP/1.1 429 x\r\nContent-Length: 0\r\nRetry-After: 0\r\n\r\n",
          "HTTP/1.1 503 x\r\nContent-Length: 0\r\n\r\n",
          "HTTP/1.1 504 x\r\nContent-Length: 0\r\n\r\n", "" /* closes without an answer */,
          "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"}) {
        BadServer server(
            {refusal, refusal, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"a\": 1}"});
        const auto client = client_of(server.port(), 4);
        const Result<Json> answer = client->post("/x", {{"b", 2}});
        ASSERT_TRUE(answer.has_value()) << refusal << " " << answer.error().text();
        EXPECT_EQ((*answer)["a"], 1);
        EXPECT_EQ(server.served(), 3);
    }
}

TEST(Client, DoesNotTryAgainWhereItCannotHelp) {
    BadServer server({"HTTP/1.1 400 x\r\nContent-Length: 0\r\n\r\n"});
    EXPECT_EQ(client_of(server.port(), 4)->get("/x").error().code, Code::kBadRequest);
    EXPECT_EQ(server.served(), 1);
}

TEST(Client, RefusesAnswersThatAreNoHttpOrTooLarge) {
    BadServer garbage({"SSH-2.0-OpenSSH_9.2\r\n\r\n"});
    EXPECT_EQ(client_of(garbage.port(), 3)->get("/x").error().code, Code::kDataLoss);
    BadServer large({"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"});
    EXPECT_EQ(client_of(large.port(), 3)->get("/x").error().code, Code::kDataLoss);
}

}  // namespace
}  // namespace tune::tracker
