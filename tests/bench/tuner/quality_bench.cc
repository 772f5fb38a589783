// How good the best value is after N trials: samplers side by side on analytic problems with known
// optima, paired seeds.
//
//   build/release/bin/tuner_quality_bench [--trials 100] [--seeds 10] [--workers 1]
//       [--variant plain] [--suite analytic] SAMPLER...
//
// SAMPLER is a type, or the JSON of a study file's `sampler`. After the 12 problems come finite
// ones (finite_problems.h); --suite takes one of the two.
//
// Regret is (best - optimum) / (median of one random draw - optimum); the table has its mean over
// problems and seeds, the geometric mean, the processor's time of ask + tell, and the mean
// difference of each sampler from the first one, in standard errors of the pairs. --json prints
// every run. Variants: `warped` bends every number's range, each to one end, as a missing `log`
// does; `noisy` adds normal noise of a fifth of that scale to what the sampler observes, and the
// regret is that of the trial which looked best.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/tuner/finite_problems.h"
#include "tuner/config/study_config.h"
#include "tuner/sampler/sampler.h"

namespace tune::tuner {
namespace {

using Values = std::vector<double>;
using Function = std::function<double(const Values&)>;
constexpr double kPi = 3.14159265358979323846;

struct Problem {
    std::string name;
    Space space;
    Function function;  // of the internal values, in order of name
    double optimum = 0;
};

Space box(std::size_t dimensions, double low, double high, double step = 0) {
    Json json;
    for (std::size_t i = 0; i < dimensions; ++i) {
        char name[8];
        std::snprintf(name, sizeof name, "x%02zu", i);
        json[name] = {{"float", {low, high}}};
        if (step > 0) json[name]["step"] = step;
    }
    return Space::from_json(json).value();
}

double branin(const Values& x) {
    const double a = x[1] - 5.1 / (4 * kPi * kPi) * x[0] * x[0] + 5 / kPi * x[0] - 6;
    return a * a + 10 * (1 - 1 / (8 * kPi)) * std::cos(x[0]) + 10;
}

double hartmann6(const Values& x) {
    constexpr double kA[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                 {0.05, 10, 17, 0.1, 8, 14},
                                 {3, 3.5, 1.7, 10, 17, 8},
                                 {17, 8, 0.05, 10, 0.1, 14}};
    constexpr double kP[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                 {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                 {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                 {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    constexpr double kC[4] = {1, 1.2, 3, 3.2};
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
        double inner = 0;
        for (int j = 0; j < 6; ++j)
            inner += kA[i][j] * (x[static_cast<std::size_t>(j)] - kP[i][j]) *
                     (x[static_cast<std::size_t>(j)] - kP[i][j]);
        sum -= kC[i] * std::exp(-inner);
    }
    return sum;
}

double ackley(const Values& x) {
    double squares = 0;
    double cosines = 0;
    for (const double v : x) {
        squares += v * v;
        cosines += std::cos(2 * kPi * v);
    }
    const auto n = static_cast<double>(x.size());
    return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(cosines / n) + 20 +
           std::exp(1.0);
}

double styblinski_tang(const Values& x) {
    double sum = 0;
    for (const double v : x) sum += v * v * v * v - 16 * v * v + 5 * v;
    return sum / 2;
}

double michalewicz(const Values& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        sum -=
            std::sin(x[i]) * std::pow(std::sin(static_cast<double>(i + 1) * x[i] * x[i] / kPi), 20);
    return sum;
}

double rastrigin(const Values& x) {
    double sum = 10 * static_cast<double>(x.size());
    for (const double v : x) sum += v * v - 10 * std::cos(2 * kPi * v);
    return sum;
}

double log_rosenbrock(const Values& x) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < x.size(); ++i)
        sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
    return std::log1p(sum);
}

double griewank(const Values& x) {
    double sum = 0;
    double product = 1;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sum += x[i] * x[i] / 4000;
        product *= std::cos(x[i] / std::sqrt(static_cast<double>(i + 1)));
    }
    return 1 + sum - product;
}

double levy(const Values& x) {
    const auto w = [&](std::size_t i) { return 1 + (x[i] - 1) / 4; };
    double sum = std::pow(std::sin(kPi * w(0)), 2);
    for (std::size_t i = 0; i + 1 < x.size(); ++i)
        sum += std::pow(w(i) - 1, 2) * (1 + 10 * std::pow(std::sin(kPi * w(i) + 1), 2));
    const double last = w(x.size() - 1);
    return sum + std::pow(last - 1, 2) * (1 + std::pow(std::sin(2 * kPi * last), 2));
}

/// As a learning problem: three numbers on a logarithmic scale, two integers, two categories.
Problem learner() {
    const Json json = {{"batch", {{"int", {16, 512}}, {"log", true}}},
                       {"decay", {{"float", {1e-6, 1e-1}}, {"log", true}}},
                       {"depth", {{"int", {1, 8}}}},
                       {"loss", {{"choice", {"a", "b", "c"}}}},
                       {"lr", {{"float", {1e-5, 1}}, {"log", true}}},
                       {"opt", {{"choice", {"sgd", "adam", "lamb", "lion"}}}},
                       {"width", {{"int", {8, 1024}}, {"log", true}}}};
    const auto function = [](const Values& x) {
        const double best_lr = x[5] == 0 ? -1.5 : x[5] == 1 ? -3 : -2.5;
        return std::pow(std::log10(x[4]) - best_lr - 0.3 * std::log2(x[0] / 64) / 3, 2) +
               0.1 * std::pow(std::log10(x[1]) + 4, 2) + 0.05 * std::pow(x[2] - 5, 2) +
               0.2 * std::fabs(std::log2(x[6]) - 7) + (x[3] == 1 ? 0 : 0.3) +
               (x[5] == 1   ? 0
                : x[5] == 3 ? 0.1
                            : 0.4);
    };
    // lr at its best for every batch; width 128, depth 5, loss b, adam.
    return {"learner (mixed, 7)", Space::from_json(json).value(), function, 0};
}

/// Parameters that exist for one optimizer only.
Problem conditional() {
    const Json json = {{"beta", {{"float", {0.5, 0.999}}, {"when", {{"opt", "adam"}}}}},
                       {"lr", {{"float", {1e-5, 1}}, {"log", true}}},
                       {"momentum", {{"float", {0, 0.99}}, {"when", {{"opt", "sgd"}}}}},
                       {"nesterov", {{"choice", {false, true}}, {"when", {{"opt", "sgd"}}}}},
                       {"opt", {{"choice", {"adam", "sgd"}}}}};
    const auto function = [](const Values& x) {
        const double at = std::log10(x[1]);
        if (x[4] == 0) return 0.2 + std::pow(at + 3, 2) + 4 * std::pow(x[0] - 0.9, 2);
        return std::pow(at + 1 + 2 * (x[2] - 0.9), 2) + 2 * std::pow(x[2] - 0.9, 2) +
               (x[3] == 1 ? 0 : 0.1);
    };
    return {"conditional (5)", Space::from_json(json).value(), function, 0};
}

std::vector<Problem> problems() {
    const Json branin_space = {{"x0", {{"float", {-5, 10}}}}, {"x1", {{"float", {0, 15}}}}};
    return {{"Branin (2)", Space::from_json(branin_space).value(), &branin, 0.39788735772973816},
            {"Hartmann (6)", box(6, 0, 1), &hartmann6, -3.32236801141551},
            {"Ackley (5)", box(5, -15, 30), &ackley, 0},
            {"Styblinski-Tang (5)", box(5, -5, 5), &styblinski_tang, -39.16616570377142 * 5},
            {"Michalewicz (4)", box(4, 0, kPi), &michalewicz, -3.6988571},
            {"Rastrigin, step 0.1 (8)", box(8, -5, 5, 0.1), &rastrigin, 0},
            {"log Rosenbrock (6)", box(6, -2, 2), &log_rosenbrock, 0},
            {"Griewank (4)", box(4, -50, 20), &griewank, 0},
            {"Levy (8)", box(8, -10, 10), &levy, 0},
            {"Sphere, integers (7)", box(7, -5, 5, 1),
             [](const Values& x) {
                 double s = 0;
                 for (const double v : x) s += (v - 2) * (v - 2);
                 return s;
             },
             0},
            learner(),
            conditional()};
}

/// Every number's range bent towards its low end or, every second one, its high end.
Problem bent(Problem problem) {
    const auto function = problem.function;
    const Space space = problem.space;
    problem.function = [function, space](const Values& values) {
        Values moved = values;
        for (std::size_t i = 0; i < space.size(); ++i) {
            const Parameter& parameter = space[i];
            if (parameter.kind == Kind::kChoice || !is_active(values[i])) continue;
            const auto at = [&](double v) { return parameter.log ? std::log(v) : v; };
            const double low = at(parameter.low);
            const double width = at(parameter.high) - low;
            const double share = (at(values[i]) - low) / width;
            const auto curve = [](double x) { return std::expm1(4 * x) / std::expm1(4); };
            const double curved = i % 2 == 0 ? curve(share) : 1 - curve(1 - share);
            const double position = low + width * curved;
            moved[i] = parameter.log ? std::exp(position) : position;
        }
        return function(moved);
    };
    return problem;
}

double now_s() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Outcome {
    double best = 0;
    double seconds = 0;  // in the sampler
};

struct Schedule {
    std::size_t trials = 100;
    std::size_t workers = 1;
    double noise = 0;  // deviation
};

SamplerConfig config_of(const std::string& word) {
    const Json sampler = word.starts_with("{") ? parse_json(word).value() : Json(word);
    return study_config_from_json({{"sampler", sampler}}).value().sampler;
}

Outcome run(const Problem& problem, const std::string& word, const Schedule& schedule,
            std::uint64_t seed) {
    const auto sampler = make_sampler(problem.space, config_of(word), Goal::kMinimize, seed);
    Outcome outcome{std::numeric_limits<double>::infinity(), 0};
    double best_seen = outcome.best;
    std::deque<Observation> running;
    const auto finish_oldest = [&] {
        Observation seen = running.front();
        running.pop_front();
        seen.state = Observation::State::kComplete;
        const double value = problem.function(seen.point);
        std::mt19937_64 random(1000 * seed + seen.number);
        seen.value = value + std::normal_distribution<double>(0, 1)(random) * schedule.noise;
        if (seen.value < best_seen) {
            best_seen = seen.value;
            outcome.best = value;
        }
        const double begin = now_s();
        static_cast<void>(sampler->observe(seen));
        outcome.seconds += now_s() - begin;
    };
    for (std::uint64_t number = 0; number < schedule.trials && !sampler->is_exhausted(); ++number) {
        if (running.size() == schedule.workers) finish_oldest();
        const double begin = now_s();
        Observation seen;
        seen.number = number;
        seen.point = sampler->suggest(number);
        static_cast<void>(sampler->observe(seen));
        outcome.seconds += now_s() - begin;
        running.push_back(std::move(seen));
    }
    while (!running.empty()) finish_oldest();
    return outcome;
}

/// The median of one random draw.
double random_median(const Problem& problem) {
    SamplerConfig config = sampler_named("random");
    config.duplicates = Duplicates::kAllow;
    const auto sampler = make_sampler(problem.space, config, Goal::kMinimize, 99);
    std::vector<double> values;
    for (std::uint64_t i = 0; i < 2001; ++i)
        values.push_back(problem.function(sampler->suggest(i)));
    std::nth_element(values.begin(), values.begin() + 1000, values.end());
    return values[1000];
}

struct Options {
    std::size_t trials = 100;
    std::size_t seeds = 10;
    std::size_t workers = 1;
    std::string variant = "plain";
    bool json = false;
    std::string suite;  // "analytic", "finite" or empty: both
    std::vector<std::string> samplers;
};

Options read_options(int count, char** words) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const auto number = [&] {
            return i + 1 < count ? std::strtoul(words[++i], nullptr, 10) : 1;
        };
        if (word == "--trials")
            options.trials = number();
        else if (word == "--seeds")
            options.seeds = number();
        else if (word == "--workers")
            options.workers = std::max<std::size_t>(number(), 1);
        else if (word == "--suite")
            options.suite = i + 1 < count ? words[++i] : "";
        else if (word == "--variant" && i + 1 < count)
            options.variant = words[++i];
        else if (word == "--json")
            options.json = true;
        else
            options.samplers.push_back(word);
    }
    if (options.samplers.empty()) options.samplers = {"random", "qmc", "tpe", "gp"};
    return options;
}

