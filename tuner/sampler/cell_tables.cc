#include "tuner/sampler/cell_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/sampler/normal.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kRowsMin = 128;
constexpr std::size_t kRowsMax = 40'000;
constexpr double kCellsMax = 4096;

/// Masses kept an axis: 8 MB; and cells, where none are kept.
constexpr std::size_t kMassesMax = 1'000'000;
constexpr std::size_t kTablesMax = 10'000;

/// Changed rows that are remembered; beyond that all count as changed.
constexpr std::size_t kChangesMax = 4096;
constexpr std::size_t kChangesAtOnceMax = 64;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

CellTables::CellTables(const Axis& axis)
    : axis_(axis), is_coarse_(axis.value_high - axis.value_low <= kCellsMax * axis.step) {}

void CellTables::settle(std::size_t rows) {
    // Keeping ends later than it begins, so that one trial more or less does not switch each time.
    const bool pays =
        is_coarse_ && rows >= (is_keeping_ ? kRowsMin / 2 : kRowsMin) && rows <= kRowsMax;
    if (pays == is_keeping_) return;
    is_keeping_ = pays;
    tables_.clear();
    forget();
}

void CellTables::forget() {
    ++epoch_;
    changed_.clear();
}

void CellTables::change_row(std::size_t row) {
    if (!is_keeping_) return;
    changed_.push_back(static_cast<std::uint32_t>(row));
    if (changed_.size() > kChangesMax) forget();
}

void CellTables::change_rows(std::size_t row, std::size_t count) {
    if (!is_keeping_) return;
    if (count - row > kChangesAtOnceMax) return forget();
    for (; row < count; ++row) change_row(row);
}

void CellTables::trim() {
    std::size_t masses = 0;
    if (is_keeping_ && !tables_.empty())
        masses = tables_.size() * tables_.begin()->second->log_mass.size();
    if (masses > kMassesMax || tables_.size() > kTablesMax) tables_.clear();
}

CellTable* CellTables::table(double position, std::size_t rows) {
    std::unique_ptr<CellTable>& table = tables_[position];
    if (table == nullptr) {
        table = std::make_unique<CellTable>();
        const double value = axis_.log ? std::exp(position) : position;
        table->low = axis_.cell_low(value);
        table->high = axis_.cell_high(value);
        table->log_prior =
            log_normal_mass((table->low - axis_.prior_mean()) / axis_.prior_width(),
                            (table->high - axis_.prior_mean()) / axis_.prior_width());
    }
    if (!is_keeping_) {
        table->log_mass.resize(kLaneCount, kUnknown);
        return table.get();
    }
    if (table->log_mass.size() < rows + kLaneCount)
        table->log_mass.resize(rows + 16 * kLaneCount, kUnknown);
    if (table->epoch != epoch_) {
        std::fill(table->log_mass.begin(), table->log_mass.end(), kUnknown);
    } else {
        for (std::size_t i = table->changes; i < changed_.size(); ++i)
            if (changed_[i] < table->log_mass.size()) table->log_mass[changed_[i]] = kUnknown;
    }
    table->epoch = epoch_;
    table->changes = changed_.size();
    return table.get();
}

}  // namespace tune::tuner
