// Ask + tell of the TPE sampler with 10 mixed parameters after 100, 1,000 and 10,000 trials: 8
// floats in [0, 1], one float in [1e-5, 1e-1] on a log scale, one choice of three; one worker, in
// memory. The figure is the median of the 30 trials before the mark. One JSON line a figure;
// peers.py measures Optuna and Rustuna on the same objective in the same way.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tuner/sampler/sampler.h"

namespace {

using namespace tune::tuner;

struct Mark {
    std::uint64_t trials;
    double target_us;
};

constexpr Mark kMarks[] = {{100, 20}, {1'000, 60}, {10'000, 500}};
constexpr std::size_t kWindow = 30;

Space bench_space() {
    StudySource source;
    for (int i = 0; i < 8; ++i)
        source.inline_parameters.push_back("x" + std::to_string(i) + "=0..1");
    source.inline_parameters.push_back("lr=1e-5..1e-1:log");
    source.inline_parameters.push_back("c=a,b,c");
    return read_study(source).value().space;
}

double objective(const Point& point) {
    double sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum += (point[i] - 0.3) * (point[i] - 0.3);
    const double decades = std::log10(point[8]) + 3;
    return sum + 0.1 * decades * decades + (point[9] == 1 ? 0 : 0.2);
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

int main() {
    const Space space = bench_space();
    const std::unique_ptr<Sampler> sampler =
        make_sampler(space, SamplerConfig{}, Goal::kMinimize, 0);
    std::vector<double> times_us;
    const Mark* mark = kMarks;
    for (std::uint64_t number = 0; number < std::end(kMarks)[-1].trials; ++number) {
        const auto start = std::chrono::steady_clock::now();
        Observation observation;
        observation.number = number;
        observation.point = sampler->suggest(number);
        (void)sampler->observe(observation);
        const auto asked = std::chrono::steady_clock::now();
        const double value = objective(observation.point);
        const auto run = std::chrono::steady_clock::now();
        observation.state = Observation::State::kComplete;
        observation.value = value;
        (void)sampler->observe(observation);
        const auto told = std::chrono::steady_clock::now();
        times_us.push_back(
            std::chrono::duration<double, std::micro>((asked - start) + (told - run)).count());
        if (number + 1 != mark->trials) continue;
        const std::vector<double> window(times_us.end() - kWindow, times_us.end());
        std::printf(
            "{\"name\": \"TPE ask + tell, 10 parameters, %llu trials\", \"value\": %.2f, "
            "\"unit\": \"us\", \"better\": \"lower\", \"target\": %g}\n",
            static_cast<unsigned long long>(mark->trials), median(window), mark->target_us);
        ++mark;
    }
    return 0;
}
