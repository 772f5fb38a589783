// Ask + tell of the samplers gp and auto, in memory, one worker: the mean over the first 100, 200
// and 300 trials, wall-clock time and the processor's. One JSON line a figure.
//
//   build/release/bin/tuner_gp_bench [SAMPLER...]        default: gp auto
//
// 10 parameters: 8 floats in [0, 1], one float in [1e-5, 1e-1] on a log scale, one choice of three,
// the space of tpe_bench.cc, whose objective is a bowl; and 10 floats of a rugged one, which keeps
// the search busy longer.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace {

using namespace tune::tuner;

constexpr double kTargetMs = 5;

struct Objective {
    const char* name;
    Space space;
    double (*value)(const Point&);
};

double bowl(const Point& point) {
    double sum = point[0] == 1 ? 0 : 0.2;  // the choice comes first by name
    sum += 0.1 * std::pow(std::log10(point[1]) + 3, 2);
    for (std::size_t i = 2; i < point.size(); ++i) sum += std::pow(point[i] - 0.3, 2);
    return sum;
}

double rugged(const Point& point) {
    double sum = 0;
    for (const double x : point) {
        const double at = 10 * x - 4;
        sum += at * at - 5 * std::cos(3 * at) + 5;
    }
    return sum;
}

std::vector<Objective> objectives() {
    tune::Json mixed = {{"lr", {{"float", {1e-5, 1e-1}}, {"log", true}}},
                        {"c", {{"choice", {"a", "b", "c"}}}}};
    tune::Json floats;
    for (int i = 0; i < 8; ++i) mixed["x" + std::to_string(i)] = {{"float", {0, 1}}};
    for (int i = 0; i < 10; ++i) floats["x" + std::to_string(i)] = {{"float", {0, 1}}};
    return {{"bowl", Space::from_json(mixed).value(), &bowl},
            {"rugged", Space::from_json(floats).value(), &rugged}};
}

double wall_ms() {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

double processor_ms() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

void print(const std::string& name, double value) {
    std::printf(
        "{\"name\": \"%s\", \"value\": %.2f, \"unit\": \"ms\", \"better\": \"lower\", "
        "\"target\": %g}\n",
        name.c_str(), value, kTargetMs);
    std::fflush(stdout);
}

void measure(const Objective& objective, const std::string& type) {
    const SamplerConfig config = study_config_from_json({{"sampler", type}}).value().sampler;
    const auto sampler = make_sampler(objective.space, config, Goal::kMinimize, 0);
    double wall = 0;
    double processor = 0;
    for (std::uint64_t number = 0; number < 300; ++number) {
        const double begin_wall = wall_ms();
        const double begin_processor = processor_ms();
        Observation seen;
        seen.number = number;
        seen.point = sampler->suggest(number);
        (void)sampler->observe(seen);
        seen.state = Observation::State::kComplete;
        seen.value = objective.value(seen.point);
        (void)sampler->observe(seen);
        wall += wall_ms() - begin_wall;
        processor += processor_ms() - begin_processor;
        const std::uint64_t trials = number + 1;
        if (trials % 100 != 0) continue;
        const std::string name = type + " ask + tell, 10 parameters (" + objective.name +
                                 "), mean of " + std::to_string(trials) + " trials";
        print(name, wall / static_cast<double>(trials));
        print(name + ", processor time", processor / static_cast<double>(trials));
    }
}

}  // namespace

int main(int count, char** words) {
    std::vector<std::string> types(words + 1, words + count);
    if (types.empty()) types = {"gp", "auto"};
    for (const Objective& objective : objectives())
        for (const std::string& type : types) measure(objective, type);
}
