// The agent's own cost of a trial, without a server: start of a supervised process to its exit
// record, and lines of output to metrics.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/attempts/environment.h"
#include "worker/agent/output/metric_lines.h"
#include "worker/agent/supervisor/launcher.h"

namespace {

using namespace tune::worker;

constexpr int kTrials = 1000;
constexpr int kLines = 300'000;

double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void print(const char* name, double value, const char* unit, double target) {
    std::printf(
        "{\"name\": \"%s\", \"value\": %.0f, \"unit\": \"%s\", \"better\": \"higher\", \"target\": "
        "%.0f}\n",
        name, value, unit, target);
}

/// Runs kTrials processes, `at_once` of them at a time; each writes its state as in the agent.
double trials_per_second(const Launcher& launcher, const std::filesystem::path& folder,
                         std::size_t at_once) {
    LaunchSpec spec;
    spec.wake_fifo = folder / "wake";
    spec.grace_ms = 1000;
    spec.command = {"true"};
    spec.environment = own_environment();
    std::vector<std::pair<Process, AttemptFiles>> running;
    const double begin = now_s();
    for (int started = 0; started < kTrials || !running.empty();) {
        while (started < kTrials && running.size() < at_once) {
            AttemptFiles files(folder / ("t" + std::to_string(started++)));
            AttemptRecord record;
            record.lease.run_id = "run";
            if (!files.create(record)) std::exit(1);
            spec.directory = files.directory();
            tune::Result<Process> process = launcher.start(spec);
            if (!process) std::exit(1);
            running.emplace_back(std::move(*process), files);
        }
        std::vector<pollfd> polls;
        for (const auto& [process, files] : running)
            polls.push_back({process.pidfd.get(), POLLIN, 0});
        poll(polls.data(), polls.size(), -1);
        for (std::size_t i = polls.size(); i-- > 0;) {
            if (polls[i].revents == 0) continue;
            reap_process(running[i].first);
            if (!running[i].second.read_exit()) std::exit(1);
            running[i].second.remove();
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    return kTrials / (now_s() - begin);
}

double lines_per_second(const std::vector<tune::tuner::ScrapePattern>& patterns,
                        const std::string& line) {
    tune::Result<MetricLines> lines = MetricLines::create(patterns, "loss");
    if (!lines) std::exit(1);
    LineFindings findings;
    const double begin = now_s();
    for (int i = 0; i < kLines; ++i) {
        lines->read(line, 0, findings);
        if (findings.metrics.size() >= 1000) findings.metrics.clear();
    }
    return kLines / (now_s() - begin);
}

}  // namespace

int main() {
    std::string name = (std::filesystem::temp_directory_path() / "tune-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return 1;
    const std::filesystem::path folder = name;
    if (mkfifo((folder / "wake").c_str(), 0600) != 0) return 1;
    const tune::Result<Launcher> launcher = Launcher::create();
    if (!launcher) return 1;
    print("supervised no-op process, one at a time", trials_per_second(*launcher, folder, 1), "1/s",
          200);
    print("supervised no-op process, four at a time", trials_per_second(*launcher, folder, 4),
          "1/s", 200);
    print("output line 'tune: {...}' to metric",
          lines_per_second({}, R"(tune: {"val_loss": 0.3125, "step": 4})"), "1/s", 300'000);
    print("output line through a scrape pattern",
          lines_per_second({{"", "val_loss"}}, "epoch 3: train_loss=0.5 val_loss=0.3125"), "1/s",
          300'000);
    std::filesystem::remove_all(folder);
    return 0;
}
