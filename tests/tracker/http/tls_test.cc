// Handshakes that hang, come in masses, or are none. What goes through TLS is tested with real
// clients, in tests/contract/tls.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/tracker/http/raw_client.h"
#include "tests/tracker/http/test_server.h"
#include "tracker/http/tls/tls_identity.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

/// The first bytes of a client that speaks TLS, and then nothing.
constexpr std::string_view kHalfHello("\x16\x03\x01\x02\x00\x01", 6);

class Tls : public testing::Test {
protected:
    void SetUp() override {
        fs::create_directories(folder_);
        make("one");
    }
    void TearDown() override { fs::remove_all(folder_); }

    void make(const std::string& name) {
        const std::string made =
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
            "-subj /CN=localhost -keyout " +
            path(name + ".key") + " -out " + path(name + ".pem") + " 2>/dev/null";
        ASSERT_EQ(std::system(made.c_str()), 0) << made;
    }
    [[nodiscard]] std::string path(const std::string& name) const { return folder_ / name; }
    [[nodiscard]] TlsFiles files() const {
        return {.certificate = path("one.pem"), .key = path("one.key")};
    }
    [[nodiscard]] ServerOptions options() const {
        ServerOptions options;
        Result<std::shared_ptr<TlsIdentity>> identity = TlsIdentity::load(files());
        EXPECT_TRUE(identity.has_value());
        options.tls = std::move(identity).value();
        return options;
    }

private:
    const fs::path folder_ =
        fs::temp_directory_path() / ("tune-tls-test-" + std::to_string(::getpid()));
};

TEST_F(Tls, AHandshakeHasLimitedTime) {
    ServerOptions limited = options();
    limited.handshake_timeout_ms = 100;
    TestServer server(limited);
    RawClient silent(server.port());
    RawClient half(server.port());
    half.send(kHalfHello);
    EXPECT_TRUE(silent.is_closed_by_peer());
    while (half.fill()) {
    }
}

TEST_F(Tls, HandshakesOfOneClientAreLimited) {
    ServerOptions limited = options();
    limited.handshakes_per_client_max = 3;
    limited.threads = 1;  // so that they count in their order
    TestServer server(limited);
    std::vector<std::unique_ptr<RawClient>> stuck;
    for (int i = 0; i < 3; ++i) {
        stuck.push_back(std::make_unique<RawClient>(server.port()));
        stuck.back()->send(kHalfHello);
    }
    RawClient refused(server.port());
    EXPECT_TRUE(refused.is_closed_by_peer());
    RawClient elsewhere(server.port(), 2);
    elsewhere.send("GET /health HTTP/1.1\r\n\r\n");
    EXPECT_EQ(elsewhere.read_response().status, 400) << "another client has its own share";
    EXPECT_FALSE(stuck[0]->is_readable(0)) << "those under way go on";
}

TEST_F(Tls, HandshakesOfAllClientsAreLimited) {
    ServerOptions limited = options();
    limited.handshakes_max = 2;
    limited.threads = 1;
    TestServer server(limited);
    RawClient first(server.port(), 2);
    RawClient second(server.port(), 3);
    first.send(kHalfHello);
    second.send(kHalfHello);
    RawClient refused(server.port(), 4);
    EXPECT_TRUE(refused.is_closed_by_peer());
}

TEST_F(Tls, TheServerStopsInTheMiddleOfHandshakes) {
    auto server = std::make_unique<TestServer>(options());
    std::vector<std::unique_ptr<RawClient>> stuck;
    for (int i = 0; i < 20; ++i) {
        stuck.push_back(std::make_unique<RawClient>(server->port()));
        stuck.back()->send(kHalfHello.substr(0, static_cast<std::size_t>(i % 7)));
    }
    server.reset();
    for (const auto& client : stuck)
        while (client->fill()) {
        }
}

TEST_F(Tls, PlainHttpIsToldWhatToDo) {
    TestServer server(options());
    RawClient client(server.port());
    client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    const RawResponse response = client.read_response();
    EXPECT_EQ(response.status, 400);
    EXPECT_NE(response.body.find("https://"), std::string::npos) << response.body;
    client.end_sending();
    EXPECT_TRUE(client.is_closed_by_peer());
    EXPECT_TRUE(server.server->url().starts_with("https://")) << server.server->url();
}

TEST_F(Tls, ABadFileLeavesWhatIsInUse) {
    const auto identity = TlsIdentity::load(files()).value();
    const auto before = identity->current();
    EXPECT_FALSE(identity->has_changed());
    std::ofstream(path("one.pem")) << "nothing of use";
    EXPECT_FALSE(identity->has_changed()) << "it may be half written";
    EXPECT_TRUE(identity->has_changed());
    const Result<void> refused = identity->reload();
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("one.pem"), std::string::npos);
    EXPECT_EQ(identity->current(), before);
    EXPECT_FALSE(identity->has_changed()) << "it is not tried again before it changes again";
    make("two");
    fs::rename(path("two.pem"), path("one.pem"));
    EXPECT_FALSE(identity->reload().has_value()) << "the key is still the old one's";
    fs::rename(path("two.key"), path("one.key"));
    ASSERT_TRUE(identity->reload().has_value());
    EXPECT_NE(identity->current(), before);
}

}  // namespace
}  // namespace tune::tracker
