#pragma once
// The masses of grid cells under the kernels of one axis, kept from ask to ask. The same few values
// are scored again and again, and a trial changes three kernels at most, so that nearly every mass
// that an ask needs was computed before (score.cc). Private to tuner/sampler.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/axis.h"
#include "tuner/sampler/columns.h"

namespace tune::tuner {

/// A grid value's cell.
struct CellTable {
    double low = 0;
    double high = 0;
    double log_prior = 0;     // of its mass under the prior, not yet normalised
    Doubles log_mass;         // by row, whole blocks; NaN where not known
    std::uint64_t epoch = 0;  // of `log_mass`
    std::size_t changes = 0;  // so many of the epoch are in it
};

class CellTables {
public:
    explicit CellTables(const Axis& axis);

    /// Whether masses are kept: for many rows, of grids that are not fine. Otherwise what is kept
    /// changes too often, while the smallest bandwidth still moves, or is hardly used twice.
    [[nodiscard]] bool is_keeping() const { return is_keeping_; }

    /// Says how many rows there are; call after the rows changed.
    void settle(std::size_t rows);

    /// The kernel of this row is another one.
    void change_row(std::size_t row);

    /// Rows from `row` to `count` are others.
    void change_rows(std::size_t row, std::size_t count);

    /// The table of the cell of the grid value at `position`, with room for `rows`, or for one
    /// block if nothing is kept. Pointers stay valid until trim() or settle().
    [[nodiscard]] CellTable* table(double position, std::size_t rows);

    /// Drops tables when too many have gathered. Call before the first table() of an ask.
    void trim();

private:
    void forget();

    Axis axis_;
    bool is_coarse_;
    bool is_keeping_ = false;
    std::uint64_t epoch_ = 1;
    std::vector<std::uint32_t> changed_;  // rows, since the epoch began
    std::unordered_map<double, std::unique_ptr<CellTable>> tables_;
};

}  // namespace tune::tuner
