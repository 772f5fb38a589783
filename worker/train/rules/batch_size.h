#pragma once
// Which batch size to train with: the fastest one that fits into memory. Pure rules; who measures
// is not their business.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.h"

namespace tune::train {

/// Memory of a step as a straight line: `fixed` bytes for weights and their state, and so many for
/// each sample.
struct MemoryModel {
    double fixed = 0.0;
    double per_sample = 0.0;

    /// Through two measured peaks; the sizes differ.
    [[nodiscard]] static MemoryModel through(std::int64_t batch1, double peak1, std::int64_t batch2,
                                             double peak2);
    /// The largest batch whose peak is at most (1 - margin) of `limit` bytes, as a multiple of 8
    /// where it is 8 or more; 0 when not even one sample fits.
    [[nodiscard]] std::int64_t largest_batch(double limit, double margin) const;
};

/// Part of memory that stays free: fragments, and what validation takes.
inline constexpr double kMemoryMargin = 0.08;
/// Samples a second must rise by this much for a doubling of the batch to go on.
inline constexpr double kLeastGain = 0.03;
/// Sizes tried, at most.
inline constexpr int kProbesMax = 25;

/// What became of a batch size that was tried.
struct Probe {
    std::int64_t batch = 0;
    bool fits = false;
    double samples_per_s = 0.0;  ///< of an optimizer step, when it fits
    double peak_bytes = 0.0;     ///< of the process or the device, when it fits; 0: unknown
};

struct BatchSearch {
    std::int64_t first = 8;
    std::int64_t largest = 8192;
    double memory_limit = 0.0;  ///< bytes; 0: unknown, so nothing is predicted
    /// false: the largest that fits, whatever its speed.
    bool stops_when_slower = true;
};

/// Doubles the batch from `first` while it fits and, with stops_when_slower, while samples a second
/// rise by kLeastGain; then, if it was memory that ended it, tries the largest size that the memory
/// model of the last two probes allows, once. `probe` measures one size; where several ranks train
/// it answers for the worst of them, so that all decide alike. Returns the best size. Errors: those
/// of `probe`; kResourceExhausted when not even the smallest size fits.
[[nodiscard]] Result<Probe> find_batch_size(
    const BatchSearch& search, const std::function<Result<Probe>(std::int64_t batch)>& probe);

}  // namespace tune::train
