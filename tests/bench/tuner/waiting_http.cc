// A real server on a folder of its own, one connection that logs and looks in turn, and two that
// ask and replay. The same rows as in the process: what they have more is the network's part.

#include "tests/bench/tuner/waiting_http.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr int kHttpMeasured = 2000;
constexpr int kHttpHistory = 600;
constexpr int kHttpAsked = 1000;

/// Requests to one server, with its token.
class Words {
public:
    explicit Words(std::string authorization) : authorization_(std::move(authorization)) {}

    [[nodiscard]] std::string post(const std::string& path, const Json& body) const {
        const std::string text = body.dump();
        return "POST /api/2.0/" + path + head() + "Content-Type: application/json\r\n" +
               "Content-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
    }
    [[nodiscard]] std::string get(const std::string& path) const {
        return "GET /api/2.0/" + path + head() + "\r\n";
    }

private:
    [[nodiscard]] std::string head() const {
        return " HTTP/1.1\r\nHost: 127.0.0.1:5000\r\nConnection: keep-alive\r\n" + authorization_;
    }
    std::string authorization_;
};

Json study(const std::string& name, const std::string& sampler) {
    Json space;
    for (int i = 0; i < 6; ++i) space["x" + std::to_string(i)] = {{"float", {0, 1}}};
    return {{"name", name},
            {"metric", {{"name", "loss"}}},
            {"space", space},
            {"sampler", {{"type", sampler}, {"seed", 1}}}};
}

double at(std::vector<double>& values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// The 99th percentile of log-metric.
double log_and_look(const Server& server, const Words& words, const std::string& run_id,
                    const std::string& when, const std::atomic<bool>& goes_on, double aim) {
    Connection connection(server.port());
    std::vector<double> writes;
    std::vector<double> looks;
    const std::string look = words.get("tune/studies/other");
    for (int i = 0; i < kHttpMeasured || goes_on; ++i) {
        const std::string log =
            words.post("mlflow/runs/log-metric",
                       {{"run_id", run_id}, {"key", when}, {"value", 1}, {"timestamp", i + 1}});
        auto begin = Clock::now();
        connection.exchange(log);
        writes.push_back(seconds_since(begin) * 1000);
        begin = Clock::now();
        connection.exchange(look);
        looks.push_back(seconds_since(begin) * 1000);
    }
    const double p99 = at(writes, 0.99);
    report(("HTTP: log-metric of another run p50, " + when).c_str(), at(writes, 0.5), "ms", "lower",
           0);
    report(("HTTP: log-metric of another run p99, " + when).c_str(), p99, "ms", "lower", aim);
    report(("HTTP: GET of another study p99, " + when).c_str(), at(looks, 0.99), "ms", "lower", 10);
    return p99;
}

}  // namespace

void measure_over_http(const std::filesystem::path& bin_dir) {
    const Server server(bin_dir);
    const Words words(server.authorization());
    Connection connection(server.port());
    connection.exchange(words.post("tune/studies", study("model", "gp")));
    connection.exchange(words.post("tune/studies", study("other", "random")));
    const Json other =
        Json::parse(connection.exchange(words.post("tune/studies/other/ask", {{"count", 10}})));
    const auto run_id = other["trials"][0]["run_id"].get<std::string>();
    const Json asked = Json::parse(
        connection.exchange(words.post("tune/studies/model/ask", {{"count", kHttpHistory}})));
    for (const Json& trial : asked["trials"])
        connection.exchange(
            words.post("tune/studies/model/tell", {{"number", trial["number"]},
                                                   {"attempt", trial["attempt"]},
                                                   {"value", trial["number"].get<int>() % 97}}));
    const std::atomic<bool> stops = false;
    const double alone = log_and_look(server, words, run_id, "alone", stops, 0);
    std::atomic<bool> goes_on = true;
    std::thread model([&] {
        std::thread replays([&] {
            Connection own(server.port());
            own.exchange(words.get("tune/studies/model/replay"));
        });
        Connection own(server.port());
        own.exchange(words.post("tune/studies/model/ask", {{"count", kHttpAsked}}));
        replays.join();
        goes_on = false;
    });
    log_and_look(server, words, run_id, "beside a model and a replay", goes_on, 2 * alone);
    model.join();
}
