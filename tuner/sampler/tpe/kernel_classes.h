#pragma once
// Kernels of one stepped axis with the same centre and width, as one. Values of a grid come again
// and again and most kernels are as narrow as allowed, so that thousands of trials have some
// hundred classes, and the mass of a cell is computed once a class. Private to tuner/sampler.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tuner/sampler/tpe/columns.h"

namespace tune::tuner {

class KernelClasses {
public:
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    /// A row without a class; set() it before of() is read.
    void insert_row(std::size_t row);
    void erase_row(std::size_t row);
    void erase_front(std::size_t gone);

    /// Gives a row its kernel. `left` and `right`: the rows beside it in order of centres, whose
    /// class it shares if they are alike; kNone: there is none.
    void set(std::size_t row, std::uint32_t left, std::uint32_t right, double mu, double inverse);

    /// Numbers all classes anew. `order`: the rows by centre; the columns are by row.
    void rebuild(std::span<const std::uint32_t> order, const double* mu, const double* inverse);

    /// By row; readable to the end of the last block of rows.
    [[nodiscard]] const std::uint32_t* of() const { return of_.data(); }

    /// Classes have numbers below this; some may be out of use.
    [[nodiscard]] std::size_t size() const { return users_.size(); }
    [[nodiscard]] std::size_t unused() const { return free_.size(); }

    /// By class, in whole blocks.
    [[nodiscard]] const double* mu() const { return mu_.data(); }
    [[nodiscard]] const double* inverse() const { return inverse_.data(); }

    /// The classes that became others since the epoch began, in order.
    [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
    [[nodiscard]] std::span<const std::uint32_t> changed() const { return changed_; }

private:
    [[nodiscard]] bool is_alike(std::uint32_t row, double mu, double inverse) const;
    void release(std::uint32_t kernel_class);
    [[nodiscard]] std::uint32_t add(double mu, double inverse);
    void begin_epoch();

    std::vector<std::uint32_t> of_ = std::vector<std::uint32_t>(kLaneCount, 0);  // a block beyond
    std::vector<std::uint32_t> users_;                                           // rows, by class
    Doubles mu_;
    Doubles inverse_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> changed_;
    std::uint64_t epoch_ = 1;
};

}  // namespace tune::tuner
