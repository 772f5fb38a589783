#pragma once
// The sum over kernels at the heart of an ask: ln sum_i w_i prod_j k_ij(x_j) for a few points and
// many kernels. Private to tuner/sampler.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tuner/sampler/tpe/parzen.h"

namespace tune::tuner {

/// Running ln of a sum of exponentials: sum = exp(max) * (lanes[0] + ... + lanes[7]).
struct LogSum {
    alignas(64) double lanes[kLaneCount] = {};
    double max = 0;
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
    const std::uint32_t* classes;  // by row; null: masses are formed where they are needed
    std::size_t cells_begin;       // of its cells, in ScoreView::cells
    std::size_t cells_end;
};

/// A cell of a stepped axis that some of the points lie in.
struct CellView {
    double low;
    double high;
    const double* log_mass;  // by class of kernel
};

/// The masses of eight kernels at each cell, and in which block of rows each axis has them.
struct BlockMasses {
    Doubles log_mass;                 // [cells][8]
    std::vector<std::size_t> filled;  // [stepped]: the block's end
};

/// An estimator's columns by kind of axis. A point is given as its continuous positions, then its
/// categories; and as the index in `cells` of its cell on each stepped axis.
struct ScoreView {
    const double* base = nullptr;
    const double* weights = nullptr;
    std::size_t rows = 0;
    std::size_t points = 0;  // whose density is asked for
    std::vector<ContinuousView> continuous;
    std::vector<CategoryView> categories;
    std::vector<SteppedView> stepped;
    std::vector<CellView> cells;

    [[nodiscard]] std::size_t stride() const { return continuous.size() + categories.size(); }
};

/// Adds all kernels to the sums of `points` ([sums.size()][stride]), whose cells are `cells`
/// ([stepped][sums.size()]). Eight kernels that are all below exp(-40) of what a point has gathered
/// are left out: together less than 4e-13 of its sum for 10^5 kernels.
void add_kernels(const ScoreView& view, std::span<const double> points,
                 std::span<const std::uint32_t> cells, std::span<LogSum> sums);

/// ln P(low < X < high) of normal distributions with these centres and sqrt(1/2) / deviation.
/// Relative error of the probability below 1e-11 where it is not negligible. REQUIRES: out.size()
/// is a multiple of eight.
void log_cell_masses(double low, double high, const double* mu, const double* inverse,
                     std::span<double> out);

/// The instruction sets this machine can run, for tests: each gives the same bits. "avx512",
/// "avx2", "base".
[[nodiscard]] std::vector<const char*> score_variants();

/// Uses one of them from now on (tests only; not thread-safe).
void use_score_variant(const char* name);

}  // namespace tune::tuner
