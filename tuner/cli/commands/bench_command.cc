// `tune bench`: a quick look at log-metric, log-batch and ask/tell with the program's own client.
//
// Client and server share the machine, so the rates are lower bounds; docs/benchmarks.md has the
// measurements that compare with others. Each measurement writes at least once, however slow the
// disk is, and runs on a thread of its own so that Ctrl-C ends it at once.

#include "tuner/cli/commands/bench_command.h"
#include "base/text/number_text.h"

#include <linux/magic.h>
#include <sys/statfs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/version.h"
#include "tracker/client/client.h"
#include "tracker/client/mlflow_environment.h"
#include "tuner/cli/commands/bench_server.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/wait_line.h"

namespace tune::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kBatchRows = 1000;
constexpr int kTrialsMax = 1000;
constexpr int kParameters = 10;
/// A server that does not answer for so long is broken, not slow.
constexpr int kTimeout_ms = 30'000;

double since_ms(Clock::time_point begin) {
    return Milliseconds(Clock::now() - begin).count();
}

double quantile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + at, values.end());
    return values[static_cast<std::size_t>(at)];
}

/// One server under measurement, and what ends it early.
struct Bench {
    const BenchCommand& options;
    const BenchServer& server;
    WaitLine& line;
    const std::atomic<bool>& is_stopped;

    [[nodiscard]] bool goes_on(Clock::time_point begin) const {
        return !is_stopped && since_ms(begin) < options.seconds * 1000;
    }
    [[nodiscard]] Result<std::unique_ptr<tracker::Client>> client() const {
        return tracker::create_client(
            {.url = server.url(), .timeout_ms = kTimeout_ms, .retries = 0});
    }
};

Json metric_json(std::int64_t step) {
    return {{"key", "loss"},
            {"value", 1.0 / static_cast<double>(step + 1)},
            {"timestamp", SystemClock().now_ms()},
            {"step", step}};
}

Result<std::string> create_run(tracker::Client& client) {
    TUNE_TRY(answer, client.post("/api/2.0/mlflow/runs/create", {{"experiment_id", "0"}}));
    return text_of(answer["run"]["info"], "run_id");
}

/// One client: writes until the time is over, at least once, however slow the disk; the time of
/// each, in ms.
Result<std::vector<double>> log_metrics(const Bench& bench, Clock::time_point begin) {
    TUNE_TRY(client, bench.client());
    TUNE_TRY(run_id, create_run(*client));
    std::vector<double> times;
    std::int64_t step = 0;
    do {
        Json metric = metric_json(step++);
        metric["run_id"] = run_id;
        const auto sent = Clock::now();
        TUNE_TRY_VOID(client->post("/api/2.0/mlflow/runs/log-metric", metric));
        times.push_back(since_ms(sent));
    } while (bench.goes_on(begin));
    return times;
}

Result<Json> measure_log_metric(const Bench& bench) {
    bench.line.say("log-metric, " + std::to_string(bench.options.clients) + " clients");
    std::mutex mutex;
    std::vector<double> times;
    Result<void> error;
    const auto begin = Clock::now();
    std::vector<std::thread> clients;
    for (int i = 0; i < bench.options.clients; ++i)
        clients.emplace_back([&] {
            const Result<std::vector<double>> own = log_metrics(bench, begin);
            const std::lock_guard lock(mutex);
            if (own)
                times.insert(times.end(), own->begin(), own->end());
            else
                error = own.error();
        });
    for (std::thread& client : clients) client.join();
    if (!error) return error.error();
    const double per_s = static_cast<double>(times.size()) / since_ms(begin) * 1000;
    return Json{{"clients", bench.options.clients},
                {"per_s", per_s},
                {"p50_ms", quantile(times, 0.5)},
                {"p99_ms", quantile(times, 0.99)}};
}

Result<Json> measure_log_batch(const Bench& bench) {
    bench.line.say("log-batch of " + std::to_string(kBatchRows) + " metrics");
    TUNE_TRY(client, bench.client());
    TUNE_TRY(run_id, create_run(*client));
    std::vector<double> times;
    double spent_ms = 0;
    const auto begin = Clock::now();
    std::int64_t step = 0;
    do {
        Json metrics = Json::array();
        for (int i = 0; i < kBatchRows; ++i) metrics.push_back(metric_json(step++));
        const Json body = {{"run_id", run_id}, {"metrics", std::move(metrics)}};
        const auto sent = Clock::now();
        TUNE_TRY_VOID(client->post("/api/2.0/mlflow/runs/log-batch", body));
        times.push_back(since_ms(sent));
        spent_ms += times.back();
    } while (bench.goes_on(begin));
    const double rows = static_cast<double>(times.size()) * kBatchRows;
    return Json{{"rows_per_s", spent_ms > 0 ? rows / spent_ms * 1000 : 0},
                {"p50_ms", quantile(times, 0.5)},
                {"p99_ms", quantile(times, 0.99)}};
}

/// TPE on a sphere: what one trial of a study costs besides its training.
Result<Json> measure_ask_tell(const Bench& bench) {
    bench.line.say("ask and tell");
    TUNE_TRY(client, bench.client());
    Json study = {{"name", "bench"},
                  {"metric", {{"name", "loss"}, {"goal", "min"}}},
                  {"sampler", {{"type", "tpe"}, {"seed", 1}}}};
    for (int i = 0; i < kParameters; ++i)
        study["space"]["x" + std::to_string(i)] = {{"float", {0, 1}}};
    TUNE_TRY_VOID(client->post("/api/2.0/tune/studies", study));
    const std::string path = "/api/2.0/tune/studies/bench";
    std::vector<double> times;
    const auto begin = Clock::now();
    do {
        const auto sent = Clock::now();
        TUNE_TRY(asked, client->post(path + "/ask", {{"count", 1}}));
        const Json& trial = asked["trials"][0];
        double loss = 0;
        for (const Json& x : trial["params"])
            loss += (x.get<double>() - 0.3) * (x.get<double>() - 0.3);
        TUNE_TRY_VOID(client->post(
            path + "/tell",
            {{"number", trial["number"]}, {"attempt", trial["attempt"]}, {"value", loss}}));
        times.push_back(since_ms(sent));
    } while (times.size() < kTrialsMax && bench.goes_on(begin));
    return Json{{"trials", times.size()},
                {"parameters", kParameters},
                {"p50_ms", quantile(times, 0.5)},
                {"p99_ms", quantile(times, 0.99)}};
}

