// What it costs that a request says who sends it: log-metric with a token beside log-metric
// without, in turns on one server, so that both meet the same disk and the same neighbours.
//   auth_bench [TURNS]     of two seconds each, default 10

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr std::size_t kClients = 16;
constexpr double kTurn_s = 2;

/// `request` with one more header line.
std::string with_header(std::string request, const std::string& line) {
    return request.insert(request.find("\r\n") + 2, line);
}

std::string scoped_authorization(const Server& server, Connection& connection) {
    const std::string body = R"({"scope": "agent"})";
    const std::string answer = connection.exchange(
        "POST /api/2.0/tune/tokens HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n" + server.authorization() +
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body);
    return "Authorization: Bearer " + Json::parse(answer)["secret"].get<std::string>() + "\r\n";
}

/// Answers per second.
double rate(const Server& server, const std::vector<std::string>& runs, int& step,
            const std::string& header) {
    std::size_t answered = 0;
    const int first = step;
    int last = first;
    const auto begin = Clock::now();
    drive(
        server.port(), runs.size(),
        [&](std::size_t client, int turn) {
            last = std::max(last, first + turn);
            return with_header(metric_request(runs[client], first + turn), header);
        },
        [&](std::size_t, double) { ++answered; },
        [](double elapsed_s) { return elapsed_s >= kTurn_s; });
    step = last + 1;
    return static_cast<double>(answered) / seconds_since(begin);
}

void measure(const fs::path& bin_dir, int turns) {
    const Server server(bin_dir);
    Connection connection(server.port());
    const std::vector<std::string> headers = {"", server.authorization(),
                                              scoped_authorization(server, connection)};
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < kClients; ++i) runs.push_back(create_run(connection, "0"));
    std::vector<std::vector<double>> rates(headers.size());
    int step = 0;
    for (int turn = 0; turn < turns; ++turn)
        for (std::size_t i = 0; i < headers.size(); ++i)
            rates[i].push_back(rate(server, runs, step, headers[i]));
    const double open = quantile(rates[0], 0.5);
    report("log-metric with the owner's token, share of the rate without",
           quantile(rates[1], 0.5) / open, "", "higher", 0.95);
    report("log-metric with an agent's token, share of the rate without",
           quantile(rates[2], 0.5) / open, "", "higher", 0.95);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench([&] {
        measure(fs::absolute(fs::path(argv[0])).parent_path(), argc > 1 ? std::atoi(argv[1]) : 10);
    });
}
