// Over a real connection: who asks is found out before the body of the request is read.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracker/auth/users_api.h"
#include "tests/tracker/http/raw_client.h"
#include "tracker/http/server.h"

namespace tune::tracker {
namespace {

class ProofTest : public UsersTest {
protected:
    ProofTest() {
        ServerOptions options{.port = 0};
        options.connections_per_client_max = 4;
        options.request_timeout_ms = 20'000;  // a test that fails has its answer then: 408
        server_ = Server::start(std::move(options), api_.router).value();
    }
    ~ProofTest() override { server_->stop(); }

    /// The head of a request whose body is far larger than what is read of a refused one.
    static std::string head(const std::string& method, const std::string& path,
                            const std::string& credential, const std::string& more = "") {
        return method + " " + path +
               " HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
               "application/json\r\nContent-Length: " +
               std::to_string(kBody.size()) + "\r\nAuthorization: " + credential + "\r\n" + more +
               "\r\n";
    }
    static std::string wrong() { return login("bob", "a wrong password"); }
    static std::string right() { return login("bob", kPassword); }

    static constexpr const char* kSearch = "/api/2.0/mlflow/experiments/search";
    static constexpr const char* kFile = "/api/2.0/mlflow-artifacts/artifacts/0/x";
    inline static const std::string kBody =
        R"({"max_results": 1)" + std::string(1 << 20, ' ') + "}";

    std::unique_ptr<Server> server_;
};

TEST_F(ProofTest, AWrongLoginIsRefusedWithoutItsBody) {
    for (const auto& [method, path] :
         {std::pair<const char*, const char*>{"POST", kSearch}, {"PUT", kFile}}) {
        RawClient client(server_->port());
        client.send(head(method, path, wrong()));
        const RawResponse answer = client.read_response();
        EXPECT_EQ(answer.status, 401) << path;
        EXPECT_EQ(answer.headers.at("www-authenticate"), "Basic realm=\"mlflow\"") << path;
    }
    RawClient client(server_->port());
    client.send(head("POST", kSearch, "Bearer tune-user-made-up"));
    EXPECT_EQ(client.read_response().status, 401);
}

TEST_F(ProofTest, WhoWaitsToBeAskedForTheBodyIsAskedOnceItIsKnownWhoItIs) {
    RawClient stranger(server_->port());
    stranger.send(head("POST", kSearch, wrong(), "Expect: 100-continue\r\n"));
    EXPECT_EQ(stranger.read_response().status, 401);
    RawClient bob(server_->port());
    bob.send(head("POST", kSearch, right(), "Expect: 100-continue\r\n"));
    EXPECT_THAT(bob.read_until("\r\n\r\n"), ::testing::HasSubstr("100 Continue"));
    bob.send(kBody);
    EXPECT_EQ(bob.read_response().status, 200);
}

/// What the client sent ahead is there when the proof is; and the connection lives on.
TEST_F(ProofTest, ABodyThatCameAlongIsReadAfterTheProof) {
    RawClient bob(server_->port());
    for (int i = 0; i < 2; ++i) {
        bob.send(head("POST", kSearch, right()) + kBody);
        EXPECT_EQ(bob.read_response().status, 200);
    }
    RawClient stranger(server_->port());
    const std::string small = "GET /api/2.0/mlflow/users/current HTTP/1.1\r\nHost: localhost\r\n";
    stranger.send(small + "Authorization: " + wrong() + "\r\n\r\n" + small +
                  "Authorization: " + right() + "\r\n\r\n");
    EXPECT_EQ(stranger.read_response().status, 401);
    EXPECT_EQ(stranger.read_response().status, 200) << "the next request of the connection";
}

TEST_F(ProofTest, WhoIsProvedToBeAUserLeavesTheShareOfTheAddress) {
    const auto ask = [](RawClient& client, const std::string& credential) {
        client.send(
            "GET /api/2.0/mlflow/users/current HTTP/1.1\r\nHost: localhost\r\n"
            "Authorization: " +
            credential + "\r\n\r\n");
        return client.read_response().status;
    };
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 6; ++i) {
        clients.push_back(std::make_unique<RawClient>(server_->port()));
        EXPECT_EQ(ask(*clients.back(), right()), 200);
    }
    for (int i = 0; i < 4; ++i) {
        clients.push_back(std::make_unique<RawClient>(server_->port()));
        EXPECT_EQ(ask(*clients.back(), wrong()), 401);
    }
    RawClient extra(server_->port());
    EXPECT_EQ(ask(extra, login("nobody", "made up at once")), 429);
}

}  // namespace
}  // namespace tune::tracker
