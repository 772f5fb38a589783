// Scoring candidates against all kernels, the part of an ask that grows with the history.
//
// The idea. For a point x the mixture's logarithm is a log-sum-exp over kernels of
//     base_i - sum_j ((x_j - mu_ij) / (sigma_ij sqrt 2))^2 + category terms + ln cell masses,
// where base_i (all normalisers) is already stored. The columns are read eight rows at a time; each
// block serves all points while it is in the first-level cache. Because every axis can only lower a
// term, a block is dropped as soon as all eight terms are below exp(-40) of what the point has
// gathered; the prior, counted first, makes that bound useful from the first block. With narrow
// kernels most blocks end after two axes and never reach the exponential.
//
// Cells of a grid. Their mass is a difference of two error functions, dearer than a density. But 24
// points lie in few cells of an axis, and kernels of equal centre and width are one class: a mass
// is computed once for a cell and class (cell_tables.h), and a block's masses are gathered once for
// all points. Where kernels share nothing, a block's masses are formed when a point first needs
// them.
//
// Why exact. What is dropped is below n * exp(-40), 4e-13 of the sum for n = 10^5. The exponential
// has a relative error below 4e-16.
//
// Same bits everywhere. A tie or near-tie between candidates must not depend on the machine that
// happens to serve the ask. So the lanes are eight on every machine, contraction into fused
// multiply-add is off for this file, and only the width of the registers differs.

#include "tuner/sampler/tpe/score.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tune::tuner {
namespace {

constexpr double kNegligible = 40;

/// Axes between two looks at whether a tile still matters.
constexpr std::size_t kCheckEvery = 3;

using AddAll = void (*)(const ScoreView&, const double*, const std::uint32_t*, BlockMasses&,
                        LogSum*);
using LogMasses = void (*)(double, double, const double*, const double*, std::span<double>);

#if defined(__clang__)
#define TUNE_TARGET_BEGIN(text) \
    _Pragma(TUNE_TEXT(clang attribute push(__attribute__((target(text))), apply_to = function)))
#define TUNE_TARGET_END _Pragma("clang attribute pop")
#else
#define TUNE_TARGET_BEGIN(text) _Pragma("GCC push_options") _Pragma(TUNE_TEXT(GCC target(text)))
#define TUNE_TARGET_END _Pragma("GCC pop_options")
#endif
#define TUNE_TEXT(...) #__VA_ARGS__

// Loops of a fixed, small count over registers: without this, -O2 keeps the registers in memory.
#if defined(__clang__)
#define TUNE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TUNE_UNROLL _Pragma("GCC unroll 8")
#endif

namespace base {
#define TUNE_LANES 2
template <class Mask>
static inline __attribute__((always_inline)) bool any_negative(const Mask& bits) {
    return (bits[0] | bits[1]) < 0;
}
#include "tuner/sampler/tpe/score_kernel.inc"
#undef TUNE_LANES
}  // namespace base

#if defined(__x86_64__)
TUNE_TARGET_BEGIN("avx2")
namespace avx2 {
#define TUNE_LANES 4
template <class Mask>
static inline __attribute__((always_inline)) bool any_negative(const Mask& bits) {
    return _mm256_movemask_pd(reinterpret_cast<__m256d>(bits)) != 0;
}
#include "tuner/sampler/tpe/score_kernel.inc"
#undef TUNE_LANES
}  // namespace avx2
TUNE_TARGET_END

TUNE_TARGET_BEGIN("avx512f,avx512dq")
namespace avx512 {
#define TUNE_LANES 8
template <class Mask>
static inline __attribute__((always_inline)) bool any_negative(const Mask& bits) {
    return _mm512_movepi64_mask(reinterpret_cast<__m512i>(bits)) != 0;
}
#include "tuner/sampler/tpe/score_kernel.inc"
#undef TUNE_LANES
}  // namespace avx512
TUNE_TARGET_END
#endif

struct Variant {
    const char* name;
    AddAll add_all;
    LogMasses log_masses;
};

std::vector<Variant> variants() {
    std::vector<Variant> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        found.push_back({"avx512", avx512::add_all, avx512::log_masses});
    if (__builtin_cpu_supports("avx2")) found.push_back({"avx2", avx2::add_all, avx2::log_masses});
#endif
    found.push_back({"base", base::add_all, base::log_masses});
    return found;
}

Variant& chosen() {
    static Variant variant = variants().front();
    return variant;
}

}  // namespace

void add_kernels(const ScoreView& view, std::span<const double> points,
                 std::span<const std::uint32_t> cells, std::span<LogSum> sums) {
    BlockMasses masses{Doubles(view.cells.size() * kLaneCount),
                       std::vector<std::size_t>(view.stepped.size())};
    chosen().add_all(view, points.data(), cells.data(), masses, sums.data());
}

void log_cell_masses(double low, double high, const double* mu, const double* inverse,
                     std::span<double> out) {
    chosen().log_masses(low, high, mu, inverse, out);
}

std::vector<const char*> score_variants() {
    std::vector<const char*> names;
    for (const Variant& variant : variants()) names.push_back(variant.name);
    return names;
}

void use_score_variant(const char* name) {
    for (const Variant& variant : variants()) {
        if (std::strcmp(variant.name, name) != 0) continue;
        chosen() = variant;
        return;
    }
    TUNE_CHECK(false, "no such variant on this machine");
}

}  // namespace tune::tuner
