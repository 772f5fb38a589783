// The trainer's step and start-up time, one JSON line a figure. The peers do the same work in
// peers.py.

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "worker/train/learner.h"

extern char** environ;

namespace {

using tune::train::Inputs;
using tune::train::Learner;
using tune::train::Samples;
using tune::train::TrainConfig;

constexpr int kRounds = 21;
constexpr int kStepsOfRound = 300;
constexpr int kWarmUpSteps = 300;

double seconds_of(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(),
                     values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

void say(const std::string& name, double value, const char* unit, double target) {
    std::printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"better\": \"lower\"",
                name.c_str(), value, unit);
    if (target > 0) std::printf(", \"target\": %g", target);
    std::printf("}\n");
    std::fflush(stdout);
}

Samples random_samples(std::int64_t count, std::int64_t row) {
    Samples samples;
    samples.count = count;
    for (std::int64_t i = 0; i < count * row; ++i)
        samples.features.push_back(std::sin(static_cast<float>(i * 37)));
    for (std::int64_t i = 0; i < count; ++i) samples.classes.push_back(i * 7 % 10);
    return samples;
}

/// Median microseconds of one optimizer step; parameters as on the command line.
double step_us(const std::vector<std::pair<std::string, std::string>>& parameters) {
    TrainConfig config;
    for (const auto& [name, value] : parameters)
        if (!set_parameter(config, name, value)) std::abort();
    Inputs inputs;
    inputs.shape = {8, 8};
    inputs.columns = {{.name = "image", .elements = 64}};
    inputs.label = "label";
    inputs.classes = 10;
    auto learner = Learner::make(config, inputs);
    if (!learner) std::abort();
    const Samples samples = random_samples(config.batch_size, 64);
    std::int64_t step = 0;
    const auto steps = [&](int count) {
        for (int i = 0; i < count; ++i)
            if (!(*learner)->train(samples, step++, config.lr)) std::abort();
    };
    steps(kWarmUpSteps);
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round)
        times.push_back(seconds_of([&] { steps(kStepsOfRound); }) / kStepsOfRound * 1e6);
    return median(times);
}

/// Median milliseconds of a process that loads LibTorch and ends.
double start_ms() {
    std::string program = TUNE_BIN_DIR "/tune-trainer";
    std::string argument = "--version";
    char* arguments[] = {program.data(), argument.data(), nullptr};
    std::vector<double> times;
    for (int round = 0; round < 11; ++round)
        times.push_back(1e3 * seconds_of([&] {
                            posix_spawn_file_actions_t actions;
                            posix_spawn_file_actions_init(&actions);
                            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
                            pid_t pid = 0;
                            int status = 0;
                            if (posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments,
                                            environ) != 0 ||
                                waitpid(pid, &status, 0) != pid || status != 0)
                                std::abort();
                            posix_spawn_file_actions_destroy(&actions);
                        }));
    return median(times);
}

}  // namespace

int main() {
    const std::string mlp = "trainer step, mlp 64-128-128-10, batch 32, one thread, ";
    const std::string cnn = "trainer step, cnn 8x8 16-32 channels, batch 32, one thread, AdamW";
    say(mlp + "AdamW", step_us({}), "us", 150);
    say(mlp + "AdamW, dropout", step_us({{"dropout", "0.2"}}), "us", 0);
    say(mlp + "SGD momentum", step_us({{"optimizer", "sgd"}}), "us", 0);
    say(cnn, step_us({{"model", "cnn"}, {"width", "16"}}), "us", 0);
    say("trainer start-up", start_ms(), "ms", 400);
}
