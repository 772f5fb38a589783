// Bodies that are made while they are sent: whole, broken off, taken slowly, given up.

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>

#include "tests/tracker/http/raw_client.h"
#include "tests/tracker/http/test_server.h"
#include "tracker/api/http/body_source.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;

/// What the sources of a test were asked for.
struct Asked {
    std::mutex mutex;
    std::condition_variable changed;
    int pieces = 0;
    int destroyed = 0;

    template <class Ready>
    void wait_until(Ready ready) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ready(*this); });
    }
};

/// `count` pieces of one letter each, given on a pool thread; then the end, or an error.
class Letters final : public BodySource {
public:
    Letters(Asked& asked, WorkPool& pool, int count, bool is_broken)
        : asked_(asked), pool_(pool), count_(count), is_broken_(is_broken) {}
    ~Letters() override {
        const std::lock_guard lock(asked_.mutex);
        ++asked_.destroyed;
        asked_.changed.notify_all();
    }
    void read(std::function<void(Result<std::string>)> done) override {
        const int piece = at_++;
        {
            const std::lock_guard lock(asked_.mutex);
            ++asked_.pieces;
            asked_.changed.notify_all();
        }
        pool_.post([done = std::move(done), piece, count = count_, broken = is_broken_] {
            if (piece < count)
                return done(std::string(kPieceBytes, static_cast<char>('a' + piece % 26)));
            if (broken) return done(Error{Code::kInternalError, "the source broke"});
            done(std::string());
        });
    }

private:
    Asked& asked_;
    WorkPool& pool_;
    const int count_;
    const bool is_broken_;
    int at_ = 0;
};

class BodyStreamTest : public testing::Test {
protected:
    BodyStreamTest() {
        add("/three", 3, false);
        add("/none", 0, false);
        add("/broken", 2, true);
        add("/endless", 1'000'000, false);
    }
    ~BodyStreamTest() override { server_->stop(); }

    void add(const char* path, int count, bool is_broken) {
        router_.add({Method::kGet, Access::kOpen, path, Body::kNone, "",
                     [this, count, is_broken](auto, const Responder& respond) {
                         Response response;
                         response.content_type = "text/plain";
                         response.special =
                             StreamBody{std::make_shared<Letters>(asked_, pool_, count, is_broken)};
                         respond(std::move(response));
                     }});
    }

    void start(ServerOptions options = {}) {
        options.port = 0;
        server_ = Server::start(options, router_).value();
    }

    static std::string letters(int count) {
        std::string text;
        for (int i = 0; i < count; ++i)
            text += std::string(kPieceBytes, static_cast<char>('a' + i));
        return text;
    }

    /// Reads chunks to the last one; false when the connection ends before it.
    static bool read_chunks(RawClient& client, std::string& body) {
        for (;;) {
            const std::string line = client.read_until("\r\n");
            if (line.empty()) return false;
            const std::size_t size = std::stoul(line, nullptr, 16);
            body += client.read_bytes(size);
            if (client.read_bytes(2) != "\r\n") return false;
            if (size == 0) return true;
        }
    }

    Asked asked_;
    WorkPool pool_{2};
    Router router_;
    std::unique_ptr<Server> server_;
};

TEST_F(BodyStreamTest, SendsAllPiecesInChunksAndCloses) {
    start();
    RawClient client(server_->port());
    client.send(get("/three"));
    const RawResponse head = client.read_response();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("transfer-encoding"), "chunked");
    EXPECT_EQ(head.headers.count("content-length"), 0u);
    EXPECT_EQ(head.headers.at("connection"), "close");
    std::string body;
    EXPECT_TRUE(read_chunks(client, body));
    EXPECT_EQ(body, letters(3));
    EXPECT_TRUE(client.is_closed_by_peer());
    RawClient other(server_->port());
    other.send(get("/none"));
    static_cast<void>(other.read_response());
    body.clear();
    EXPECT_TRUE(read_chunks(other, body));
    EXPECT_EQ(body, "");
}

TEST_F(BodyStreamTest, EndsWithTheConnectionForOldClients) {
    start();
    RawClient client(server_->port());
    client.send("GET /three HTTP/1.0\r\nHost: localhost\r\n\r\n");
    const RawResponse head = client.read_response();
    EXPECT_EQ(head.headers.count("transfer-encoding"), 0u);
    EXPECT_EQ(client.read_bytes(10 * kPieceBytes), letters(3));
}

TEST_F(BodyStreamTest, IsBrokenOffAfterAnError) {
    start();
    RawClient client(server_->port());
    client.send(get("/broken"));
    static_cast<void>(client.read_response());
    std::string body;
    EXPECT_FALSE(read_chunks(client, body));
    EXPECT_EQ(body, letters(2));
}

TEST_F(BodyStreamTest, AsksForNoMoreThanTheClientTakes) {
    start();
    RawClient client(server_->port());
    client.send(get("/endless"));
    // The kernel's buffers take some pieces; a megabyte more is asked for once that is read.
    client.read_bytes(1 << 20);
    int asked = 0;
    {
        const std::lock_guard lock(asked_.mutex);
        asked = asked_.pieces;
    }
    EXPECT_LT(asked, 400);  // 25 MB: far less than the 64 GB of the body
    client.close();
    asked_.wait_until([](const Asked& all) { return all.destroyed == 1; });
}

TEST_F(BodyStreamTest, AClientThatTakesNothingIsCutOff) {
    ServerOptions options;
    options.request_timeout_ms = 300;
    start(options);
    RawClient client(server_->port());
    client.send(get("/endless"));
    asked_.wait_until([](const Asked& all) { return all.destroyed == 1; });
}

TEST_F(BodyStreamTest, StoppingTheServerEndsIt) {
    ServerOptions options;
    options.drain_timeout_ms = 50;
    start(options);
    RawClient client(server_->port());
    client.send(get("/endless"));
    asked_.wait_until([](const Asked& all) { return all.pieces > 2; });
    server_->stop();
    asked_.wait_until([](const Asked& all) { return all.destroyed == 1; });
}

}  // namespace
}  // namespace tune::tracker
