#pragma once
// The sum over kernels at the heart of an ask: ln sum_i w_i prod_j k_ij(x_j) for a few points and
// many kernels. Private to tuner/sampler.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/sampler/parzen.h"

namespace tune::tuner {

/// Running ln of a sum of exponentials: sum = exp(max) * (lanes[0] + ... + lanes[7]).
struct LogSum {
    double max = 0;
    double lanes[kLaneCount] = {};
};

struct ContinuousView {
    const double* mu;
    const double* inverse;
};

struct CategoryView {
    const double* codes;
    double log_own;
    double log_other;
};

struct SteppedView {
    const double* mu;
    const double* inverse;
    const std::uint32_t* classes;
    const CellTables* cells;
};

/// An estimator's columns by kind of axis. A point is given in the order continuous, categories,
/// and the two ends of its cell on each stepped axis.
struct ScoreView {
    const double* base = nullptr;
    const double* weights = nullptr;
    std::size_t rows = 0;
    std::vector<ContinuousView> continuous;
    std::vector<CategoryView> categories;
    std::vector<SteppedView> stepped;

    [[nodiscard]] std::size_t stride() const {
        return continuous.size() + categories.size() + 2 * stepped.size();
    }
};

/// Adds all kernels to the sums of `points` ([sums.size()][stride]). Kernels that are below
/// exp(-44) of a point's sum are left out: together less than 1e-14 of it for 10^5 kernels.
/// `tables`: of each point's cells, [sums.size()][stepped].
void add_kernels(const ScoreView& view, std::span<const double> points,
                 std::span<CellTable* const> tables, std::span<LogSum> sums);

/// The instruction sets this machine can run, for tests: each gives the same bits. "avx512",
/// "avx2", "base".
[[nodiscard]] std::vector<const char*> score_variants();

/// Uses one of them from now on (tests only; not thread-safe).
void use_score_variant(const char* name);

}  // namespace tune::tuner
