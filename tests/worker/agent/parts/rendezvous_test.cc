// Where Horovod's processes meet: what is answered, what is refused, and that nobody fills it or
// shuts others out.

#include "worker/agent/supervisor/rendezvous.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/system/unique_fd.h"
#include "worker/agent/supervisor/rendezvous_request.h"

namespace tune::worker {
namespace {

using std::string_literals::operator""s;

int free_port() {
    const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(probe.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
    socklen_t length = sizeof place;
    getsockname(probe.get(), reinterpret_cast<sockaddr*>(&place), &length);
    return ntohs(place.sin_port);
}

UniqueFd connection_to(int port) {
    UniqueFd socket_of(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in place = {};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<std::uint16_t>(port));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_of.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place), 0);
    return socket_of;
}

void put_all(int fd, const std::string& text) {
    std::size_t sent = 0;
    while (sent < text.size()) {
        const ssize_t count = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) return;  // refused before all of it was read
        sent += static_cast<std::size_t>(count);
    }
}

std::string all_of(int fd) {
    std::string text;
    char buffer[65536];
    for (ssize_t count; (count = recv(fd, buffer, sizeof buffer, 0)) > 0;)
        text.append(buffer, static_cast<std::size_t>(count));
    return text;
}

struct Answer {
    int status = 0;
    std::string body = {};
};

Answer answer_in(const std::string& text) {
    const std::size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) return {};
    const std::string body = text.substr(head + 4);
    EXPECT_NE(text.find("\r\nContent-Length: " + std::to_string(body.size()) + "\r\n"),
              std::string::npos)
        << text.substr(0, head);
    return {std::stoi(text.substr(9, 3)), body};
}

/// The rendezvous of 4 processes, two a machine, on a thread of its own.
class RendezvousTest : public testing::Test {
protected:
    void SetUp() override {
        port_ = free_port();
        const std::string port = std::to_string(port_);
        for (const std::string& variable :
             {"HOROVOD_GLOO_RENDEZVOUS_ADDR=127.0.0.1:" + port + "/r-1",
              "HOROVOD_GLOO_RENDEZVOUS_PORT=" + port, "HOROVOD_RANK=0"s, "HOROVOD_SIZE=4"s,
              "HOROVOD_LOCAL_SIZE=2"s, "HOROVOD_CROSS_SIZE=2"s})
            variables_.push_back(variable);
        rendezvous_ = open();
        ASSERT_NE(rendezvous_, nullptr);
        thread_ = std::thread([this] { run(); });
    }
    void TearDown() override {
        eventfd_write(over_.get(), 1);
        if (thread_.joinable()) thread_.join();
    }

    Rendezvous* open(int complaints = STDERR_FILENO) {
        std::vector<char*> pointers;
        for (std::string& variable : variables_) pointers.push_back(variable.data());
        pointers.push_back(nullptr);
        // It lives as long as the process, which is no leak while somebody knows it.
        static std::vector<Rendezvous*>& all = *new std::vector<Rendezvous*>;
        return all.emplace_back(Rendezvous::open(pointers.data(), complaints));
    }
    void run() {
        std::vector<pollfd> polls(1 + kRendezvousPollsMax);
        while (true) {
            polls[0] = {over_.get(), POLLIN, 0};
            const int count = rendezvous_->wanted(polls.data() + 1);
            poll(polls.data(), static_cast<nfds_t>(1 + count), -1);
            if (polls[0].revents != 0) return;
            rendezvous_->serve(polls.data() + 1);
        }
    }

    /// As Horovod's client writes it.
    Answer ask(const std::string& method, const std::string& path, const std::string& body = "") {
        const UniqueFd connection = connection_to(port_);
        put_all(connection.get(), method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                                      "Content-Length: " + std::to_string(body.size()) +
                                      "\r\n\r\n" + body);
        return answer_in(all_of(connection.get()));
    }
    std::string path(const std::string& scope_and_key) const {
        return "/r-1:" + std::to_string(port_) + "/" + scope_and_key;
    }
    Answer get(const std::string& key) { return ask("GET", path(key)); }
    int put(const std::string& key, const std::string& value) {
        return ask("PUT", path(key), value).status;
    }

    int port_ = 0;
    std::vector<std::string> variables_;
    Rendezvous* rendezvous_ = nullptr;
    UniqueFd over_{eventfd(0, EFD_CLOEXEC)};
    std::thread thread_;
};

TEST_F(RendezvousTest, AValueIsThereOnceItWasPut) {
    EXPECT_EQ(get("global/0").status, 404);
    std::string address(140, '\0');
    address[3] = '\n';
    address[7] = '\r';
    EXPECT_EQ(put("global/0", address), 200);
    EXPECT_EQ(get("global/0").status, 200);
    EXPECT_EQ(get("global/0").body, address);
    EXPECT_EQ(put("global/0", ""), 200);
    EXPECT_EQ(get("global/0").body, "") << "the latest counts";
    EXPECT_EQ(get("global/0").status, 200);
    EXPECT_EQ(get("local_node-0/0").status, 404) << "each scope has its own keys";
}

