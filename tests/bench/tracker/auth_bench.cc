// What it costs that a request says who sends it: log-metric with a token beside log-metric
// without, in turns on one server, so that both meet the same disk and the same neighbours; and
// with a user's name and password, who may log to that one experiment, on a server with users that
// runs beside it.
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

/// The answer to a POST with these header lines.
Json post_as(Connection& connection, const std::string& headers, const std::string& path,
             const Json& body) {
    return Json::parse(connection.exchange(with_header(post(path, body.dump()), headers)));
}

/// Runs of an experiment that `user` made, by its login.
std::vector<std::string> runs_of_user(const Server& server, Connection& connection,
                                      const std::string& user) {
    post_as(connection, server.authorization(), "users/create",
            {{"username", "bench"}, {"password", "a long password"}});
    const Json experiment = post_as(connection, user, "experiments/create", {{"name", "bench"}});
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < kClients; ++i)
        runs.push_back(post_as(connection, user, "runs/create", experiment)["run"]["info"]["run_id"]
                           .get<std::string>());
    return runs;
}

void measure_users(const fs::path& bin_dir, int turns) {
    // base64 of "bench:a long password"
    const std::string user = "Authorization: Basic YmVuY2g6YSBsb25nIHBhc3N3b3Jk\r\n";
    const Server open_server(bin_dir);
    const Server server(bin_dir, {"--auth", "basic", "--default-permission", "NO_PERMISSIONS"});
    Connection open_connection(open_server.port());
    Connection connection(server.port());
    std::vector<std::string> open_runs;
    for (std::size_t i = 0; i < kClients; ++i)
        open_runs.push_back(create_run(open_connection, "0"));
    const std::vector<std::string> runs = runs_of_user(server, connection, user);
    std::vector<double> open_rates;
    std::vector<double> rates;
    int step = 0;
    for (int turn = 0; turn < turns; ++turn) {
        open_rates.push_back(rate(open_server, open_runs, step, ""));
        rates.push_back(rate(server, runs, step, user));
    }
    report("log-metric with a user's name and password, share of the rate without",
           quantile(rates, 0.5) / quantile(open_rates, 0.5), "", "higher", 0.95);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench([&] {
        const fs::path bin_dir = fs::absolute(fs::path(argv[0])).parent_path();
        const int turns = argc > 1 ? std::atoi(argv[1]) : 10;
        measure(bin_dir, turns);
        measure_users(bin_dir, turns);
    });
}
