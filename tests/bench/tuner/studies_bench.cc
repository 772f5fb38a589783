// A large study: how long it takes to load and what it holds in memory; and how soon the pruner has
// seen a value that was logged.
//   studies_bench [TRIALS]      default 100000, of 10 parameters

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/id.h"
#include "tracker/store/store.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/registry/clients/client_trials.h"
#include "tuner/study/registry/studies.h"

namespace {

using namespace tune;
using namespace tune::tuner;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kParameters = 10;
constexpr std::size_t kBatch = 500;
constexpr std::size_t kRunning = 32;
constexpr int kReports = 2000;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

void print(const std::string& name, double value, const char* unit, double target) {
    const Json line = {
        {"name", name}, {"value", value}, {"unit", unit}, {"better", "lower"}, {"target", target}};
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
}

std::size_t heap_bytes() {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

StudyConfig config() {
    Json space;
    for (std::size_t i = 0; i < kParameters - 2; ++i)
        space["x" + std::to_string(i)] = {{"float", {0, 1}}};
    space["lr"] = {{"float", {1e-5, 0.1}}, {"log", true}};
    space["c"] = {{"choice", {"a", "b", "c"}}};
    return study_config_from_json({{"study", "b"},
                                   {"metric", {{"name", "loss"}}},
                                   {"space", space},
                                   {"sampler", {{"type", "random"}, {"seed", 1}}},
                                   {"pruner", {{"type", "median"}}}})
        .value();
}

/// As the server would have written it: a document and a run a trial, in large transactions.
void write_study(const std::filesystem::path& folder, std::size_t trials) {
    auto store = tracker::Store::open({.directory = folder}).value();
    const auto made = store->execute(tracker::CreateExperiment{.name = "b"}).value();
    StudyIdentity identity{.name = "b",
                           .id = random_hex(8),
                           .run_id = random_hex(16),
                           .experiment_id = std::get<tracker::ExperimentId>(made),
                           .seed = 1,
                           .created_ms = 1};
    Study study(identity, config());
    TUNE_CHECK(store->execute(tracker::Atomic{create_study_commands(study)}).has_value(), "study");
    std::mt19937 random(1);
    std::vector<tracker::Command> commands;
    for (std::size_t i = 0; i < trials; ++i) {
        Trial& trial = study.start({.holder = {}, .worker = "w", .ask_request = {}, .now_ms = 1});
        trial.run_id = random_hex(16);
        study.finish(trial, {.state = TrialState::kComplete,
                             .value = std::uniform_real_distribution<>()(random),
                             .reason = {},
                             .now_ms = 2});
        for (tracker::Command& one : create_trial_commands(study, trial))
            commands.push_back(std::move(one));
        if ((i + 1) % kBatch != 0) continue;
        TUNE_CHECK(store->execute(tracker::Atomic{std::move(commands)}).has_value(), "trials");
        commands.clear();
    }
    if (!commands.empty())
        TUNE_CHECK(store->execute(tracker::Atomic{std::move(commands)}).has_value(), "trials");
    store->stop();
}

/// Notes when values of trials have been seen by objective and pruner.
class Watcher final : public StudyListener {
public:
    void on_trial(const Study&, const Trial&) override {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++seen_;
        wake_.notify_all();
    }
    void on_study(const Study&) override {}
    std::size_t seen() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return seen_;
    }
    void wait_beyond(std::size_t count) {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return seen_ > count; });
    }

private:
    std::mutex mutex_;
    std::condition_variable wake_;
    std::size_t seen_ = 0;
};

void measure_load(const std::filesystem::path& folder, std::size_t trials) {
    auto store = tracker::Store::open({.directory = folder}).value();
    const std::size_t before = heap_bytes();
    const auto begin = Clock::now();
    auto studies = Studies::open({.store = store.get()}).value();
    print("load of a study of " + std::to_string(trials) + " trials", seconds_since(begin), "s", 1);
    ::malloc_trim(0);
    print("memory a trial and parameter",
          static_cast<double>(heap_bytes() - before) / static_cast<double>(trials * kParameters),
          "B", 200);
    studies->drain();
    store->stop();
}

/// One value after another, each of one of the running trials, as an MLflow client logs it.
void measure_pruner(const std::filesystem::path& folder) {
    auto store = tracker::Store::open({.directory = folder}).value();
    Watcher watcher;
    auto studies = Studies::open({.store = store.get(), .listener = &watcher}).value();
    std::promise<std::vector<AskedTrial>> asked;
    studies->clients().ask(
        {.study = "b", .count = kRunning},
        [&](Result<std::vector<AskedTrial>> trials) { asked.set_value(*trials); });
    const std::vector<AskedTrial> trials = asked.get_future().get();
    std::vector<double> times;
    for (int i = 0; i < kReports; ++i) {
        tracker::LogBatch batch{.run_id = trials[static_cast<std::size_t>(i) % kRunning].run_id};
        batch.metrics.push_back(
            {.key = "loss", .value = 1, .timestamp_ms = i, .step = i / static_cast<int>(kRunning)});
        const std::size_t before = watcher.seen();
        const auto begin = Clock::now();
        store->submit(std::move(batch), [](const Result<tracker::Outcome>&) {});
        watcher.wait_beyond(before);
        times.push_back(seconds_since(begin) * 1000);
    }
    std::sort(times.begin(), times.end());
    print("from log to pruner, p50", times[times.size() / 2], "ms", 50);
    print("from log to pruner, p99", times[times.size() * 99 / 100], "ms", 50);
    studies->drain();
    store->stop();
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t trials = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
    const auto folder =
        std::filesystem::canonical("/proc/self/exe").parent_path() / ("bench-" + random_hex(4));
    write_study(folder, trials);
    measure_load(folder, trials);
    measure_pruner(folder);
    std::filesystem::remove_all(folder);
    return 0;
}
