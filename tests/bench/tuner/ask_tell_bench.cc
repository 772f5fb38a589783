// Ask and tell over REST, every answer on disk: one client, and 64 at once.
//   ask_tell_bench [TRIALS]     trials in the history before the first measurement, default 1000

#include <numeric>

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr int kMeasured = 300;
constexpr std::size_t kClients = 64;
constexpr double kConcurrent_s = 5;

std::string authorization;  // set when the server runs

std::string tune_post(std::string_view path, const Json& body) {
    const std::string text = body.dump();
    return "POST /api/2.0/tune/" + std::string(path) +
           " HTTP/1.1\r\nHost: 127.0.0.1:5000\r\nConnection: keep-alive\r\n" + authorization +
           "Content-Type: application/json\r\nContent-Length: " + std::to_string(text.size()) +
           "\r\n\r\n" + text;
}

/// As tpe_bench: 8 floats, one log float, one choice.
Json space() {
    Json space;
    for (int i = 0; i < 8; ++i) space["x" + std::to_string(i)] = {{"float", {0, 1}}};
    space["lr"] = {{"float", {1e-5, 0.1}}, {"log", true}};
    space["c"] = {{"choice", {"a", "b", "c"}}};
    return space;
}

double loss(const Json& params) {
    double sum = params["c"] == "b" ? 0 : 0.2;
    for (int i = 0; i < 8; ++i) {
        const double x = params["x" + std::to_string(i)].get<double>() - 0.3;
        sum += x * x;
    }
    return sum;
}

std::string tell_request(const Json& trial) {
    return tune_post("studies/b/tell", {{"number", trial["number"]},
                                        {"attempt", trial["attempt"]},
                                        {"value", loss(trial["params"])}});
}

double one_trial(Connection& connection, const std::string& ask) {
    const auto begin = Clock::now();
    const Json answer = Json::parse(connection.exchange(ask));
    const double ask_s = seconds_since(begin);
    const std::string tell = tell_request(answer["trials"][0]);
    const auto told = Clock::now();
    connection.exchange(tell);
    return (ask_s + seconds_since(told)) * 1000;
}

/// Each client asks and tells as fast as it is answered.
double concurrent_rate(std::uint16_t port, const std::string& ask) {
    struct Client {
        std::unique_ptr<Connection> connection;
        bool asks = true;
    };
    std::vector<Client> clients(kClients);
    const int loop = ::epoll_create1(0);
    for (std::size_t i = 0; i < clients.size(); ++i) {
        clients[i].connection = std::make_unique<Connection>(port);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = i;
        ::epoll_ctl(loop, EPOLL_CTL_ADD, clients[i].connection->fd(), &event);
        clients[i].connection->send(ask);
    }
    const auto begin = Clock::now();
    std::size_t told = 0;
    while (seconds_since(begin) < kConcurrent_s) {
        epoll_event events[kClients];
        const int ready = ::epoll_wait(loop, events, kClients, 1000);
        for (int i = 0; i < ready; ++i) {
            Client& client = clients[events[i].data.u64];
            if (!client.connection->receive()) continue;
            if (client.asks) {
                const Json answer = Json::parse(client.connection->body());
                client.connection->send(tell_request(answer["trials"][0]));
            } else {
                ++told;
                client.connection->send(ask);
            }
            client.asks = !client.asks;
        }
    }
    ::close(loop);
    return static_cast<double>(told) / seconds_since(begin);
}

void measure(const fs::path& bin_dir, int trials) {
    const Server server(bin_dir);
    authorization = server.authorization();
    Connection connection(server.port());
    connection.exchange(tune_post("studies", {{"name", "b"},
                                              {"metric", {{"name", "loss"}}},
                                              {"space", space()},
                                              {"sampler", {{"type", "tpe"}, {"seed", 1}}}}));
    const std::string ask = tune_post("studies/b/ask", Json::object());
    for (int i = 0; i < trials; ++i) one_trial(connection, ask);
    std::vector<double> times;
    for (int i = 0; i < kMeasured; ++i) times.push_back(one_trial(connection, ask));
    std::sort(times.begin(), times.end());
    const std::string at = " at " + std::to_string(trials) + " trials";
    report(("REST ask + tell, p50" + at).c_str(), times[kMeasured / 2], "ms", "lower", 1);
    report(("REST ask + tell, p99" + at).c_str(), times[kMeasured * 99 / 100], "ms", "lower", 5);
    std::sort(times.begin(), times.end());
    const double mean =
        std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    report("REST trials, one client", 1000 / mean, "1/s", "higher", 0);
    report("REST trials, 64 askers at once", concurrent_rate(server.port(), ask), "1/s", "higher",
           0.8 * 1000 / mean);
}

}  // namespace

int main(int argc, char** argv) {
    const fs::path self = fs::canonical("/proc/self/exe");
    measure(self.parent_path(), argc > 1 ? std::atoi(argv[1]) : 1000);
    return 0;
}
