#pragma once
// Kernel masses of grid cells, computed once. On a grid many observations share the same place and
// bandwidth, and the same few values are scored ask after ask; the mass of a cell under a kernel
// costs two error functions and a logarithm, looking it up costs a load. Private to tuner/sampler.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tuner/sampler/axis.h"

namespace tune::tuner {

/// The logarithms of one cell's mass under each class of kernels; NaN where not needed yet.
struct CellTable {
    double low = 0;  // of the cell
    double high = 0;
    std::vector<double> log_mass;
};

class CellTables {
public:
    explicit CellTables(const Axis& axis) : axis_(axis) {}

    /// The class of kernels with this centre and bandwidth; a new one if it is not known.
    [[nodiscard]] std::uint32_t class_of(double mu, double sigma);

    [[nodiscard]] std::size_t class_count() const { return classes_.size(); }

    /// Forgets all classes and tables.
    void clear();

    /// The table of the cell of the grid value at `position`, sized for all classes. Pointers stay
    /// valid until trim() or clear().
    [[nodiscard]] CellTable* table(double position);

    /// Drops tables when too many have gathered. Call before the first table() of an ask.
    void trim();

    /// Computes an entry.
    void fill(CellTable& table, std::uint32_t kernel_class) const;

private:
    struct Kernel {
        double mu;
        double sigma;

        [[nodiscard]] bool operator==(const Kernel&) const = default;
    };
    struct Hash {
        [[nodiscard]] std::size_t operator()(const Kernel& kernel) const;
    };

    Axis axis_;
    std::vector<Kernel> classes_;
    std::unordered_map<Kernel, std::uint32_t, Hash> index_;
    std::unordered_map<double, std::unique_ptr<CellTable>> tables_;
};

}  // namespace tune::tuner