TEST_F(RendezvousTest, AScopeIsEmptiedWhenAllItsMembersAreDone) {
    for (const auto& [scope, members] :
         {std::pair{"global"s, 4}, {"local_node-1"s, 2}, {"cross_1"s, 2}}) {
        EXPECT_EQ(put(scope + "/rank_0", "h"), 200);
        for (int done = 0; done < members; ++done) {
            EXPECT_EQ(get(scope + "/rank_0").status, 200) << scope << " after " << done;
            EXPECT_EQ(ask("DELETE", path(scope + "/" + std::to_string(done))).status, 200);
        }
        EXPECT_EQ(get(scope + "/rank_0").status, 404) << scope;
    }
    // Of a set of processes, whose size nobody knows, the key goes.
    const std::string set = "global_process_set_hash_7f";
    EXPECT_EQ(put(set + "/0", "a"), 200);
    EXPECT_EQ(put(set + "/1", "b"), 200);
    EXPECT_EQ(ask("DELETE", path(set + "/0")).status, 200);
    EXPECT_EQ(get(set + "/0").status, 404);
    EXPECT_EQ(get(set + "/1").body, "b");
    EXPECT_EQ(ask("DELETE", path("never/0")).status, 200);
}

TEST_F(RendezvousTest, OtherAttemptsAndOtherRequestsAreRefused) {
    const std::string port = std::to_string(port_);
    for (const std::string& other :
         {"/global/0"s, "/r-2:" + port + "/global/0", "/r-1:1/global/0"s, "/"s})
        EXPECT_EQ(ask("PUT", other, "v").status, 403) << other;
    EXPECT_EQ(ask("POST", path("global/0"), "v").status, 405);
    EXPECT_EQ(ask("GET", path("global")).status, 400);
    EXPECT_EQ(ask("GET", path("global/")).status, 400);
    EXPECT_EQ(ask("GET", path("global/0/1")).status, 400);
    EXPECT_EQ(get("global/0").status, 404) << "nothing was kept";
}

TEST_F(RendezvousTest, AValueThatIsTooLargeIsRefusedBeforeItComes) {
    const UniqueFd connection = connection_to(port_);
    put_all(connection.get(), "PUT " + path("global/0") + " HTTP/1.1\r\nContent-Length: " +
                                  std::to_string(kRendezvousValueMax + 1) + "\r\n\r\n");
    EXPECT_EQ(answer_in(all_of(connection.get())).status, 413);
    const UniqueFd endless = connection_to(port_);
    put_all(endless.get(), "GET /" + std::string(kRendezvousHeadMax, 'x'));
    EXPECT_EQ(answer_in(all_of(endless.get())).status, 431);
}

TEST_F(RendezvousTest, AllTogetherIsBounded) {
    const std::string value(kRendezvousValueMax, 'v');
    const auto whole = static_cast<int>(kRendezvousBytesMax / kRendezvousValueMax);
    for (int i = 0; i < whole - 1; ++i) ASSERT_EQ(put("s/" + std::to_string(i), value), 200) << i;
    EXPECT_EQ(put("s/last", value), 507);
    EXPECT_EQ(get("s/0").body, value) << "what is there stays";
    EXPECT_EQ(ask("DELETE", path("s/0")).status, 200);
    EXPECT_EQ(put("s/last", value), 200) << "what was given back is free again";
}

TEST_F(RendezvousTest, ConnectionsThatSayNothingShutNobodyOut) {
    EXPECT_EQ(put("global/0", "v"), 200);
    std::vector<UniqueFd> silent;
    for (int i = 0; i < 3 * kRendezvousConnectionsMax; ++i) silent.push_back(connection_to(port_));
    EXPECT_EQ(get("global/0").body, "v");
}

TEST_F(RendezvousTest, ARequestMayComeByteByByte) {
    EXPECT_EQ(put("global/0", "v"), 200);
    const UniqueFd connection = connection_to(port_);
    for (const char c : "GET " + path("global/0") + " HTTP/1.1\r\n\r\n")
        put_all(connection.get(), std::string(1, c));
    EXPECT_EQ(answer_in(all_of(connection.get())).body, "v");
}

TEST_F(RendezvousTest, APortThatIsTakenIsSaid) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const UniqueFd read_end(ends[0]);
    const UniqueFd write_end(ends[1]);
    EXPECT_EQ(open(write_end.get()), nullptr);
    char text[256] = {};
    ASSERT_GT(read(read_end.get(), text, sizeof text - 1), 0);
    EXPECT_EQ(text, "tune: hvd.init() will fail: cannot listen on port " + std::to_string(port_) +
                        ": another program does\n");
}

TEST_F(RendezvousTest, OnlyTheMachineWithRankZeroKeepsIt) {
    for (std::string& variable : variables_)
        if (variable == "HOROVOD_RANK=0") variable = "HOROVOD_RANK=2";
    EXPECT_EQ(open(), nullptr);
}

}  // namespace
}  // namespace tune::worker
