#pragma once
// The memory layout that the scoring kernel reads: one column a field, rows in order of trial
// number, padded to whole blocks with rows that contribute nothing. Private to tuner/sampler.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tune::tuner {

/// Rows that the kernel handles at once. Part of the definition of a suggestion: sums are formed in
/// this many lanes on every machine, so that every machine gets the same bits.
inline constexpr std::size_t kLaneCount = 8;

class Column {
public:
    explicit Column(double padding) : padding_(padding) {}

    [[nodiscard]] double* data() { return cells_.data(); }
    [[nodiscard]] const double* data() const { return cells_.data(); }
    double& operator[](std::size_t row) { return cells_[row]; }
    double operator[](std::size_t row) const { return cells_[row]; }

    /// Inserts before `row`; `count` rows are in use.
    void insert(std::size_t row, std::size_t count, double value) {
        if (count + 1 > cells_.size()) cells_.resize(cells_.size() + 16 * kLaneCount, padding_);
        std::move_backward(at(row), at(count), at(count + 1));
        cells_[row] = value;
    }

    void erase(std::size_t row, std::size_t count) {
        std::move(at(row + 1), at(count), at(row));
        cells_[count - 1] = padding_;
    }

    /// Drops the first `gone` of `count` rows.
    void erase_front(std::size_t gone, std::size_t count) {
        std::move(at(gone), at(count), at(0));
        std::fill(at(count - gone), at(count), padding_);
    }

private:
    std::vector<double>::iterator at(std::size_t row) {
        return cells_.begin() + static_cast<std::ptrdiff_t>(row);
    }

    std::vector<double> cells_;
    double padding_;
};

}  // namespace tune::tuner
