// A tracking server over HTTP with the requests that MLflow's clients send; prints JSON lines.
//
//   http_bench                                                ours, from the folder of this program
//   http_bench --peer NAME [--starts N] -- PROGRAM ARGUMENT...   another server; {port} and
//   {folder}
//                                                             are filled in (peers.py does this)
//   --parts write,search,page                                 before the --: some of the
//   measurements
//
// What a server refuses is a line with "missing": the reason instead of a value; the rest is
// measured, and the server is stopped in any case.
//
// The load generator is one thread on an epoll loop, so that on a small machine most of the time
// is the server's. Every connection is kept alive and has one request under way. The data lie
// beside the programs, on a disk: log-metric is durable (an answered write has been fsynced).

#include <future>

#include "tests/bench/tracker/http_load.h"

namespace {

namespace fs = std::filesystem;
using tune::bench::Clock;
using tune::bench::Connection;
using tune::bench::free_port;
using tune::bench::fresh_folder;
using tune::bench::Json;
using tune::bench::require;
using tune::bench::seconds_since;
using tune::bench::ServerProcess;

/// What to measure.
struct Subject {
    std::string peer;                  // empty: ours
    std::vector<std::string> command;  // with {port} and {folder}
    fs::path folder;                   // scratch, removed at the end
    int start_count = 5;
    std::string parts = "write,search,page";
};

std::string peer_name;

/// Prints what `measure` gives, or why there is nothing. `target` 0: the aim is a ratio to a peer,
/// which run.py knows.
void report(const char* name, const std::function<double()>& measure, const char* unit,
            const char* better, double target) {
    Json line = {{"name", name}, {"unit", unit}, {"better", better}};
    try {
        line["value"] = measure();
    } catch (const tune::bench::Refusal& refusal) {
        line["missing"] = refusal.what();
    }
    if (!peer_name.empty())
        line["peer"] = peer_name;
    else if (target > 0)
        line["target"] = target;
    // What a peer answers may be no UTF-8.
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
    std::fflush(stdout);
}

/// Plain answers: not every peer leaves small ones uncompressed.
std::string post(std::string_view path, std::string_view body) {
    return tune::bench::post(path, body, "identity");
}

std::string filled(std::string text, std::string_view name, const std::string& value) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
        text.replace(at, name.size(), value);
    return text;
}

/// The subject's command with what stands for its port and folder.
std::vector<std::string> words_of(const Subject& subject, std::uint16_t port,
                                  const fs::path& folder) {
    std::vector<std::string> words;
    for (const std::string& word : subject.command)
        words.push_back(
            filled(filled(word, "{port}", std::to_string(port)), "{folder}", folder.string()));
    return words;
}

/// The server that is measured, on a folder of its own.
class Server : public ServerProcess {
public:
    explicit Server(const Subject& subject)
        : Server(subject, fresh_folder(subject.folder), free_port()) {}

    /// Memory of all processes of the server; pages that they share count once.
    [[nodiscard]] double memory_mb() const {
        double kb = 0;
        for (const auto& entry : fs::directory_iterator("/proc")) {
            const pid_t id = std::atoi(entry.path().filename().c_str());
            if (id > 0 && ::getsid(id) == pid()) kb += share_kb(entry.path() / "smaps_rollup");
        }
        return kb / 1024;
    }

private:
    Server(const Subject& subject, const fs::path& folder, std::uint16_t port)
        : ServerProcess(words_of(subject, port, folder), folder, port, subject.peer.empty()) {}

    static double share_kb(const fs::path& path) {
        std::ifstream rollup(path);
        std::string word;
        double kb = 0;
        while (rollup >> word)
            if (word == "Pss:") rollup >> kb;
        return kb;
    }
};