std::vector<Problem> problems_of(const std::string& suite) {
    std::vector<Problem> chosen;
    if (suite != "finite") chosen = problems();
    if (suite == "analytic") return chosen;
    for (bench::FiniteProblem& problem : bench::finite_problems())
        chosen.push_back({std::move(problem.name), std::move(problem.space),
                          std::move(problem.function), problem.optimum});
    return chosen;
}

/// The mean of differences of pairs, over its standard error.
double standard_errors(const std::vector<double>& differences) {
    const auto n = static_cast<double>(differences.size());
    double mean = 0;
    for (const double d : differences) mean += d / n;
    double variance = 0;
    for (const double d : differences) variance += (d - mean) * (d - mean) / (n - 1);
    return variance > 0 ? mean / std::sqrt(variance / n) : 0;
}

void print_table(const Options& options) {
    std::printf("%s, %zu trials, %zu workers, mean over %zu seeds: normalised regret\n\n%-26s",
                options.variant.c_str(), options.trials, options.workers, options.seeds, "problem");
    for (const std::string& sampler : options.samplers) std::printf("%10.9s", sampler.c_str());
    std::printf("\n");
    std::vector<double> sums(options.samplers.size());
    std::vector<double> logs(options.samplers.size());
    std::vector<double> seconds(options.samplers.size());
    // Regret less that of the first sampler with the same seed; and of the logarithms.
    std::vector<std::vector<double>> apart(options.samplers.size());
    std::vector<std::vector<double>> logs_apart(options.samplers.size());
    std::vector<Problem> all = problems_of(options.suite);
    for (Problem& problem : all) {
        if (options.variant == "warped") problem = bent(std::move(problem));
        const double scale = random_median(problem) - problem.optimum;
        const Schedule schedule{options.trials, options.workers,
                                options.variant == "noisy" ? 0.2 * scale : 0};
        std::printf("%-26s", problem.name.substr(0, 25).c_str());
        std::vector<double> firsts;
        for (std::size_t s = 0; s < options.samplers.size(); ++s) {
            double regret = 0;
            for (std::uint64_t seed = 0; seed < options.seeds; ++seed) {
                const Outcome outcome = run(problem, options.samplers[s], schedule, seed);
                const double one = std::max(outcome.best - problem.optimum, 0.0) / scale;
                regret += one / static_cast<double>(options.seeds);
                logs[s] += std::log(std::max(one, 1e-6));
                if (s == 0) firsts.push_back(one);
                apart[s].push_back(one - firsts[seed]);
                logs_apart[s].push_back(
                    std::log(std::max(one, 1e-6) / std::max(firsts[seed], 1e-6)));
                seconds[s] += outcome.seconds;
                if (options.json)
                    std::fprintf(stderr, "%s\n",
                                 to_text(Json{{"problem", problem.name},
                                              {"sampler", options.samplers[s]},
                                              {"seed", seed},
                                              {"regret", one}})
                                     .c_str());
            }
            sums[s] += regret;
            std::printf("%10.5f", regret);
            std::fflush(stdout);
        }
        std::printf("\n");
    }
    const auto count = static_cast<double>(all.size());
    const auto runs = count * static_cast<double>(options.seeds);
    std::printf("%-26s", "mean");
    for (const double sum : sums) std::printf("%10.5f", sum / count);
    std::printf("\n%-26s", "geometric mean");
    for (const double sum : logs) std::printf("%10.5f", std::exp(sum / runs));
    std::printf("\n%-26s", "mean less first, s.e.");
    for (const auto& differences : apart) std::printf("%10.1f", standard_errors(differences));
    std::printf("\n%-26s", "same of logarithms");
    for (const auto& differences : logs_apart) std::printf("%10.1f", standard_errors(differences));
    std::printf("\n%-26s", "processor ms a trial");
    for (const double sum : seconds)
        std::printf("%10.3f", 1000 * sum / runs / static_cast<double>(options.trials));
    std::printf("\n");
}

}  // namespace
}  // namespace tune::tuner

int main(int count, char** words) {
    tune::tuner::print_table(tune::tuner::read_options(count, words));
}
