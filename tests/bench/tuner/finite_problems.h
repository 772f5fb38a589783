#pragma once
// Problems on finite spaces for quality_bench.cc: made-up tables of learning results, rough as real
// ones are (a fixed disturbance a point), with optima found by looking at every point. They are for
// choosing settings; the comparison with others (quality.py) reports on real tables.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/sampler/simple/finite_points.h"
#include "tuner/space/space.h"

namespace tune::tuner::bench {

struct FiniteProblem {
    std::string name;
    Space space;
    std::function<double(const std::vector<double>&)> function;
    double optimum = 0;
};

/// A number in [0, 1) for each list of small integers.
inline double disturbance(std::uint64_t salt, const std::vector<double>& values) {
    std::uint64_t hash = salt * 0x9E3779B97F4A7C15u + 1;
    for (const double value : values) {
        const auto number = std::isnan(value) ? 977 : static_cast<std::uint64_t>(8 * value + 8);
        hash = (hash ^ number) * 0xBF58476D1CE4E5B9u;
        hash ^= hash >> 29;
        hash *= 0x94D049BB133111EBu;
        hash ^= hash >> 32;
    }
    return static_cast<double>(hash >> 11) * 0x1p-53;
}

/// A space of integers from 0, one a number in `ints`, and of choices.
inline Space table_space(const std::vector<int>& ints, const std::vector<int>& choices) {
    Json json;
    for (std::size_t i = 0; i < ints.size(); ++i)
        json["i" + std::to_string(i)] = {{"int", {0, ints[i] - 1}}};
    for (std::size_t i = 0; i < choices.size(); ++i) {
        Json values = Json::array();
        for (int v = 0; v < choices[i]; ++v) values.push_back(v);
        json["a" + std::to_string(i)] = {{"choice", values}};
    }
    return Space::from_json(json).value();
}

inline FiniteProblem table(std::string name, Space space,
                           std::function<double(const std::vector<double>&)> function) {
    std::vector<std::vector<double>> levels;
    for (const Parameter& parameter : space.parameters()) levels.push_back(levels_of(parameter, 0));
    double least = std::numeric_limits<double>::infinity();
    const std::vector<Point> points = list_points(space, levels).value();
    for (const Point& point : points) least = std::min(least, function(point));
    return {std::move(name), std::move(space), std::move(function), least};
}

/// Integers with a valley along two of them and a plateau where one of them is too large.
inline double network(const std::vector<double>& x) {
    const double valley = x[0] / 7 + x[1] / 11 - 1.1;
    const double depth = x[2] / 5 - 0.6;
    const double rate = x[3] / 8 - 0.4 - 0.2 * depth;
    const double loss = 0.05 + 2 * valley * valley + depth * depth + 3 * rate * rate +
                        0.3 * std::fabs(x[4] / 4 - 0.75) + (x[5] == 1 ? 0 : 0.15);
    return (x[3] > 6 ? 1.5 : loss) + 0.08 * disturbance(1, x);
}

/// Operations on the six edges of a cell: each has its worth, and so has each pair.
inline double cell(const std::vector<double>& x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const auto at = static_cast<double>(i);
        sum += disturbance(2, {at, x[i]});
        for (std::size_t j = 0; j < i; ++j)
            sum += 0.35 * disturbance(3, {at, static_cast<double>(j), x[i], x[j]});
    }
    return std::exp(sum - 4) + 0.02 * disturbance(4, x);
}

/// Four choices (first, by name), four integers; errors over some orders of magnitude.
inline double regressor(const std::vector<double>& x) {
    const double rate = x[4] - (x[0] == 0 ? 2 : 4);
    const double width = x[5] + x[6] - 7;
    return std::exp(-4 + 0.35 * rate * rate + 0.12 * width * width + (x[1] == 2 ? 0 : 0.5) +
                    (x[2] == x[3] ? 0.2 : 0.7) + 0.25 * x[7] + 0.5 * disturbance(5, x));
}

/// Two ranges that only matter together: a narrow ridge between two plateaus.
inline double machine(const std::vector<double>& x) {
    const double ridge = x[0] + 0.7 * x[1] - 9;
    return 1 - std::exp(-ridge * ridge / 6) * (0.6 + 0.4 * std::exp(-(x[2] - 2) * (x[2] - 2) / 8)) +
           0.03 * disturbance(6, x);
}

/// A tree: few values of each kind, many of them equally good.
inline double tree(const std::vector<double>& x) {
    const double depth = std::max(x[1] - 6, 0.0) * 0.02 + std::max(4 - x[1], 0.0) * 0.2;
    return 0.1 + depth + (x[0] == 2 ? 0 : 0.05) + 0.03 * x[2] + 0.05 * disturbance(7, {x[0], x[2]});
}

inline std::vector<FiniteProblem> finite_problems() {
    return {
        table("network (5 ints, 1 of 3)", table_space({8, 12, 6, 9, 5, 3}, {}), &network),
        table("cell (6 of 5)", table_space({}, {5, 5, 5, 5, 5, 5}), &cell),
        table("regressor (4 of 2-4, 4 ints)", table_space({7, 6, 6, 4}, {2, 3, 4, 4}), &regressor),
        table("machine (3 ints)", table_space({10, 12, 9}, {}), &machine),
        table("tree (1 of 4, 2 ints)", table_space({12, 5}, {4}), &tree)};
}

}  // namespace tune::tuner::bench