/// Keeps one request of `make(client, step)` under way on each of `client_count` connections;
/// answers per second.
double rate(std::uint16_t port, std::size_t client_count, double duration_s,
            const std::function<std::string(std::size_t, int)>& make) {
    std::vector<std::unique_ptr<Connection>> clients;
    std::vector<int> steps(client_count, 0);
    const int loop = ::epoll_create1(EPOLL_CLOEXEC);
    for (std::size_t i = 0; i < client_count; ++i) {
        clients.push_back(std::make_unique<Connection>(port));
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = i;
        ::epoll_ctl(loop, EPOLL_CTL_ADD, clients[i]->fd(), &event);
    }
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < client_count; ++i) clients[i]->send(make(i, steps[i]++));
    std::size_t answered = 0;
    std::size_t under_way = client_count;
    std::vector<epoll_event> events(client_count);
    bool is_over = false;
    while (under_way > 0) {
        const int count = ::epoll_wait(loop, events.data(), static_cast<int>(client_count), -1);
        is_over = is_over || seconds_since(begin) >= duration_s;
        for (int k = 0; k < count; ++k) {
            const std::size_t i = events[static_cast<std::size_t>(k)].data.u64;
            if (!clients[i]->receive()) continue;
            ++answered;
            if (is_over) {
                --under_way;
            } else {
                clients[i]->send(make(i, steps[i]++));
            }
        }
    }
    const double elapsed_s = seconds_since(begin);
    ::close(loop);
    return static_cast<double>(answered) / elapsed_s;
}

double log_metric_rate(std::uint16_t port) {
    constexpr std::size_t kClients = 16;
    Connection connection(port);
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < kClients; ++i) runs.push_back(create_run(connection, "0"));
    const auto make = [&](std::size_t client, int step) {
        // The client names the run twice, by its old name too.
        return post("runs/log-metric",
                    R"({"run_uuid": ")" + runs[client] + R"(", "run_id": ")" + runs[client] +
                        R"(", "key": "loss", "value": 0.5, "timestamp": )" +
                        std::to_string(step + 1) + R"(, "step": )" + std::to_string(step) + "}");
    };
    rate(port, kClients, 0.5, make);  // warm
    const auto later = [&](std::size_t client, int step) { return make(client, step + 1'000'000); };
    return rate(port, kClients, 5, later);
}

double log_batch_rate(std::uint16_t port) {
    constexpr int kRows = 1000;
    Connection connection(port);
    const std::string run = create_run(connection, "0");
    const auto make = [&](std::size_t, int batch) {
        std::string body = R"({"run_id": ")" + run + R"(", "metrics": [)";
        for (int i = 0; i < kRows; ++i) {
            const int step = batch * kRows + i;
            if (i > 0) body += ", ";
            body += R"({"key": "m)" + std::to_string(i % 10) + R"(", "value": )" +
                    std::to_string(i * 0.5) + R"(, "timestamp": )" + std::to_string(step + 1) +
                    R"(, "step": )" + std::to_string(step) + "}";
        }
        return post("runs/log-batch", body + "]}");
    };
    return rate(port, 1, 4, make) * kRows;
}

/// Runs `first`, `first` + `stride`, ... of those that make_runs() makes.
void make_some_runs(std::uint16_t port, const std::string& experiment, int first, int stride,
                    int run_count, int metric_count) {
    Connection connection(port);
    for (int i = first; i < run_count; i += stride) {
        Json batch = {{"run_id", create_run(connection, experiment, i + 1)}};
        batch["params"] = {{{"key", "lr"}, {"value", std::to_string(i)}}};
        for (int k = 0; k < metric_count; ++k)
            batch["metrics"].push_back({{"key", k == 0 ? "loss" : "m" + std::to_string(k)},
                                        {"value", (i * 7919) % 1000 / 1000.0},
                                        {"timestamp", 1},
                                        {"step", 0}});
        call(connection, "runs/log-batch", batch);
    }
}

/// Runs with `metric_count` metrics each; the experiment's id. By several clients: the slowest
/// peer makes ten in a second.
std::string make_runs(std::uint16_t port, const char* name, int run_count, int metric_count) {
    constexpr int kClients = 4;
    Connection connection(port);
    const std::string experiment =
        call(connection, "experiments/create", {{"name", name}})["experiment_id"]
            .get<std::string>();
    std::vector<std::future<void>> clients;
    for (int i = 0; i < kClients; ++i)
        clients.push_back(std::async(std::launch::async, make_some_runs, port, experiment, i,
                                     kClients, run_count, metric_count));
    for (std::future<void>& client : clients) client.get();
    return experiment;
}

