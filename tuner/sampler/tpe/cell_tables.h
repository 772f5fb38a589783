#pragma once
// The masses of grid cells under the kernels of one axis, kept from ask to ask by class of kernel.
// The same few values are scored again and again, and a trial changes three kernels at most, so
// that nearly every mass that an ask needs was computed before (score.cc). Private to
// tuner/sampler.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/axis.h"
#include "tuner/sampler/tpe/columns.h"
#include "tuner/sampler/tpe/kernel_classes.h"

namespace tune::tuner {

/// One multiplication: an ask looks up some hundred cells.
struct PositionHash {
    [[nodiscard]] std::size_t operator()(double position) const noexcept {
        return (std::bit_cast<std::uint64_t>(position) * 0x9E3779B97F4A7C15u) >> 20;
    }
};

class CellTables {
public:
    explicit CellTables(const Axis& axis);

    /// Which kernels there are; call settle() after a change.
    [[nodiscard]] KernelClasses& classes() { return classes_; }
    [[nodiscard]] const KernelClasses& classes() const { return classes_; }

    /// Decides whether masses are kept: where many kernels share a class, or values of a coarse
    /// grid come again. Otherwise they are better formed where they are needed.
    void settle(std::size_t rows);
    [[nodiscard]] bool is_keeping() const { return is_keeping_; }

    /// The masses of the cell (low, high) of the grid value at `position`, by class. Valid until
    /// the classes change or trim(). REQUIRES: is_keeping().
    [[nodiscard]] const double* masses(double position, double low, double high);

    /// Drops tables when too many have gathered. Call before the first masses() of an ask.
    void trim();

private:
    /// What is known of one cell.
    struct Table {
        Doubles log_mass;         // by class
        std::uint64_t epoch = 0;  // of the classes; 0: none
        std::size_t changes = 0;  // so many of the epoch are in it
    };

    bool is_coarse_;
    bool is_keeping_ = false;
    KernelClasses classes_;
    std::unordered_map<double, Table, PositionHash> tables_;
};

}  // namespace tune::tuner
