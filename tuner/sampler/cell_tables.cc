#include "tuner/sampler/cell_tables.h"

#include <bit>
#include <cmath>
#include <limits>

#include "tuner/sampler/normal.h"

namespace tune::tuner {
namespace {

/// Masses kept an axis: 4 MB.
constexpr std::size_t kMassesMax = 500'000;

}  // namespace

std::size_t CellTables::Hash::operator()(const Kernel& kernel) const {
    const std::uint64_t mixed = std::bit_cast<std::uint64_t>(kernel.mu) * 0x9E3779B97F4A7C15u ^
                                std::bit_cast<std::uint64_t>(kernel.sigma);
    return static_cast<std::size_t>((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u >> 16);
}

std::uint32_t CellTables::class_of(double mu, double sigma) {
    const Kernel kernel{mu, sigma};
    const auto [at, is_new] = index_.emplace(kernel, static_cast<std::uint32_t>(classes_.size()));
    if (is_new) classes_.push_back(kernel);
    return at->second;
}

void CellTables::clear() {
    classes_.clear();
    index_.clear();
    tables_.clear();
}

void CellTables::trim() {
    if (tables_.size() * classes_.size() > kMassesMax) tables_.clear();
}

CellTable* CellTables::table(double position) {
    std::unique_ptr<CellTable>& table = tables_[position];
    if (table == nullptr) {
        table = std::make_unique<CellTable>();
        const double value = axis_.log ? std::exp(position) : position;
        table->low = axis_.cell_low(value);
        table->high = axis_.cell_high(value);
    }
    table->log_mass.resize(classes_.size(), std::numeric_limits<double>::quiet_NaN());
    return table.get();
}

void CellTables::fill(CellTable& table, std::uint32_t kernel_class) const {
    const Kernel& kernel = classes_[kernel_class];
    table.log_mass[kernel_class] = log_normal_mass((table.low - kernel.mu) / kernel.sigma,
                                                   (table.high - kernel.mu) / kernel.sigma);
}

}  // namespace tune::tuner
