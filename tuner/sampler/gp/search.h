#pragma once
// Where the acquisition is greatest. Private to tuner/sampler.

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <vector>

#include "tuner/sampler/gp/encoding.h"
#include "tuner/sampler/gp/process.h"
#include "tuner/sampler/uniform.h"

namespace tune::tuner {

/// What a row must keep: features with a given value.
struct FixedFeatures {
    std::vector<bool> is_fixed;
    std::vector<double> values;
};

struct SearchProblem {
    const Encoding& encoding;
    GaussianProcess* model = nullptr;
    FixedFeatures fixed;
    /// Makes a row one that a point can have: grids, and what conditions switch off.
    std::function<std::vector<double>(const std::vector<double>&)> canonical;
    /// Good rows to start from besides random ones.
    std::vector<std::vector<double>> starts;
    /// Where numbers may lie, one pair a feature.
    std::vector<double> low;
    std::vector<double> high;
    /// Rows that must not be proposed; empty: all may.
    std::function<bool(const std::vector<double>&)> is_forbidden = {};
};

/// The best row found: random rows and steps around `starts`, then a climb from the best few. A
/// function of (source, trial, problem). Cost: a few hundred predictions.
[[nodiscard]] std::vector<double> find_best_row(const SearchProblem& problem, UniformSource& source,
                                                std::uint64_t trial);

}  // namespace tune::tuner
