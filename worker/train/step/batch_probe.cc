// A size is tried in a forked child with a limit on its memory: what it leaves behind, or a kill,
// does not reach the run. Its answer comes back through a pipe; no answer means no memory.

#include "worker/train/step/batch_probe.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "worker/train/learner.h"
#include "worker/train/rules/batch_size.h"

namespace tune::train {
namespace {

constexpr int kProbeWarmUpSteps = 2;
constexpr int kProbeStepsMax = 8;
constexpr double kProbeSecondsMax = 0.5;
constexpr std::int64_t kProbeBatchMax = 8192;

/// The number of kilobytes after `name` in a file of /proc, in bytes; 0: not there.
double proc_bytes(const char* file, const std::string& name) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(name)) return std::strtod(line.c_str() + name.size(), nullptr) * 1024;
    return 0.0;
}

/// Bytes that a child may use: what is free, or what a limit of this process leaves.
double probe_memory_limit() {
    double limit = proc_bytes("/proc/meminfo", "MemAvailable:");
    rlimit data{};
    if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
        limit = std::min(limit, static_cast<double>(data.rlim_cur));
    std::ifstream group("/sys/fs/cgroup/memory.max");
    if (double bytes = 0; group >> bytes) limit = std::min(limit, bytes);
    return limit;
}

Samples made_up_samples(const Inputs& inputs, std::int64_t count) {
    Samples samples;
    samples.count = count;
    const auto elements = static_cast<std::size_t>(count * inputs.row_elements());
    if (inputs.is_tokens()) {
        samples.tokens.resize(elements);
        for (std::size_t i = 0; i < elements; ++i)
            samples.tokens[i] = static_cast<std::int64_t>(i) % inputs.vocabulary;
    } else if (inputs.keeps_bytes) {
        samples.bytes.resize(elements);
    } else {
        samples.features.resize(elements);
        for (std::size_t i = 0; i < elements; ++i)
            samples.features[i] = std::sin(static_cast<float>(i % 1000));
    }
    const auto rows = static_cast<std::size_t>(count);
    if (inputs.is_classification()) samples.classes.resize(rows);
    if (!inputs.is_classification() && !inputs.is_language()) samples.values.resize(rows);
    return samples;
}

constexpr int kProbeFits = 0;
constexpr int kProbeOutOfMemory = 1;
constexpr int kProbeFailed = 2;

struct ProbeAnswer {
    int state = kProbeFits;
    double samples_per_s = 0.0;
    double peak_bytes = 0.0;
};

/// In the child.
ProbeAnswer measure_steps(TrainConfig config, const Inputs& inputs, std::int64_t batch) {
    config.batch_size = batch;
    config.noise_every = 0;
    auto learner = Learner::make(config, inputs);
    if (!learner)
        return {.state = learner.error().code == Code::kResourceExhausted ? kProbeOutOfMemory
                                                                          : kProbeFailed};
    const Samples samples = made_up_samples(inputs, batch);
    using Steady = std::chrono::steady_clock;
    Steady::time_point begin;
    int steps = 0;
    double elapsed_s = 0.0;
    for (int i = 0; i < kProbeWarmUpSteps + kProbeStepsMax && elapsed_s < kProbeSecondsMax; ++i) {
        if (i == kProbeWarmUpSteps) begin = Steady::now();
        const auto loss = (*learner)->train(samples, i, 0.0);
        if (!loss)
            return {.state = loss.error().code == Code::kResourceExhausted ? kProbeOutOfMemory
                                                                           : kProbeFailed};
        if ((*learner)->parts() != config.accumulate) return {.state = kProbeOutOfMemory};
        if (i < kProbeWarmUpSteps) continue;
        ++steps;
        elapsed_s = std::chrono::duration<double>(Steady::now() - begin).count();
    }
    Evaluation sums;
    if (!(*learner)->evaluate(samples, sums)) return {.state = kProbeOutOfMemory};
    return {.state = kProbeFits,
            .samples_per_s = static_cast<double>(batch) * steps / std::max(elapsed_s, 1e-9),
            .peak_bytes = proc_bytes("/proc/self/status", "VmHWM:")};
}

