#include "tuner/sampler/tpe/cell_tables.h"

#include <algorithm>

#include "tuner/sampler/tpe/score.h"

namespace tune::tuner {
namespace {

constexpr double kCellsMax = 4096;

/// Masses kept an axis: 8 MB.
constexpr std::size_t kMassesMax = 1'000'000;
constexpr std::size_t kClassesMax = kMassesMax / 64;

std::size_t whole_blocks(std::size_t count) {
    return (count + kLaneCount - 1) / kLaneCount * kLaneCount;
}

/// Forms the masses of some classes, eight at a time.
void form_some(double low, double high, const KernelClasses& classes,
               std::span<const std::uint32_t> which, Doubles& log_mass) {
    double mu[kLaneCount];
    double inverse[kLaneCount];
    double mass[kLaneCount];
    for (std::size_t i = 0; i < which.size(); i += kLaneCount) {
        const std::size_t last = which.size() - 1;
        for (std::size_t k = 0; k < kLaneCount; ++k) {
            mu[k] = classes.mu()[which[std::min(i + k, last)]];
            inverse[k] = classes.inverse()[which[std::min(i + k, last)]];
        }
        log_cell_masses(low, high, mu, inverse, {mass, kLaneCount});
        for (std::size_t k = 0; k < kLaneCount && i + k <= last; ++k)
            log_mass[which[i + k]] = mass[k];
    }
}

}  // namespace

CellTables::CellTables(const Axis& axis)
    : is_coarse_(axis.value_high - axis.value_low <= kCellsMax * axis.step) {}

void CellTables::settle(std::size_t rows) {
    // Keeping ends later than it begins, so that one trial more or less does not switch each time.
    const std::size_t used = classes_.size() - classes_.unused();
    const bool is_shared = is_keeping_ ? used * 4 <= rows * 3 : used * 2 <= rows;
    is_keeping_ = rows > 0 && classes_.size() <= kClassesMax && (is_shared || is_coarse_);
    if (!is_keeping_) tables_.clear();
}

void CellTables::trim() {
    if (tables_.size() * classes_.size() > kMassesMax) tables_.clear();
}

const double* CellTables::masses(double position, double low, double high) {
    Table& table = tables_[position];
    const std::size_t count = whole_blocks(classes_.size());
    const bool is_known = table.epoch == classes_.epoch();
    const auto news = classes_.changed().subspan(is_known ? table.changes : 0);
    if (table.log_mass.size() < count) table.log_mass.resize(count + 8 * kLaneCount, 0);
    if (is_known && news.size() * 2 < count) {
        form_some(low, high, classes_, news, table.log_mass);
    } else {
        log_cell_masses(low, high, classes_.mu(), classes_.inverse(),
                        {table.log_mass.data(), count});
    }
    table.epoch = classes_.epoch();
    table.changes = classes_.changed().size();
    return table.log_mass.data();
}

}  // namespace tune::tuner
