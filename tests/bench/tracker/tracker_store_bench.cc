// The store without HTTP: durable writes, batches, searches, reads of history, opening. One JSON
// line a figure on stdout. Usage: tracker_store_bench [DIRECTORY]; the directory decides which disk
// is measured (default: a new one under the temporary directory) and must be empty.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "base/json.h"
#include "tracker/store/store.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;
using Timer = std::chrono::steady_clock;

double seconds_since(Timer::time_point start) {
    return std::chrono::duration<double>(Timer::now() - start).count();
}

template <class T>
T must(Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "tracker_store_bench: %s\n", result.error().text().c_str());
    std::exit(1);
}

void report(const std::string& name, double value, const char* unit, const char* better,
            double target) {
    const Json line = {
        {"name", name}, {"value", value}, {"unit", unit}, {"better", better}, {"target", target}};
    std::printf("%s\n", to_text(line).c_str());
    std::fflush(stdout);
}

std::unique_ptr<Store> open_store(const fs::path& directory) {
    StoreOptions options;
    options.directory = directory;
    return must(Store::open(options));
}

std::string create_run(Store& store, ExperimentId experiment_id) {
    const Outcome outcome = must(store.execute(CreateRun{.experiment_id = experiment_id}));
    return std::get<Run>(outcome).info.run_id;
}

/// Each submitter waits for its answer before it sends the next metric, as an HTTP client does.
void log_metrics_durably(Store& store, int submitter_count, double target) {
    constexpr int kEach = 5'000;
    std::vector<std::string> runs;
    for (int i = 0; i < submitter_count; ++i) runs.push_back(create_run(store, 0));
    const auto start = Timer::now();
    std::vector<std::thread> threads;
    for (const std::string& run : runs)
        threads.emplace_back([&store, &run] {
            for (int i = 0; i < kEach; ++i)
                must(store.execute(LogMetric{run, {"loss", 1.0 / (i + 1), 1000 + i, i}}));
        });
    for (std::thread& thread : threads) thread.join();
    report("store: log-metric, " + std::to_string(submitter_count) + " submitters, durable",
           kEach * submitter_count / seconds_since(start), "1/s", "higher", target);
}

/// As a server sees it: completions instead of blocked threads, `in_flight` commands outstanding.
void log_metrics_by_completion(Store& store, int in_flight, double target) {
    constexpr int kTotal = 200'000;
    std::vector<std::string> runs;
    for (int i = 0; i < in_flight; ++i) runs.push_back(create_run(store, 0));
    std::counting_semaphore<> done(0);
    std::atomic<int> sent = in_flight;
    std::function<void(int, int)> send = [&](int client, int step) {
        store.submit(LogMetric{runs[static_cast<std::size_t>(client)], {"loss", 0.5, step, step}},
                     [&, client, step](Result<Outcome> outcome) {
                         must(std::move(outcome));
                         if (sent.fetch_add(1) < kTotal)
                             send(client, step + 1);
                         else
                             done.release();
                     });
    };
    const auto start = Timer::now();
    for (int i = 0; i < in_flight; ++i) send(i, 0);
    for (int i = 0; i < in_flight; ++i) done.acquire();
    report("store: log-metric, " + std::to_string(in_flight) + " in flight, durable",
           kTotal / seconds_since(start), "1/s", "higher", target);
}

void log_batches(Store& store, int key_count, double target) {
    constexpr int kBatches = 500;
    constexpr int kRows = 1'000;
    const std::string run = create_run(store, 0);
    const auto start = Timer::now();
    for (int batch = 0; batch < kBatches; ++batch) {
        LogBatch command{.run_id = run};
        command.metrics.reserve(kRows);
        for (int i = 0; i < kRows; ++i) {
            const int step = batch * kRows / key_count + i / key_count;
            command.metrics.push_back({"metric_" + std::to_string(i % key_count), 0.1 * i,
                                       1'700'000'000'000 + step, step});
        }
        must(store.execute(std::move(command)));
    }
    report("store: log-batch of 1,000 rows over " + std::to_string(key_count) + " keys, one client",
           kBatches * static_cast<double>(kRows) / seconds_since(start), "rows/s", "higher",
           target);
}

