// Removing a run of 6.5 million points for good, and what other writers notice of it.
//   gc_bench [POINTS]

#include <future>

#include "tests/bench/tracker/http_load.h"

namespace {

using namespace tune::bench;

constexpr int kRows = 1'000;
constexpr std::size_t kWriters = 8;

std::string authorization;  // set when the server runs

std::string tune_request(const char* method, const std::string& path, const std::string& body) {
    return std::string(method) + " /api/2.0/tune/" + path +
           " HTTP/1.1\r\nHost: 127.0.0.1:5000\r\n" + authorization +
           "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

std::string deleted_run(Connection& connection, int points) {
    const std::string run = create_run(connection, "0");
    for (int batch = 0; batch * kRows < points; ++batch)
        connection.exchange(batch_request(run, batch, kRows));
    connection.exchange(post("runs/delete", R"({"run_id": ")" + run + R"("})"));
    return run;
}

/// Collects all garbage; the job's result.
Json collect(Connection& connection) {
    Json job = Json::parse(
        connection.exchange(tune_request("POST", "gc", R"({"older_than_ms": 0})")))["job"];
    while (job["is_running"].get<bool>())
        job = Json::parse(connection.exchange(tune_request(
            "GET", "job?after=" + std::to_string(job["version"].get<std::int64_t>()), "")))["job"];
    require(job.contains("result"), job.dump());
    return job["result"];
}

/// Times of log-metric of eight writers until `is_over`.
std::vector<double> write_until(std::uint16_t port, const std::vector<std::string>& runs,
                                int first_step, const std::function<bool(double)>& is_over) {
    std::vector<double> times;
    drive(
        port, runs.size(),
        [&](std::size_t client, int step) {
            return metric_request(runs[client], first_step + step);
        },
        [&](std::size_t, double ms) { times.push_back(ms); }, is_over);
    return times;
}

void measure(const fs::path& bin_dir, int points) {
    const Server server(bin_dir);
    authorization = server.authorization();
    Connection connection(server.port());
    std::vector<std::string> runs;
    for (std::size_t i = 0; i < kWriters; ++i) runs.push_back(create_run(connection, "0"));
    deleted_run(connection, points);
    const double before_mb = server.memory_mb();
    server.reset_peak();
    const auto begin = Clock::now();
    const Json result = collect(connection);
    report("gc of a run of 6,500,000 points", seconds_since(begin), "s", "lower", 1);
    report("gc of a run of 6,500,000 points, growth of memory",
           server.memory_mb("VmHWM:") - before_mb, "MB", "lower", 50);
    require(result["metric_points"].get<int>() == points, result.dump());
    require(result["free_bytes"].get<std::int64_t>() == 0, result.dump());

    deleted_run(connection, points);
    const auto quiet =
        write_until(server.port(), runs, 0, [](double elapsed_s) { return elapsed_s >= 2; });
    std::future<void> collector = std::async(std::launch::async, [&] {
        Connection own(server.port());
        collect(own);
    });
    const auto is_over = [&](double) {
        return collector.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    };
    const auto during = write_until(server.port(), runs, 10'000'000, is_over);
    collector.get();
    report("log-metric, 8 clients, p99", quantile(quiet, 0.99), "ms", "lower", 10);
    report("log-metric, 8 clients, p99 during gc", quantile(during, 0.99), "ms", "lower", 10);
}

}  // namespace

int main(int argc, char** argv) {
    return run_bench([&] {
        measure(fs::absolute(fs::path(argv[0])).parent_path(),
                argc > 1 ? std::atoi(argv[1]) : 6'500'000);
    });
}
