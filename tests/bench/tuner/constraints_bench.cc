// TPE with constraints: one joint model beside one model a constraint (sampler.constraints), on the
// problems on which the default was chosen.
//
//     tuner_constraints_bench [trials=100] [seeds=20]
//
// One line a problem: the mean distance of the best feasible value from the optimum as a share of
// the range of values (1 where no trial was feasible), with its standard error, for random search
// and both rules; and of the seeds in how many the second rule was the better one.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/tpe/tpe_options.h"

namespace tune::tuner {
namespace {

using Values = std::vector<double>;

struct Problem {
    const char* name;
    std::size_t parameters;  // in [0, 1]
    double optimum;          // the least feasible value
    double range;            // of values
    std::function<double(const Values&)> value;
    std::function<Values(const Values&)> offs;  // above 0: beyond the bound
};

double branin(const Values& u) {
    const double x = 15 * u[0] - 5;
    const double y = 15 * u[1];
    const double pi = std::numbers::pi;
    const double a = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
    return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double square_sum(const Values& u, double center) {
    double sum = 0;
    for (const double v : u) sum += (v - center) * (v - center);
    return sum;
}

std::vector<Problem> problems() {
    const double pi = std::numbers::pi;
    return {// Branin's function within a disc about one of its three minima.
            {"branin_disc", 2, 0.397887, 300, branin,
             [](const Values& u) {
                 return Values{std::hypot(15 * u[0] - 5 - 2.5, 15 * u[1] - 7.5) - std::sqrt(50.0)};
             }},
            // Gramacy et al. 2016: a linear value, a wavy and a round constraint.
            {"gramacy", 2, 0.599788, 1.4, [](const Values& u) { return u[0] + u[1]; },
             [pi](const Values& u) {
                 return Values{
                     1.5 - u[0] - 2 * u[1] - 0.5 * std::sin(2 * pi * (u[0] * u[0] - 2 * u[1])),
                     u[0] * u[0] + u[1] * u[1] - 1.5};
             }},
            // A corner of a cube in six dimensions, by one bound on each of three coordinates.
            {"corner", 6, 3 * 0.49, 6, [](const Values& u) { return square_sum(u, 0.1); },
             [](const Values& u) {
                 return Values{0.8 - u[0], 0.8 - u[1], 0.8 - u[2]};
             }},
            // A ball in four dimensions that the value leads away from.
            {"ball", 4, 4 * 0.16, 4, [](const Values& u) { return square_sum(u, 0.2); },
             [](const Values& u) { return Values{square_sum(u, 0.8) - 0.16}; }},
            // Nearly all of the cube is allowed: the constraint should cost nothing.
            {"loose", 5, 0, 2, [](const Values& u) { return square_sum(u, 0.6); },
             [](const Values& u) { return Values{0.05 - u[0]}; }},
            // The same bound given three times, which the joint rule cannot notice.
            {"thrice", 4, 0.04, 2, [](const Values& u) { return square_sum(u, 0.5); },
             [](const Values& u) { return Values(3, 0.7 - u[0]); }}};
}

double gap_of(const Problem& problem, std::string_view type, ConstraintRule rule,
              std::uint64_t seed, std::uint64_t trials) {
    Json spec = Json::object();
    for (std::size_t i = 0; i < problem.parameters; ++i)
        spec["x" + std::to_string(10 + i)] = {{"float", {0, 1}}};
    SamplerConfig config = sampler_named(type);
    config.edit<TpeOptions>().constraints = rule;
    Objectives objectives(Goal::kMinimize);
    objectives.is_constrained = true;
    const auto sampler = make_sampler(Space::from_json(spec).value(), config, objectives, seed);
    double gap = 1;
    for (std::uint64_t number = 0; number < trials; ++number) {
        Observation seen;
        seen.number = number;
        seen.state = Observation::State::kComplete;
        seen.point = sampler->suggest(number);
        seen.value = problem.value(seen.point);
        for (const double off : problem.offs(seen.point)) {
            seen.violations.push_back(std::max(0.0, off));
            seen.violation += seen.violations.back();
        }
        if (seen.violation == 0)
            gap = std::min(gap, std::max(0.0, seen.value - problem.optimum) / problem.range);
        if (!sampler->observe(seen)) std::abort();
    }
    return gap;
}

void run(std::uint64_t trials, std::uint64_t seeds) {
    for (const Problem& problem : problems()) {
        std::printf("%-12s", problem.name);
        std::vector<Values> gaps;
        for (const auto& [type, rule] :
             {std::pair(std::string_view("random"), ConstraintRule::kJoint),
              std::pair(std::string_view("tpe"), ConstraintRule::kJoint),
              std::pair(std::string_view("tpe"), ConstraintRule::kEach)}) {
            Values& found = gaps.emplace_back();
            double sum = 0;
            double squares = 0;
            for (std::uint64_t seed = 0; seed < seeds; ++seed) {
                found.push_back(gap_of(problem, type, rule, seed, trials));
                sum += found.back();
                squares += found.back() * found.back();
            }
            const auto count = static_cast<double>(seeds);
            const double mean = sum / count;
            const double variance = std::max(0.0, squares / count - mean * mean);
            std::printf("  %s %.5f +- %.5f",
                        type == "random"                 ? "random"
                        : rule == ConstraintRule::kJoint ? "joint"
                                                         : "each",
                        mean, std::sqrt(variance / std::max(1.0, count - 1)));
        }
        int better = 0;
        for (std::size_t i = 0; i < gaps[1].size(); ++i) better += gaps[2][i] < gaps[1][i] ? 1 : 0;
        std::printf("  each better: %d of %zu\n", better, gaps[1].size());
        std::fflush(stdout);
    }
}

}  // namespace
}  // namespace tune::tuner

int main(int argc, char** argv) {
    const auto number = [&](int at, std::uint64_t fallback) {
        return argc > at ? std::strtoull(argv[at], nullptr, 10) : fallback;
    };
    tune::tuner::run(number(1, 100), number(2, 20));
}