/// Of `repeats` answers, or of those that come in 10 s. On a connection of its own: FastTrackML
/// answers 408 on one that was idle for some seconds.
double median_ms(std::uint16_t port, const std::string& request, int repeats) {
    Connection connection(port);
    std::vector<double> times;
    const auto start = Clock::now();
    for (int i = 0; i < repeats && seconds_since(start) < 10; ++i) {
        const auto begin = Clock::now();
        connection.exchange(request);
        times.push_back(seconds_since(begin) * 1000);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

double run_lives_rate(std::uint16_t port) {
    Connection connection(port);
    const auto begin = Clock::now();
    int count = 0;
    for (; seconds_since(begin) < 3; ++count) {
        const std::string run = create_run(connection, "0");
        call(connection, "runs/log-metric",
             {{"run_id", run}, {"key", "loss"}, {"value", 1}, {"timestamp", 1}});
        call(connection, "runs/update", {{"run_id", run}, {"status", "FINISHED"}, {"end_time", 2}});
    }
    return count / seconds_since(begin);
}

void measure_writes(const Server& server) {
    const std::uint16_t port = server.port();
    report(
        "server memory, idle", [&] { return server.memory_mb(); }, "MB", "lower", 20);
    report(
        "log-metric, 16 clients, durable", [&] { return log_metric_rate(port); }, "1/s", "higher",
        0);
    report(
        "log-batch of 1,000 metrics, one client", [&] { return log_batch_rate(port); }, "rows/s",
        "higher", 1'000'000);
    report(
        "create, log and finish a run (3 requests), one client",
        [&] { return run_lives_rate(port); }, "1/s", "higher", 1'000);
}

double filtered_search_ms(std::uint16_t port) {
    const Json query = {{"experiment_ids", {make_runs(port, "search", 1000, 1)}},
                        {"filter", "metrics.loss < 0.5"},
                        {"max_results", 50},
                        {"order_by", {"metrics.loss ASC"}}};
    return median_ms(port, post("runs/search", query.dump()), 200);
}

double whole_search_ms(std::uint16_t port) {
    const Json query = {{"experiment_ids", {make_runs(port, "full", 1000, 10)}},
                        {"max_results", 1000}};
    return median_ms(port, post("runs/search", query.dump()), 50);
}

void measure(const Subject& subject) {
    std::vector<double> starts;
    for (int i = 0; i < subject.start_count; ++i) starts.push_back(Server(subject).start_ms());
    std::sort(starts.begin(), starts.end());
    if (!starts.empty())
        report(
            "server start to first answer", [&] { return starts[starts.size() / 2]; }, "ms",
            "lower", 15);
    const Server server(subject);
    if (subject.parts.find("write") != std::string::npos) measure_writes(server);
    if (subject.parts.find("search") != std::string::npos)
        report(
            "runs/search, filter and order, 50 of 1,000 runs, p50",
            [&] { return filtered_search_ms(server.port()); }, "ms", "lower", 0.5);
    if (subject.parts.find("page") != std::string::npos)
        report(
            "runs/search, page of 1,000 full runs, p50",
            [&] { return whole_search_ms(server.port()); }, "ms", "lower", 6);
    report(
        "server memory after all of this", [&] { return server.memory_mb(); }, "MB", "lower", 25);
}

}  // namespace

int main(int argc, char** argv) {
    const fs::path bin_dir = fs::absolute(fs::path(argv[0])).parent_path();
    Subject subject;
    subject.folder = bin_dir;
    const bool has_tune = fs::exists(bin_dir / "tune");
    subject.command = {(bin_dir / (has_tune ? "tune" : "tracking_server")).string()};
    if (has_tune) subject.command.push_back("server");
    for (const char* word : {"--data", "{folder}/data", "--port", "{port}"})
        subject.command.push_back(word);
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string name = argv[i];
        if (name == "--peer") subject.peer = argv[i + 1];
        if (name == "--parts") subject.parts = argv[i + 1];
        if (name == "--starts") subject.start_count = std::atoi(argv[i + 1]);
        if (name != "--") continue;
        subject.command.assign(argv + i + 1, argv + argc);
        break;
    }
    peer_name = subject.peer;
    return tune::bench::run_bench([&] { measure(subject); });
}