/// Whatever goes wrong is an answer, too: the other ranks wait for one.
ProbeAnswer measure_in_child(const TrainConfig& config, const Inputs& inputs, std::int64_t batch,
                             double limit) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return {.state = kProbeFailed};
    const pid_t child = fork();
    if (child == 0) {
        // More than is there ends in an error of the allocator, not in a killed process.
        const rlimit data{static_cast<rlim_t>(limit), static_cast<rlim_t>(limit)};
        setrlimit(RLIMIT_DATA, &data);
        const ProbeAnswer answer = measure_steps(config, inputs, batch);
        const bool sent = write(ends[1], &answer, sizeof(answer)) == sizeof(answer);
        _exit(sent ? 0 : 1);
    }
    close(ends[1]);
    ProbeAnswer answer;
    const ssize_t count = child < 0 ? -1 : read(ends[0], &answer, sizeof(answer));
    close(ends[0]);
    if (child < 0) return {.state = kProbeFailed};
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    // A child that was killed had no memory.
    return count == sizeof(answer) ? answer : ProbeAnswer{.state = kProbeOutOfMemory};
}

/// The same on all ranks: the worst of them.
Result<Probe> worst_of(const ProbeAnswer& own, std::int64_t batch, Collective& collective) {
    const double numbers[] = {static_cast<double>(own.state), own.samples_per_s, own.peak_bytes};
    TUNE_TRY(all, collective.gather(numbers));
    Probe probe{.batch = batch, .fits = true, .samples_per_s = own.samples_per_s};
    for (const std::vector<double>& answer : all) {
        if (answer[0] == kProbeFailed)
            return Error{Code::kInternalError, "find-batch-size: a step with a batch of " +
                                                   std::to_string(batch) +
                                                   " failed; without find-batch-size it says why"};
        probe.fits = probe.fits && answer[0] == kProbeFits;
        probe.samples_per_s = std::min(probe.samples_per_s, answer[1]);
        probe.peak_bytes = std::max(probe.peak_bytes, answer[2]);
    }
    probe.samples_per_s *= static_cast<double>(collective.size());
    return probe;
}

void say_probe(const Probe& probe, std::int64_t ranks) {
    std::fprintf(stderr, "batch %lld: ", static_cast<long long>(probe.batch * ranks));
    if (probe.fits)
        std::fprintf(stderr, "%.0f samples/s, %.0f MB\n", probe.samples_per_s,
                     probe.peak_bytes / 1e6);
    else
        std::fprintf(stderr, "does not fit\n");
}

}  // namespace

Result<std::int64_t> probe_batch_size(const TrainConfig& config, const Inputs& inputs,
                                      Collective& collective, bool talks) {
    if (config.device == DeviceKind::kCuda)
        return Error{Code::kNotImplemented,
                     "find-batch-size measures on the CPU only; give --batch-size"};
    const std::int64_t ranks = collective.size();
    std::vector<double> limits;
    TUNE_TRY(gathered, collective.gather(std::array{probe_memory_limit()}));
    for (const std::vector<double>& each : gathered) limits.push_back(each.front());
    // Ranks of one machine share its memory; sizes are those of one rank.
    const double limit =
        *std::min_element(limits.begin(), limits.end()) / static_cast<double>(ranks);
    const std::int64_t first = std::max<std::int64_t>(config.batch_size / ranks, 1);
    const BatchSearch search{
        .first = first,
        .largest = std::max(first, kProbeBatchMax / ranks),
        .memory_limit = limit,
        .stops_when_slower = config.find_batch_size == FindBatchSize::kThroughput};
    TUNE_TRY(best, find_batch_size(search, [&](std::int64_t batch) -> Result<Probe> {
                 const ProbeAnswer own = measure_in_child(config, inputs, batch, limit);
                 TUNE_TRY(probe, worst_of(own, batch, collective));
                 if (talks) say_probe(probe, ranks);
                 return probe;
             }));
    if (talks)
        std::fprintf(stderr, "batch size %lld\n", static_cast<long long>(best.batch * ranks));
    return best.batch * ranks;
}

}  // namespace tune::train
