// What it costs that a request says who sends it: log-metric with a token beside log-metric
// without, in turns on one server: the owner's, one of scope agent, those of attempts, each for its
// own run; and on a server with users that runs beside it with a user's name and password, who may
// log to that one experiment, and with that user's token. The disk's speed changes by a third from
// one second to the next, so that each turn is compared with the two without that lie around it,
// and the middle of all such shares is printed.
//   auth_bench [ROUNDS]     of five seconds each, default 20

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr std::size_t kClients = 16;
constexpr double kTurn_s = 0.5;

/// `request` with one more header line.
std::string with_header(std::string request, const std::string& line) {
    return request.insert(request.find("\r\n") + 2, line);
}

std::string bearer(const Json& secret) {
    return "Authorization: Bearer " + secret.get<std::string>() + "\r\n";
}

/// The answer to a POST with these header lines; `path` as in "/api/2.0/tune/tokens".
Json post_to(Connection& connection, const std::string& headers, const std::string& path,
             const Json& body) {
    const std::string text = body.dump();
    return Json::parse(connection.exchange(
        "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n" + headers +
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(text.size()) +
        "\r\n\r\n" + text));
}

/// Who logs: a run and header lines for each client, and what each turn gave.
struct Side {
    std::string name;
    const Server& server;
    std::vector<std::string> runs;
    std::vector<std::string> headers;
    std::vector<double> rates = {};
    int step = 0;

    void take_turn() {
        std::size_t answered = 0;
        const int first = step;
        int last = first;
        const auto begin = Clock::now();
        drive(
            server.port(), runs.size(),
            [&](std::size_t client, int turn) {
                last = std::max(last, first + turn);
                return with_header(metric_request(runs[client], first + turn), headers[client]);
            },
            [&](std::size_t, double) { ++answered; },
            [](double elapsed_s) { return elapsed_s >= kTurn_s; });
        step = last + 1;
        rates.push_back(static_cast<double>(answered) / seconds_since(begin));
    }
};

Side with_one_header(std::string name, const Server& server, std::vector<std::string> runs,
                     const std::string& header) {
    const std::vector<std::string> headers(runs.size(), header);
    return {std::move(name), server, std::move(runs), headers};
}

std::vector<std::string> runs_of(Connection& connection, const std::string& headers,
                                 const Json& experiment) {
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < kClients; ++i)
        runs.push_back(post_to(connection, headers, "/api/2.0/mlflow/runs/create",
                               experiment)["run"]["info"]["run_id"]
                           .get<std::string>());
    return runs;
}

/// Trials that are asked for, each with its run and its attempt's token.
Side attempts_of(const Server& server, Connection& connection) {
    const std::string owner = server.authorization();
    const std::string studies = "/api/2.0/tune/studies";
    static_cast<void>(post_to(connection, owner, studies,
                              {{"name", "bench"},
                               {"metric", {{"name", "score"}}},
                               {"space", {{"x", {{"float", {0, 1}}}}}},
                               {"budget", {{"trials", kClients}}}}));
    const Json asked =
        post_to(connection, owner, studies + "/bench/ask", {{"count", kClients}})["trials"];
    Side side{"an attempt's token", server, {}, {}};
    for (const Json& trial : asked) {
        side.runs.push_back(trial["run_id"].get<std::string>());
        side.headers.push_back(bearer(trial["token"]));
    }
    require(side.runs.size() == kClients, "not all trials were asked for");
    return side;
}

void measure(const fs::path& bin_dir, int rounds) {
    // base64 of "bench:a long password"
    const std::string user = "Authorization: Basic YmVuY2g6YSBsb25nIHBhc3N3b3Jk\r\n";
    const Server open_server(bin_dir);
    const Server user_server(bin_dir,
                             {"--auth", "basic", "--default-permission", "NO_PERMISSIONS"});
    Connection open(open_server.port());
    Connection users(user_server.port());
    const std::string owner = open_server.authorization();
    const Json agent = post_to(open, owner, "/api/2.0/tune/tokens", {{"scope", "agent"}});
    const std::vector<std::string> runs = runs_of(open, owner, {{"experiment_id", "0"}});
    static_cast<void>(post_to(users, user_server.authorization(), "/api/2.0/mlflow/users/create",
                              {{"username", "bench"}, {"password", "a long password"}}));
    const Json experiment =
        post_to(users, user, "/api/2.0/mlflow/experiments/create", {{"name", "bench"}});
    const std::vector<std::string> own = runs_of(users, user, experiment);
    const Json token =
        post_to(users, user, "/api/2.0/tune/users/current/tokens", {{"scope", "user"}});
    std::vector<Side> sides;
    sides.push_back(with_one_header("", open_server, runs, ""));
    sides.push_back(with_one_header("the owner's token", open_server, runs, owner));
    sides.push_back(
        with_one_header("an agent's token", open_server, runs, bearer(agent["secret"])));
    sides.push_back(attempts_of(open_server, open));
    sides.push_back(with_one_header("a user's name and password", user_server, own, user));
    sides.push_back(with_one_header("a user's token", user_server, own, bearer(token["secret"])));
    std::vector<std::vector<double>> shares(sides.size());
    Side& without = sides.front();
    without.take_turn();
    for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 1; i < sides.size(); ++i) {
            sides[i].step = std::max(sides[i].step, without.step);
            sides[i].take_turn();
            without.step = std::max(sides[i].step, without.step);
            without.take_turn();
            const std::size_t last = without.rates.size() - 1;
            shares[i].push_back(2 * sides[i].rates.back() /
                                (without.rates[last - 1] + without.rates[last]));
        }
    for (std::size_t i = 1; i < sides.size(); ++i)
        report(("log-metric with " + sides[i].name + ", share of the rate without").c_str(),
               quantile(shares[i], 0.5), "", "higher", 0.95);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench([&] {
        const fs::path bin_dir = fs::absolute(fs::path(argv[0])).parent_path();
        const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
        measure(bin_dir, rounds);
    });
}
