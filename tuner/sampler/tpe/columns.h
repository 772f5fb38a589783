#pragma once
// The memory layout that the scoring kernel reads: one column a field, rows in order of trial
// number, padded to whole blocks with rows that contribute nothing. Private to tuner/sampler.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace tune::tuner {

/// Rows that the kernel handles at once. Part of the definition of a suggestion: sums are formed in
/// this many lanes on every machine, so that every machine gets the same bits.
inline constexpr std::size_t kLaneCount = 8;

/// Memory for columns that are read side by side, block by block: a block is one cache line, and
/// the same block of different columns lies at different offsets of its page. Large allocations
/// would all begin at the same one, so that some twenty columns would share the few lines that the
/// first-level cache has for an offset.
template <class T>
struct ColumnMemory {
    using value_type = T;

    ColumnMemory() = default;
    template <class U>
    explicit ColumnMemory(const ColumnMemory<U>&) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        static std::atomic<std::size_t> turn = 0;
        const std::size_t bytes = count * sizeof(T);
        const std::size_t offset =
            bytes < kPage ? kLine : kLine * (1 + turn.fetch_add(1) % (kPage / kLine));
        char* begin =
            static_cast<char*>(::operator new (bytes + offset, std::align_val_t{kLine})) + offset;
        *reinterpret_cast<std::size_t*>(begin - sizeof offset) = offset;
        return reinterpret_cast<T*>(begin);
    }
    void deallocate(T* cells, std::size_t) {
        char* begin = reinterpret_cast<char*>(cells);
        const std::size_t offset = *reinterpret_cast<std::size_t*>(begin - sizeof offset);
        ::operator delete (begin - offset, std::align_val_t{kLine});
    }
    [[nodiscard]] bool operator==(const ColumnMemory&) const { return true; }

private:
    static constexpr std::size_t kLine = 64;
    static constexpr std::size_t kPage = 4096;
};

using Doubles = std::vector<double, ColumnMemory<double>>;

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
    Doubles::iterator at(std::size_t row) {
        return cells_.begin() + static_cast<std::ptrdiff_t>(row);
    }

    Doubles cells_;
    double padding_;
};

}  // namespace tune::tuner
