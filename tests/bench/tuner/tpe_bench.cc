// Ask + tell of the TPE sampler, in memory, one worker; the figure is the median of the 30 trials
// before the mark, after a study of 300 trials that is thrown away: a server that has just started
// is slower for some milliseconds (caches, pages, the processor's clock). One JSON line a figure.
//
//   10 parameters      8 floats in [0, 1], one float in [1e-5, 1e-1] on a log scale, one choice of
//                      three; peers.py measures Optuna and Rustuna on it in the same way
//   10 of every kind   3 floats, a log float, a float on a grid, 2 integers, a log integer, 2
//                      choices
//   100,000 trials     the window of the default settings; the history is told, not asked
//   64 askers          threads that ask and tell under one lock, as a server's do; and spread over
//                      as many samplers, each with a lock of its own, as there are cores

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <unistd.h>

#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace {

using namespace tune::tuner;
using Clock = std::chrono::steady_clock;

struct Mark {
    std::uint64_t trials;
    double target_us;
};

constexpr std::size_t kWindow = 30;

Space space_of(const std::vector<std::string>& words) {
    StudySource source;
    source.inline_parameters = words;
    return read_study(source).value().space;
}

Space floats() {
    std::vector<std::string> words;
    for (int i = 0; i < 8; ++i) words.push_back("x" + std::to_string(i) + "=0..1");
    words.insert(words.end(), {"lr=1e-5..1e-1:log", "c=a,b,c"});
    return space_of(words);
}

Space every_kind() {
    return space_of({"x0=0..1", "x1=0..1", "x2=0..1", "lr=1e-5..1e-1:log", "drop=0..0.9:0.05",
                     "depth=1..20:int", "heads=1..64:int", "width=8..2048:int:log", "c=a,b,c",
                     "d=a,b,c,d,e"});
}

/// The distance from a point within: what is a number on the line between its bounds.
double objective(const Space& space, const Point& point) {
    double sum = 0;
    for (std::size_t i = 0; i < space.size(); ++i) {
        const Parameter& parameter = space[i];
        if (parameter.kind == Kind::kChoice) {
            sum += point[i] == 1 ? 0 : 0.2;
            continue;
        }
        const auto at = [&](double value) { return parameter.log ? std::log(value) : value; };
        const double low = at(parameter.low);
        const double share = (at(point[i]) - low) / (at(parameter.high) - low);
        sum += (share - 0.3) * (share - 0.3);
    }
    return sum;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void print(const std::string& name, double value, const char* unit, const char* better,
           double target) {
    std::printf(
        "{\"name\": \"%s\", \"value\": %.2f, \"unit\": \"%s\", \"better\": \"%s\", "
        "\"target\": %g}\n",
        name.c_str(), value, unit, better, target);
    std::fflush(stdout);
}

std::unique_ptr<Sampler> make(const Space& space, std::string_view type = "tpe") {
    SamplerConfig config = sampler_named(type);
    return make_sampler(space, config, Goal::kMinimize, 0);
}

double ask_and_tell_us(Sampler& sampler, const Space& space, std::uint64_t number) {
    const auto start = Clock::now();
    Observation observation;
    observation.number = number;
    observation.point = sampler.suggest(number);
    (void)sampler.observe(observation);
    const auto asked = Clock::now();
    const double value = objective(space, observation.point);
    const auto run = Clock::now();
    observation.state = Observation::State::kComplete;
    observation.value = value;
    (void)sampler.observe(observation);
    return std::chrono::duration<double, std::micro>((asked - start) + (Clock::now() - run))
        .count();
}

void measure(const std::string& label, const Space& space, const std::vector<Mark>& marks) {
    const std::unique_ptr<Sampler> thrown_away = make(space);
    for (std::uint64_t number = 0; number < 300; ++number)
        (void)ask_and_tell_us(*thrown_away, space, number);
    const std::unique_ptr<Sampler> sampler = make(space);
    std::vector<double> times_us;
    auto mark = marks.begin();
    for (std::uint64_t number = 0; mark != marks.end(); ++number) {
        times_us.push_back(ask_and_tell_us(*sampler, space, number));
        if (number + 1 != mark->trials) continue;
        print("TPE ask + tell, " + label + ", " + std::to_string(mark->trials) + " trials",
              median({times_us.end() - kWindow, times_us.end()}), "us", "lower", mark->target_us);
        ++mark;
    }
}

double resident_bytes() {
    std::ifstream file("/proc/self/statm");
    double all = 0;
    double resident = 0;
    file >> all >> resident;
    return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void measure_huge(const std::string& label, const Space& space) {
    constexpr std::uint64_t kTrials = 100'000;
    malloc_trim(0);  // what was freed before must not serve here unseen
    const double before = resident_bytes();
    const std::unique_ptr<Sampler> sampler = make(space);
    const std::unique_ptr<Sampler> draws = make(space, "random");
    for (std::uint64_t number = 0; number < kTrials; ++number) {
        Observation observation;
        observation.number = number;
        observation.state = Observation::State::kComplete;
        observation.point = draws->suggest(number);
        observation.value = objective(space, observation.point);
        (void)sampler->observe(observation);
    }
    std::vector<double> times_us;
    for (std::uint64_t i = 0; i < kWindow; ++i)
        times_us.push_back(ask_and_tell_us(*sampler, space, kTrials + i));
    print("TPE ask + tell, " + label + ", 100,000 trials, window", median(times_us), "us", "lower",
          1000);
    print("memory a trial and parameter, " + label + ", 100,000 trials",
          (resident_bytes() - before) / static_cast<double>(kTrials * space.size()), "bytes",
          "lower", 200);
}

/// A sampler with 1,000 trials, and its lock.
struct Asked {
    std::unique_ptr<Sampler> sampler;
    std::uint64_t next = 0;
    std::mutex lock;
};

/// Ask + tell pairs a second of `askers` threads, spread over `samplers`.
double rate_of(const Space& space, int askers, std::size_t samplers) {
    constexpr std::uint64_t kTrials = 1000;
    constexpr std::uint64_t kMore = 1500;
    std::vector<Asked> asked(samplers);
    for (Asked& one : asked) {
        one.sampler = make(space);
        for (; one.next < kTrials; ++one.next) (void)ask_and_tell_us(*one.sampler, space, one.next);
    }
    const auto begin = Clock::now();
    std::vector<std::jthread> threads;
    for (int i = 0; i < askers; ++i)
        threads.emplace_back([&space, &one = asked[static_cast<std::size_t>(i) % samplers]] {
            for (;;) {
                const std::lock_guard held(one.lock);
                if (one.next >= kTrials + kMore) return;
                (void)ask_and_tell_us(*one.sampler, space, one.next++);
            }
        });
    threads.clear();
    return static_cast<double>(samplers * kMore) /
           std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

int main() {
    measure("10 parameters", floats(), {{100, 15}, {1'000, 40}, {10'000, 300}});
    measure("10 of every kind", every_kind(), {{100, 15}, {1'000, 40}, {10'000, 300}});
    measure_huge("10 parameters", floats());
    measure_huge("10 of every kind", every_kind());
    const double one = rate_of(floats(), 1, 1);
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    print("64 askers of one sampler, share of one asker's rate",
          100 * rate_of(floats(), 64, 1) / one, "%", "higher", 80);
    print("64 askers of a sampler a core, share of one asker's rate, per core",
          100 * rate_of(floats(), 64, cores) / one / static_cast<double>(cores), "%", "higher", 80);
    return 0;
}
