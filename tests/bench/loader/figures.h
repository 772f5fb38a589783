#pragma once
// How the loader's benchmarks take a time and say a figure.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json.h"

namespace tune::loader {

/// The best of three: what the machine can do when nothing else disturbs it.
inline double best_seconds_of(const std::function<void()>& work) {
    double best = 1e9;
    for (int i = 0; i < 3; ++i) {
        const auto start = std::chrono::steady_clock::now();
        work();
        best = std::min(
            best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return best;
}

/// One line for tests/bench/run.py. `better`: "higher" or "lower".
inline void print_figure(const std::string& name, double value, const char* unit,
                         const char* better, std::optional<double> target = {}) {
    Json figure = {{"name", name}, {"value", value}, {"unit", unit}, {"better", better}};
    if (target) figure["target"] = *target;
    std::printf("%s\n", figure.dump().c_str());
    std::fflush(stdout);
}

}  // namespace tune::loader
