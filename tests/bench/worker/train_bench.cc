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
#include <memory>
#include <string>
#include <vector>

#include "worker/train/device/device.h"
#include "worker/train/learner.h"

extern char** environ;

namespace {

using tune::train::Inputs;
using tune::train::Learner;
using tune::train::Samples;
using tune::train::TrainConfig;

using Parameters = std::vector<std::pair<std::string, std::string>>;

/// What is trained, and for how long it is measured.
struct Work {
    std::vector<std::int64_t> shape = {8, 8};
    std::int64_t classes = 10;
    std::int64_t vocabulary = 0;  ///< of tokens, which have no label
    int rounds = 21;
    int steps_of_round = 300;
    int warm_up = 300;
};

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

Inputs inputs_of(const Work& work) {
    Inputs inputs;
    inputs.shape = work.shape;
    inputs.columns = {{.name = "image", .elements = inputs.row_elements()}};
    if (work.vocabulary > 0) {
        inputs.vocabulary = work.vocabulary;
        return inputs;
    }
    inputs.label = "label";
    inputs.classes = work.classes;
    return inputs;
}

Samples made_up(const Inputs& inputs, std::int64_t count) {
    Samples samples;
    samples.count = count;
    for (std::int64_t i = 0; i < count * inputs.row_elements(); ++i) {
        if (inputs.is_tokens())
            samples.tokens.push_back(i * 37 % inputs.vocabulary);
        else
            samples.features.push_back(std::sin(static_cast<float>(i * 37)));
    }
    for (std::int64_t i = 0; i < count && !inputs.is_language(); ++i)
        samples.classes.push_back(i * 7 % inputs.classes);
    return samples;
}

/// Null: the CPU.
tune::train::Device* device = nullptr;
bool is_short = false;  ///< whether it runs at all, not how fast

/// Median microseconds of one optimizer step; parameters as on the command line. Losses are taken
/// once a round, as training does it between its lines.
double step_us(const Parameters& parameters, Work work = {}) {
    TrainConfig config;
    for (const auto& [name, value] : parameters)
        if (!set_parameter(config, name, value)) std::abort();
    if (is_short) work.rounds = work.steps_of_round = work.warm_up = 1;
    const Inputs inputs = inputs_of(work);
    auto learner = Learner::make(config, inputs, nullptr, device);
    if (!learner) {
        std::fprintf(stderr, "%s\n", learner.error().text().c_str());
        std::exit(1);
    }
    const Samples samples = made_up(inputs, config.batch_size);
    std::int64_t step = 0;
    const auto steps = [&](int count) {
        for (int i = 0; i < count; ++i)
            if (!(*learner)->train_later(samples, step++, config.lr)) std::abort();
        if (!(*learner)->take_losses()) std::abort();
    };
    steps(work.warm_up);
    std::vector<double> times;
    for (int round = 0; round < work.rounds; ++round)
        times.push_back(seconds_of([&] { steps(work.steps_of_round); }) / work.steps_of_round *
                        1e6);
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

/// On a processor: small networks, one thread. The peers' names are the same.
void measure_cpu() {
    const std::string mlp = "trainer step, mlp 64-128-128-10, batch 32, one thread, ";
    const std::string cnn = "trainer step, cnn 8x8 16-32 channels, batch 32, one thread, AdamW";
    say(mlp + "AdamW", step_us({}), "us", 150);
    say(mlp + "AdamW, dropout", step_us({{"dropout", "0.2"}}), "us", 0);
    say(mlp + "SGD momentum", step_us({{"optimizer", "sgd"}}), "us", 0);
    say(cnn, step_us({{"model", "cnn"}, {"width", "16"}}), "us", 0);
    say("trainer step, resnet18 3x32x32, batch 8, one thread, AdamW",
        step_us({{"model", "resnet18"}, {"stem", "small"}, {"batch-size", "8"}},
                {.shape = {3, 32, 32}, .rounds = 7, .steps_of_round = 3, .warm_up = 2}),
        "us", 0);
    say("trainer step, gpt 4 layers of 128, 128 tokens, batch 8, one thread, AdamW",
        step_us(
            {{"model", "gpt"}, {"width", "128"}, {"depth", "4"}, {"batch-size", "8"}},
            {.shape = {129}, .vocabulary = 256, .rounds = 9, .steps_of_round = 10, .warm_up = 5}),
        "us", 0);
    say("trainer start-up", start_ms(), "ms", 400);
}

/// On a GPU: what fills one, and what waits for launches. tests/gpu/bench.py has the peers.
void measure_gpu() {
    const std::string image = is_short ? "32" : "224";
    const std::int64_t side = std::stoll(image);
    say("trainer step, resnet50 3x" + image + "x" + image + ", batch 64, bf16, SGD momentum",
        step_us({{"model", "resnet50"},
                 {"precision", "bf16"},
                 {"channels-last", "true"},
                 {"optimizer", "sgd"},
                 {"batch-size", is_short ? "4" : "64"}},
                {.shape = {3, side, side},
                 .classes = 1000,
                 .rounds = 9,
                 .steps_of_round = 20,
                 .warm_up = 20}),
        "us", 0);
    const std::string places = is_short ? "17" : "1025";
    say("trainer step, gpt 12 layers of 768, 1024 tokens, batch 8, bf16, AdamW",
        step_us({{"model", "gpt"},
                 {"width", is_short ? "16" : "768"},
                 {"depth", is_short ? "2" : "12"},
                 {"heads", is_short ? "2" : "12"},
                 {"precision", "bf16"},
                 {"batch-size", "8"}},
                {.shape = {std::stoll(places)},
                 .vocabulary = is_short ? 64 : 50'304,
                 .rounds = 9,
                 .steps_of_round = 20,
                 .warm_up = 20}),
        "us", 0);
    say("trainer step, mlp 64-128-128-10, batch 32, AdamW, one GPU",
        step_us({}, {.rounds = 9, .steps_of_round = 500, .warm_up = 100}), "us", 0);
}

}  // namespace

/// [--device cpu|cuda] [--short] [--gpu-work]: the GPU's work also on a processor.
int main(int argc, char** argv) {
    bool gpu_work = false;
    std::unique_ptr<tune::train::Device> opened;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--short") {
            is_short = true;
        } else if (argument == "--gpu-work") {
            gpu_work = true;
        } else if (argument == "--device" && i + 1 < argc) {
            if (std::string(argv[++i]) != "cuda") continue;
            auto cuda = tune::train::open_device(tune::train::DeviceKind::kCuda, 0);
            if (!cuda) {
                std::fprintf(stderr, "train_bench: %s\n", cuda.error().text().c_str());
                return 1;
            }
            opened = std::move(cuda).value();
            device = opened.get();
            gpu_work = true;
        } else {
            std::fprintf(stderr, "train_bench: unknown argument '%s'\n", argument.c_str());
            return 2;
        }
    }
    gpu_work ? measure_gpu() : measure_cpu();
}
