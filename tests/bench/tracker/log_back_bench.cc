// log-batch of 1,000 points, one client, where time runs forward, and where it does not: a training
// that resumed from a checkpoint and logs steps again, ranks whose clocks differ. One JSON line a
// figure on stdout. Usage: log_back_bench [DIRECTORY]; the directory decides which disk is measured
// (default: a new one under the temporary directory).

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "tracker/store/store.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;
using Timer = std::chrono::steady_clock;

constexpr int kRows = 1'000;
constexpr int kBatches = 200;
constexpr std::int64_t kBegin_ms = 1'700'000'000'000;

template <class T>
T must(Result<T> result) {
    if (result) return std::move(*result);
    std::fprintf(stderr, "log_back_bench: %s\n", result.error().text().c_str());
    std::exit(1);
}

/// The step of the i-th point of a metric.
using StepOf = std::function<std::int64_t(std::int64_t i)>;

/// Milliseconds of the median batch.
double log_batches(Store& store, const std::string& run, int key_count, double factor,
                   const StepOf& step_of) {
    std::vector<double> times;
    for (int batch = 0; batch < kBatches; ++batch) {
        LogBatch command{.run_id = run};
        command.metrics.reserve(kRows);
        for (int row = 0; row < kRows; ++row) {
            const std::int64_t step =
                step_of((static_cast<std::int64_t>(batch) * kRows + row) / key_count);
            command.metrics.push_back({"metric_" + std::to_string(row % key_count), factor * row,
                                       kBegin_ms + 10 * step, step});
        }
        const auto start = Timer::now();
        must(store.execute(std::move(command)));
        times.push_back(std::chrono::duration<double>(Timer::now() - start).count() * 1e3);
    }
    std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
    return times[kBatches / 2];
}

void report(const std::string& name, int key_count, double value, double target) {
    const Json line = {{"name", "store: log-batch of 1,000 points over " +
                                    std::to_string(key_count) + " keys, " + name + ", p50"},
                       {"value", value},
                       {"unit", "ms"},
                       {"better", "lower"},
                       {"target", target}};
    std::printf("%s\n", to_text(line).c_str());
    std::fflush(stdout);
}

void measure(Store& store, int key_count) {
    const std::int64_t length = std::int64_t{kBatches} * kRows / key_count;
    const Outcome made = must(store.execute(CreateRun{.experiment_id = 0}));
    const std::string run = std::get<Run>(made).info.run_id;
    const double forward =
        log_batches(store, run, key_count, 0.1, [](std::int64_t i) { return i; });
    report("forward", key_count, forward, 2);
    // Other values at times and steps that are there.
    const double resumed =
        log_batches(store, run, key_count, 0.2, [&](std::int64_t i) { return i / 2; });
    report("resumed", key_count, resumed, 2 * forward);
    // Every second point is of a rank whose clock is 3 s behind.
    const double skewed = log_batches(store, run, key_count, 0.3, [&](std::int64_t i) {
        return length + i - (i % 2 == 0 ? 0 : 300);
    });
    report("skewed clocks", key_count, skewed, 2 * forward);
}

}  // namespace
}  // namespace tune::tracker

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    const bool is_given = argc > 1;
    std::string pattern = (fs::temp_directory_path() / "tune-back-bench-XXXXXX").string();
    const fs::path directory = is_given ? fs::path(argv[1]) : fs::path(mkdtemp(pattern.data()));
    {
        tune::tracker::StoreOptions options;
        options.directory = directory;
        const auto store = tune::tracker::must(tune::tracker::Store::open(options));
        for (const int key_count : {1, 10, 1'000, 2'000}) tune::tracker::measure(*store, key_count);
    }
    if (!is_given) fs::remove_all(directory);
    return 0;
}
