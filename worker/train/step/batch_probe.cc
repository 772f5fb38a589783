// A size is tried by a process of its own, started anew since a GPU's context does not outlive a
// fork, with a limit on its memory: what it leaves behind, or a kill, does not reach the run. It
// reads what to try from stdin and answers on stdout; a child that was killed had no memory.

#include "worker/train/step/batch_probe.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/train/device/device.h"
#include "worker/train/exit_code.h"
#include "worker/train/learner.h"
#include "worker/train/rules/batch_size.h"
#include "worker/train/selfcheck/child_process.h"
#include "worker/train/step/memory_limit.h"

namespace tune::train {
namespace {

constexpr int kProbeWarmUpSteps = 2;
constexpr int kProbeStepsMax = 8;
constexpr double kProbeSecondsMax = 0.5;
constexpr std::int64_t kProbeBatchMax = 8192;
constexpr auto kProbeTimeMax = std::chrono::minutes(10);

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

/// What a child is told to try.
struct ProbeRequest {
    const TrainConfig& config;
    const Inputs& inputs;
    double limit;  ///< bytes; 0: unknown
    bool on_gpu;
    std::int64_t local_rank;
};

std::string request_text(const ProbeRequest& request, std::int64_t batch) {
    Json values = Json::object();
    for (const Parameter& parameter : parameters())
        if (const std::string text = parameter.get(request.config); !text.empty())
            values[parameter.name] = text;
    return to_text({{"parameters", std::move(values)},
                    {"inputs", request.inputs.to_json()},
                    {"batch", batch},
                    {"limit", request.limit},
                    {"cuda", request.on_gpu},
                    {"local_rank", request.local_rank}});
}

/// In the child.
ProbeAnswer measure_steps(TrainConfig config, const Inputs& inputs, std::int64_t batch,
                          Device& device) {
    config.batch_size = batch;
    config.noise_every = 0;
    auto learner = Learner::make(config, inputs, nullptr, &device);
    const auto failed = [](const Error& error) {
        std::fprintf(stderr, "%s\n", error.text().c_str());
        return ProbeAnswer{.state = error.code == Code::kResourceExhausted ? kProbeOutOfMemory
                                                                           : kProbeFailed};
    };
    if (!learner) return failed(learner.error());
    const Samples samples = made_up_samples(inputs, batch);
    using Steady = std::chrono::steady_clock;
    Steady::time_point begin;
    int steps = 0;
    double elapsed_s = 0.0;
    for (int i = 0; i < kProbeWarmUpSteps + kProbeStepsMax && elapsed_s < kProbeSecondsMax; ++i) {
        if (i == kProbeWarmUpSteps) begin = Steady::now();
        const auto loss = (*learner)->train(samples, i, 0.0);
        if (!loss) return failed(loss.error());
        if ((*learner)->parts() != config.accumulate) return {.state = kProbeOutOfMemory};
        if (i < kProbeWarmUpSteps) continue;
        ++steps;
        elapsed_s = std::chrono::duration<double>(Steady::now() - begin).count();
    }
    Evaluation sums;
    if (!(*learner)->evaluate(samples, sums)) return {.state = kProbeOutOfMemory};
    const bool on_cpu = device.torch_device().is_cpu();
    return {.state = kProbeFits,
            .samples_per_s = static_cast<double>(batch) * steps / std::max(elapsed_s, 1e-9),
            .peak_bytes = on_cpu ? proc_bytes("/proc/self/status", "VmHWM:")
                                 : static_cast<double>(device.memory().peak)};
}

/// More than is there ends in an error of the allocator, not in a killed process.
void limit_memory(double bytes, Device& device) {
    if (!(bytes > 0.0)) return;
    if (device.torch_device().is_cpu()) {
        const rlimit data{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
        setrlimit(RLIMIT_DATA, &data);
    } else if (const auto total = static_cast<double>(device.memory().total); bytes < total) {
        device.limit_memory(bytes / total);
    }
}

Result<ProbeAnswer> answer_request(const std::string& text) {
    TUNE_TRY(json, parse_json(text));
    TrainConfig config;
    for (const auto& [name, value] : json.at("parameters").items())
        TUNE_TRY_VOID(set_parameter(config, name, value.get<std::string>()));
    TUNE_TRY(inputs, Inputs::from_json(json.at("inputs")));
    TUNE_TRY(device, open_device(json.at("cuda").get<bool>() ? DeviceKind::kCuda : DeviceKind::kCpu,
                                 json.at("local_rank").get<std::int64_t>()));
    limit_memory(json.at("limit").get<double>(), *device);
    return measure_steps(config, inputs, json.at("batch").get<std::int64_t>(), *device);
}

/// Whatever goes wrong is an answer, too: the other ranks wait for one.
ProbeAnswer measure_in_child(const ProbeRequest& request, std::int64_t batch) {
    auto child = ChildProcess::start({own_program(), kProbeCommand});
    if (!child || !child->write(request_text(request, batch))) return {.state = kProbeFailed};
    child->close_input();
    const ChildEnd end = child->wait(kProbeTimeMax);
    const auto json = parse_json(end.output);
    if (end.ok() && json)
        return {.state = json->value("state", kProbeFailed),
                .samples_per_s = json->value("samples_per_s", 0.0),
                .peak_bytes = json->value("peak_bytes", 0.0)};
    const bool no_memory =
        !end.timed_out &&
        (end.signal != 0 || end.exit_code == static_cast<int>(ExitCode::kOutOfMemory));
    return {.state = no_memory ? kProbeOutOfMemory : kProbeFailed};
}

/// Bytes that a step may take on this rank.
double memory_limit_of(const Device& device, std::int64_t ranks_here) {
    // Ranks of one machine share its memory; each has a GPU of its own.
    if (device.torch_device().is_cpu())
        return host_memory_limit() / static_cast<double>(ranks_here);
    const DeviceMemory memory = device.memory();
    const auto free = static_cast<double>(memory.free + memory.reserved);
    return std::min(free, bytes_of_environment("TUNE_GPU_MEMORY_BYTES").value_or(free));
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

int answer_batch_probe() {
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    Result<ProbeAnswer> answer = ProbeAnswer{};
    try {
        answer = answer_request(text);
    } catch (const Json::exception& error) {
        answer = Error{Code::kInvalidParameterValue, error.what()};
    }
    if (!answer) {
        std::fprintf(stderr, "%s\n", answer.error().text().c_str());
        return static_cast<int>(exit_code_of(answer.error()));
    }
    std::printf("%s\n", to_text({{"state", answer->state},
                                 {"samples_per_s", answer->samples_per_s},
                                 {"peak_bytes", answer->peak_bytes}})
                            .c_str());
    return static_cast<int>(ExitCode::kDone);
}

Result<std::int64_t> probe_batch_size(const TrainConfig& config, const Inputs& inputs,
                                      Collective& collective, const Device& device, bool talks) {
    const std::int64_t ranks = collective.size();
    TUNE_TRY(here, ranks_of_environment());
    TUNE_TRY(gathered, collective.gather(std::array{memory_limit_of(device, ranks)}));
    double limit = gathered.front().front();
    for (const std::vector<double>& each : gathered) limit = std::min(limit, each.front());
    // Sizes are those of one rank.
    const std::int64_t first = std::max<std::int64_t>(config.batch_size / ranks, 1);
    const BatchSearch search{
        .first = first,
        .largest = std::max(first, kProbeBatchMax / ranks),
        .memory_limit = limit,
        .stops_when_slower = config.find_batch_size == FindBatchSize::kThroughput};
    const ProbeRequest request{.config = config,
                               .inputs = inputs,
                               .limit = limit,
                               .on_gpu = !device.torch_device().is_cpu(),
                               .local_rank = here.local_rank};
    TUNE_TRY(best, find_batch_size(search, [&](std::int64_t batch) -> Result<Probe> {
                 const ProbeAnswer own = measure_in_child(request, batch);
                 TUNE_TRY(probe, worst_of(own, batch, collective));
                 if (talks) say_probe(probe, ranks);
                 return probe;
             }));
    if (talks)
        std::fprintf(stderr, "batch size %lld\n", static_cast<long long>(best.batch * ranks));
    return best.batch * ranks;
}

}  // namespace tune::train
