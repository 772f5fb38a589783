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
// Why exact. What is dropped is below n * exp(-40), 4e-13 of the sum for n = 10^5. The exponential
// has a relative error below 4e-16.
//
// Same bits everywhere. A tie or near-tie between candidates must not depend on the machine that
// happens to serve the ask. So the lanes are eight on every machine, contraction into fused
// multiply-add is off for this file, and only the width of the registers differs.

#include "tuner/sampler/score.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tune::tuner {
namespace {

constexpr double kNegligible = 40;

/// Axes between two looks at whether a tile still matters.
constexpr std::size_t kCheckEvery = 3;

/// Computes the masses that are NaN: not in the table yet.
void fill_missing(const CellTables& cells, CellTable& table, const std::uint32_t* classes,
                  double* masses) {
    for (std::size_t k = 0; k < kLaneCount; ++k) {
        if (masses[k] == masses[k]) continue;
        cells.fill(table, classes[k]);
        masses[k] = table.log_mass[classes[k]];
    }
}

using AddAll = void (*)(const ScoreView&, const double*, CellTable* const*, std::span<LogSum>);

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
template <class Pack>
static inline __attribute__((always_inline)) Pack gather(const double* from,
                                                         const std::uint32_t* at) {
    return Pack{from[at[0]], from[at[1]]};
}
#include "tuner/sampler/score_kernel.inc"
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
template <class Pack>
static inline __attribute__((always_inline)) Pack gather(const double* from,
                                                         const std::uint32_t* at) {
    return reinterpret_cast<Pack>(_mm256_mask_i32gather_pd(
        _mm256_setzero_pd(), from, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
        _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), sizeof(double)));
}
#include "tuner/sampler/score_kernel.inc"
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
template <class Pack>
static inline __attribute__((always_inline)) Pack gather(const double* from,
                                                         const std::uint32_t* at) {
    return reinterpret_cast<Pack>(_mm512_mask_i32gather_pd(
        _mm512_setzero_pd(), 0xFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)), from,
        sizeof(double)));
}
#include "tuner/sampler/score_kernel.inc"
#undef TUNE_LANES
}  // namespace avx512
TUNE_TARGET_END
#endif

struct Variant {
    const char* name;
    AddAll add_all;
};

std::vector<Variant> variants() {
    std::vector<Variant> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        found.push_back({"avx512", avx512::add_all});
    if (__builtin_cpu_supports("avx2")) found.push_back({"avx2", avx2::add_all});
#endif
    found.push_back({"base", base::add_all});
    return found;
}

AddAll& chosen() {
    static AddAll add_all = variants().front().add_all;
    return add_all;
}

}  // namespace

void add_kernels(const ScoreView& view, std::span<const double> points,
                 std::span<CellTable* const> tables, std::span<LogSum> sums) {
    chosen()(view, points.data(), tables.data(), sums);
}

std::vector<const char*> score_variants() {
    std::vector<const char*> names;
    for (const Variant& variant : variants()) names.push_back(variant.name);
    return names;
}

void use_score_variant(const char* name) {
    for (const Variant& variant : variants()) {
        if (std::strcmp(variant.name, name) != 0) continue;
        chosen() = variant.add_all;
        return;
    }
    TUNE_CHECK(false, "no such variant on this machine");
}

}  // namespace tune::tuner
