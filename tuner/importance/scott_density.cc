#include "tuner/importance/scott_density.h"

#include <algorithm>
#include <cmath>

namespace tune::tuner {
namespace {

/// Nine tenths of a kernel of this width lie in its own cell; narrower ones only lose digits.
constexpr double kSigmaMin = 0.5 / 1.64;

double normal_mass(double low, double high) {
    // From the side where both tails are small, so that the difference keeps its digits.
    if (low > 0) return normal_mass(-high, -low);
    return 0.5 * (std::erfc(-high * M_SQRT1_2) - std::erfc(-low * M_SQRT1_2));
}

/// Adds weight * (normal at `mean`, cut to the cells) to `density`.
void add_kernel(std::vector<double>& density, double weight, double mean, double sigma) {
    const auto cells = static_cast<double>(density.size());
    const double whole = normal_mass((-0.5 - mean) / sigma, (cells - 0.5 - mean) / sigma);
    for (std::size_t cell = 0; cell < density.size(); ++cell) {
        const double at = static_cast<double>(cell) - mean;
        density[cell] += weight * normal_mass((at - 0.5) / sigma, (at + 0.5) / sigma) / whole;
    }
}

struct Filled {
    std::vector<double> cells;
    std::vector<std::uint64_t> counts;
    std::uint64_t total = 0;
};

double sigma_of(const Filled& filled) {
    const auto total = static_cast<double>(filled.total);
    double mean = 0;
    for (std::size_t i = 0; i < filled.cells.size(); ++i)
        mean += filled.cells[i] * static_cast<double>(filled.counts[i]) / total;
    double squares = 0;
    for (std::size_t i = 0; i < filled.cells.size(); ++i)
        squares += (filled.cells[i] - mean) * (filled.cells[i] - mean) *
                   static_cast<double>(filled.counts[i]);
    const double deviation = std::sqrt(squares / std::max(1.0, total - 1));
    // The quartiles: the first cells where the running count reaches a quarter and exceeds three.
    std::size_t first = filled.cells.size();
    std::size_t third = filled.cells.size();
    std::uint64_t running = 0;
    for (std::size_t i = 0; i < filled.cells.size(); ++i) {
        running += filled.counts[i];
        if (first == filled.cells.size() && running >= filled.total / 4) first = i;
        if (third == filled.cells.size() && running > filled.total * 3 / 4) third = i;
    }
    third = std::min(third, filled.cells.size() - 1);
    const double range = filled.cells[third] - filled.cells[first];
    const double sigma = 1.059 * std::min(range / 1.34, deviation) * std::pow(total, -0.2);
    return std::max(sigma, kSigmaMin);
}

std::vector<double> ordered_density(const Filled& filled, std::size_t cells) {
    std::vector<double> density(cells, 0);
    const auto total = static_cast<double>(filled.total) + 1;
    const double sigma = sigma_of(filled);
    for (std::size_t i = 0; i < filled.cells.size(); ++i)
        add_kernel(density, static_cast<double>(filled.counts[i]) / total, filled.cells[i], sigma);
    add_kernel(density, 1 / total, (static_cast<double>(cells) - 1) / 2,
               static_cast<double>(cells));
    return density;
}

std::vector<double> unordered_density(const Filled& filled, std::size_t cells) {
    const auto total = static_cast<double>(filled.total) + 1;
    const double spread = 1 / (static_cast<double>(filled.cells.size()) + 1);
    const double row = 1 + spread * static_cast<double>(cells);
    // Every kernel gives each cell spread / row, and its own 1 / row more.
    const double base =
        (static_cast<double>(filled.total) * spread / row + 1 / static_cast<double>(cells)) / total;
    std::vector<double> density(cells, base);
    for (std::size_t i = 0; i < filled.cells.size(); ++i)
        density[static_cast<std::size_t>(filled.cells[i])] +=
            static_cast<double>(filled.counts[i]) / total / row;
    return density;
}

}  // namespace

std::vector<double> scott_density(std::span<const std::uint32_t> counts, bool is_ordered) {
    Filled filled;
    for (std::size_t cell = 0; cell < counts.size(); ++cell) {
        if (counts[cell] == 0) continue;
        filled.cells.push_back(static_cast<double>(cell));
        filled.counts.push_back(counts[cell]);
        filled.total += counts[cell];
    }
    if (filled.total == 0)
        return std::vector<double>(counts.size(), 1 / static_cast<double>(counts.size()));
    return is_ordered ? ordered_density(filled, counts.size())
                      : unordered_density(filled, counts.size());
}

}  // namespace tune::tuner