Result<Json> measure(const Bench& bench, Json stats) {
    TUNE_TRY(log_metric, measure_log_metric(bench));
    TUNE_TRY(log_batch, measure_log_batch(bench));
    TUNE_TRY(ask_tell, measure_ask_tell(bench));
    stats["log_metric"] = std::move(log_metric);
    stats["log_batch"] = std::move(log_batch);
    stats["ask_tell"] = std::move(ask_tell);
    stats["memory_bytes"] = bench.server.memory_bytes();
    return stats;
}

/// Measures on a thread of its own; nothing when a signal ended it.
Result<std::optional<Json>> measure_until_signal(const BenchCommand& options,
                                                 const BenchServer& server, const Json& stats,
                                                 Interrupts& interrupts) {
    std::atomic<bool> is_stopped = false;
    std::atomic<bool> is_done = false;
    std::optional<Result<Json>> measured;
    WaitLine line("starting");
    std::thread worker([&] {
        measured = measure({options, server, line, is_stopped}, stats);
        is_done = true;
        interrupts.wake();
    });
    while (!is_done && !is_stopped)
        if (interrupts.wait(-1) == Interrupts::Event::kSignal) is_stopped = true;
    worker.join();
    if (is_stopped) return std::optional<Json>();
    if (!*measured) return measured->error();
    return std::optional<Json>(std::move(*measured).value());
}

std::string number_text(double value, const char* format) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// "41,800".
std::string whole_text(double value) {
    const std::string digits = number_text(value, "%.0f");
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
        text += digits[i];
    }
    return text;
}

std::string megabytes_text(const Json& bytes) {
    return number_text(bytes.get<double>() / 1e6, "%.0f MB");
}

std::string stats_text(const Json& stats) {
    Table table;
    table.column("measured");
    for (const char* name : {"result", "half within", "99 of 100 within"})
        table.column(name, Table::Align::kRight);
    const auto row = [&](const std::string& what, const std::string& result, const Json& one) {
        table.row({what, result, number_text(one["p50_ms"], "%.2f ms"),
                   number_text(one["p99_ms"], "%.2f ms")});
    };
    table.row({"time to the first response", number_text(stats["start_ms"], "%.0f ms")});
    const Json& log_metric = stats["log_metric"];
    row("log-metric, " + to_text(log_metric["clients"]) + " clients",
        whole_text(log_metric["per_s"]) + "/s", log_metric);
    const Json& log_batch = stats["log_batch"];
    row("log-batch of " + std::to_string(kBatchRows) + " metrics, 1 client",
        whole_text(log_batch["rows_per_s"]) + " rows/s", log_batch);
    const Json& ask_tell = stats["ask_tell"];
    row("ask + tell (tpe), " + to_text(ask_tell["parameters"]) + " parameters, 1 client",
        to_text(ask_tell["trials"]) + " trials", ask_tell);
    table.row({"memory at the start; at the end", megabytes_text(stats["memory_start_bytes"]) +
                                                      "; " +
                                                      megabytes_text(stats["memory_bytes"])});
    std::string text = table.text() + "Every write was on disk before its response, in " +
                       text_of(stats, "dir") + "; the clients share the " +
                       to_text(stats["processors"]) + " processors with the server.\n";
    if (stats["is_in_memory"] == true)
        text += "That folder is in memory. Use --dir DIR to measure a disk.\n";
    return text;
}

Result<int> bench(const BenchCommand& options, Interrupts& interrupts) {
    std::error_code missing;
    const std::filesystem::path dir = options.dir ? std::filesystem::path(*options.dir)
                                                  : std::filesystem::temp_directory_path(missing);
    if (missing)
        return Error{Code::kResourceDoesNotExist,
                     "there is no temporary folder; name one with --dir"};
    struct statfs system {};
    const bool is_in_memory = statfs(dir.c_str(), &system) == 0 && system.f_type == TMPFS_MAGIC;
    const auto begin = Clock::now();
    TUNE_TRY(server, BenchServer::start(dir));
    TUNE_TRY(client, tracker::create_client({.url = server->url(), .retries = 0}));
    TUNE_TRY_VOID(client->get("/api/2.0/tune/studies"));
    const Json stats = {
        {"version", kVersion},          {"dir", dir.string()},
        {"is_in_memory", is_in_memory}, {"processors", std::thread::hardware_concurrency()},
        {"start_ms", since_ms(begin)},  {"memory_start_bytes", server->memory_bytes()}};
    const auto measured = measure_until_signal(options, *server, stats, interrupts);
    if (!measured) {
        Error error = measured.error();
        if (const std::string words = server->last_words(); !words.empty())
            error.message += "; the server's last output: " + words;
        return error;
    }
    if (!*measured) return kExitInterrupted;
    if (options.json)
        print_json(**measured);
    else
        print(stats_text(**measured));
    return kExitOk;
}

}  // namespace

int run_bench(const BenchCommand& options) {
    Interrupts interrupts;
    const Result<int> code = bench(options, interrupts);
    return code ? *code : fail(code.error(), options.json);
}

}  // namespace tune::cli