ExperimentId fill_experiment(Store& store, int run_count) {
    const Outcome created = must(store.execute(CreateExperiment{.name = "search"}));
    const ExperimentId id = std::get<ExperimentId>(created);
    for (int i = 0; i < run_count; ++i) {
        const std::string run = create_run(store, id);
        LogBatch batch{.run_id = run};
        for (int k = 0; k < 10; ++k) {
            batch.metrics.push_back(
                {"metric_" + std::to_string(k), (i * 7919 + k) % 1000 / 1000.0, 1, 1});
            batch.params.push_back({"param_" + std::to_string(k), std::to_string(i % 10)});
            batch.tags.push_back({"tag_" + std::to_string(k), "value " + std::to_string(i)});
        }
        must(store.execute(std::move(batch)));
    }
    return id;
}

double median_ms(int rounds, const std::function<void()>& work) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        const auto start = Timer::now();
        work();
        times.push_back(seconds_since(start) * 1e3);
    }
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    return times[static_cast<std::size_t>(rounds / 2)];
}

void search(Store& store) {
    const ExperimentId id = fill_experiment(store, 1'000);
    const SearchRuns filtered{.experiment_ids = {id},
                              .filter = "metrics.metric_1 < 0.5 AND params.param_2 != '3'",
                              .order_by = {"metrics.metric_3 DESC"},
                              .max_results = 50};
    report("store: runs/search, filter and order, 50 of 1,000 runs, p50",
           median_ms(200, [&] { must(store.search_runs(filtered)); }), "ms", "lower", 1);
    const SearchRuns first_page{.experiment_ids = {id}, .max_results = 50};
    report("store: runs/search, first 50 of 1,000 runs, p50",
           median_ms(200, [&] { must(store.search_runs(first_page)); }), "ms", "lower", 1);
    const SearchRuns all{.experiment_ids = {id}, .max_results = 1'000};
    report("store: runs/search, page of 1,000 full runs, p50",
           median_ms(20, [&] { must(store.search_runs(all)); }), "ms", "lower", 15);
}

void read_history(Store& store) {
    constexpr int kPoints = 1'000'000;
    const std::string run = create_run(store, 0);
    for (int i = 0; i < kPoints; i += 1'000) {
        LogBatch batch{.run_id = run};
        for (int k = 0; k < 1'000; ++k) batch.metrics.push_back({"long", 0.5 * k, i + k, i + k});
        must(store.execute(std::move(batch)));
    }
    const std::vector<std::string> runs = {run};
    report("store: series of 1,000,000 points in 1,000 buckets, p50",
           median_ms(10, [&] { must(store.series(runs, "long", 1'000)); }), "ms", "lower", 50);
    report("store: metric history, first 1,000 of 1,000,000 points, p50",
           median_ms(50, [&] { must(store.metric_history(run, "long", 1'000)); }), "ms", "lower",
           1);
    report(
        "store: bulk-interval sample of 2,500 of 1,000,000 points, p50",
        median_ms(10, [&] { must(store.metric_history_bulk_interval(runs, "long", {}, 2'500)); }),
        "ms", "lower", 50);
}

void one_script(Store& store) {
    constexpr int kScripts = 1'000;
    const auto start = Timer::now();
    for (int i = 0; i < kScripts; ++i) {
        const std::string run = create_run(store, 0);
        must(store.execute(LogMetric{run, {"loss", 1, 1, 1}}));
        must(store.execute(UpdateRun{.run_id = run, .status = RunStatus::kFinished}));
    }
    report("store: create, log and finish a run, one client", kScripts / seconds_since(start),
           "1/s", "higher", 1'000);
}

void measure_all(const fs::path& directory) {
    {
        const std::unique_ptr<Store> store = open_store(directory);
        log_metrics_durably(*store, 1, 2'000);
        log_metrics_durably(*store, 16, 20'000);
        log_metrics_by_completion(*store, 16, 20'000);
        log_metrics_by_completion(*store, 256, 100'000);
        log_batches(*store, 1, 500'000);
        log_batches(*store, 10, 500'000);
        log_batches(*store, 1'000, 300'000);
        one_script(*store);
        search(*store);
        read_history(*store);
    }
    report("store: open an existing store, p50", median_ms(20, [&] { open_store(directory); }),
           "ms", "lower", 10);
}

}  // namespace
}  // namespace tune::tracker

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    const bool is_given = argc > 1;
    std::string pattern = (fs::temp_directory_path() / "tune-store-bench-XXXXXX").string();
    const fs::path directory = is_given ? fs::path(argv[1]) : fs::path(mkdtemp(pattern.data()));
    tune::tracker::measure_all(directory);
    if (!is_given) fs::remove_all(directory);
    return 0;
}
