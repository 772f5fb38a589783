// 64 clients with a mixed load: what each of them waits, and what the server holds afterwards.
//   mixed_bench [SECONDS]     default 60

#include <array>
#include <cstring>
#include <utility>

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr std::size_t kClients = 64;
constexpr int kSearchedRuns = 1'000;
constexpr int kBatchRows = 100;

enum Kind { kMetric, kBatch, kSearch, kGetRun, kHistory, kKinds };
constexpr std::array<const char*, kKinds> kNames = {"log-metric", "log-batch of 100", "search",
                                                    "get-run", "history of 10,000 points"};

/// Half of the clients log values; the others log batches and read.
Kind kind_of(std::size_t client) {
    if (client < 32) return kMetric;
    if (client < 44) return kBatch;
    if (client < 52) return kSearch;
    return client < 58 ? kGetRun : kHistory;
}

std::string get(const std::string& path) {
    return "GET /api/2.0/mlflow/" + path + " HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n\r\n";
}

/// Runs to search in; the experiment's id.
std::string fill(Connection& connection) {
    const std::string experiment =
        call(connection, "experiments/create", {{"name", "mixed"}})["experiment_id"]
            .get<std::string>();
    for (int i = 0; i < kSearchedRuns; ++i) {
        Json batch = {{"run_id", create_run(connection, experiment, i + 1)}};
        for (int k = 0; k < 10; ++k)
            batch["metrics"].push_back({{"key", "m" + std::to_string(k)},
                                        {"value", (i * 7919 + k) % 1000 / 1000.0},
                                        {"timestamp", 1},
                                        {"step", 0}});
        call(connection, "runs/log-batch", batch);
    }
    return experiment;
}

/// The quantile `part` of the server's own times of log-metric, from its /metrics: from a request's
/// headers to its answer, without the generator's waiting for a processor. Linear within a bucket.
double server_quantile(Connection& connection, double part) {
    const std::string page =
        connection.exchange("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n\r\n");
    constexpr std::string_view kBucket =
        "tune_http_request_seconds_bucket{group=\"runs/log-metric\",le=\"";
    std::vector<std::pair<double, double>> counts;  // seconds, requests that took no longer
    for (std::size_t at = page.find(kBucket); at != std::string::npos;
         at = page.find(kBucket, at + 1)) {
        const char* const bound = page.c_str() + at + kBucket.size();
        counts.emplace_back(std::strtod(bound, nullptr),
                            std::strtod(std::strchr(bound, '}') + 1, nullptr));
    }
    require(!counts.empty(), page);
    const double wanted = part * counts.back().second;
    std::pair<double, double> low = {0, 0};
    for (const auto& high : counts) {
        if (high.second >= wanted)
            return low.first +
                   (high.first - low.first) * (wanted - low.second) / (high.second - low.second);
        low = high;
    }
    return low.first;
}

void measure(const fs::path& bin_dir, double duration_s) {
    const Server server(bin_dir);
    report("idle server, memory", server.memory_mb(), "MB", "lower", 20);
    Connection connection(server.port());
    const std::string experiment = fill(connection);
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < kClients; ++i) runs.push_back(create_run(connection, "0"));
    const std::string read_run = create_run(connection, "0");
    for (int batch = 0; batch < 100; ++batch)
        connection.exchange(batch_request(read_run, batch, 1'000));
    const std::string search = post("runs/search", Json{{"experiment_ids", {experiment}},
                                                        {"filter", "metrics.m1 < 0.5"},
                                                        {"max_results", 50},
                                                        {"order_by", {"metrics.m3 ASC"}}}
                                                       .dump());
    const auto make = [&](std::size_t client, int step) -> std::string {
        switch (kind_of(client)) {
            case kMetric: return metric_request(runs[client], step);
            case kBatch: return batch_request(runs[client], step, kBatchRows);
            case kSearch: return search;
            case kGetRun: return get("runs/get?run_id=" + read_run);
            default: return get("metrics/get-history?run_id=" + read_run + "&metric_key=m1");
        }
    };
    std::array<std::vector<double>, kKinds> times;
    const auto done = [&](std::size_t client, double ms) { times[kind_of(client)].push_back(ms); };
    const auto begin = Clock::now();
    drive(server.port(), kClients, make, done, [&](double s) { return s >= duration_s; });
    const double elapsed_s = seconds_since(begin);
    for (int kind = 0; kind < kKinds; ++kind) {
        const std::string name = std::string("64 clients mixed: ") + kNames[kind];
        const std::vector<double>& each = times[kind];
        report((name + ", p50").c_str(), quantile(each, 0.5), "ms", "lower",
               kind == kMetric ? 5 : 50);
        report((name + ", p99").c_str(), quantile(each, 0.99), "ms", "lower",
               kind == kMetric ? 10 : 100);
        report((name + ", rate").c_str(), static_cast<double>(each.size()) / elapsed_s, "1/s",
               "higher", 1);
    }
    for (const auto& [name, part] : {std::pair("p50", 0.5), {"p99", 0.99}})
        report(("64 clients mixed: log-metric at the server, " + std::string(name)).c_str(),
               server_quantile(connection, part) * 1000, "ms", "lower", part > 0.9 ? 10 : 5);
    report("64 clients mixed: memory afterwards", server.memory_mb(), "MB", "lower", 100);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench([&] {
        measure(fs::absolute(fs::path(argv[0])).parent_path(), argc > 1 ? std::atof(argv[1]) : 60);
    });
}
