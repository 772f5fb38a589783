// Dominated volume that each sampler reaches on problems of several objectives:
//
//     tuner_several_bench [trials=300] [seeds=10]
//
// One line a problem, sampler and seed: the volume of feasible trials below the reference point
// (11, 11), for DTLZ2 (2.5, 2.5, 2.5), and ms a trial. several_peers.py prints the same for Optuna
// and makes a table of both.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json.h"
#include "tests/bench/tuner/several_problems.h"
#include "tuner/sampler/nsga/hypervolume.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {
namespace {

struct Problem {
    const char* name;
    std::size_t parameters;
    std::size_t objectives;
    double reference;
    std::function<std::vector<double>(const std::vector<double>&)> values;
    std::function<double(const std::vector<double>&)> violation = {};
};

std::vector<Problem> problems() {
    return {{"zdt1", 30, 2, 11, [](const auto& x) { return bench::zdt(1, x); }},
            {"zdt2", 30, 2, 11, [](const auto& x) { return bench::zdt(2, x); }},
            {"zdt3", 30, 2, 11, [](const auto& x) { return bench::zdt(3, x); }},
            {"dtlz2", 12, 3, 2.5, bench::dtlz2},
            {"c2dtlz2", 12, 3, 2.5, bench::dtlz2, bench::c2dtlz2}};
}

double volume_of(const Problem& problem, std::string_view type, std::uint64_t seed,
                 std::uint64_t trials) {
    Json spec = Json::object();
    for (std::size_t i = 0; i < problem.parameters; ++i)
        spec["x" + std::to_string(10 + i)] = {{"float", {0, 1}}};
    const Space space = Space::from_json(spec).value();
    SamplerConfig config = sampler_named(type);
    Objectives objectives(Goal::kMinimize);
    objectives.goals.assign(problem.objectives, Goal::kMinimize);
    objectives.is_constrained = problem.violation != nullptr;
    const auto sampler = make_sampler(space, config, objectives, seed);
    LossTable reached(problem.objectives);
    for (std::uint64_t number = 0; number < trials; ++number) {
        Observation seen;
        seen.number = number;
        seen.state = Observation::State::kComplete;
        seen.point = sampler->suggest(number);
        const std::vector<double> values = problem.values(seen.point);
        seen.value = values[0];
        seen.more_values.assign(values.begin() + 1, values.end());
        if (problem.violation) seen.violation = problem.violation(seen.point);
        if (!sampler->observe(seen)) std::abort();
        const bool is_below = std::all_of(values.begin(), values.end(),
                                          [&](double value) { return value <= problem.reference; });
        if (is_below && seen.violation == 0) reached.add(values);
    }
    return hypervolume(reached, std::vector<double>(problem.objectives, problem.reference));
}

void run(std::uint64_t trials, std::uint64_t seeds) {
    for (const Problem& problem : problems())
        for (const char* const type : {"random", "tpe", "nsga2", "nsga3"})
            for (std::uint64_t seed = 0; seed < seeds; ++seed) {
                const auto begin = std::chrono::steady_clock::now();
                const double volume = volume_of(problem, type, seed, trials);
                const std::chrono::duration<double, std::milli> spent =
                    std::chrono::steady_clock::now() - begin;
                std::printf("%-7s ours   %-7s %3llu %10.5f %9.3f ms/trial\n", problem.name, type,
                            static_cast<unsigned long long>(seed), volume,
                            spent.count() / static_cast<double>(trials));
            }
}

}  // namespace
}  // namespace tune::tuner

int main(int argc, char** argv) {
    const auto number = [&](int at, std::uint64_t fallback) {
        return argc > at ? std::strtoull(argv[at], nullptr, 10) : fallback;
    };
    tune::tuner::run(number(1, 300), number(2, 10));
}
