#pragma once
// Who dominates whom: ranks of trials with several losses. For tuner/sampler, tuner/study and
// their tests and benches.

#include <cstddef>
#include <span>
#include <vector>

#include "tuner/sampler/sampler.h"

namespace tune::tuner {

/// One row a trial, one column an objective; smaller is better; no NaN.
class LossTable {
public:
    explicit LossTable(std::size_t columns) : columns_(columns) {}

    void add(std::span<const double> losses) {
        cells_.insert(cells_.end(), losses.begin(), losses.end());
    }
    [[nodiscard]] std::size_t rows() const { return cells_.size() / columns_; }
    [[nodiscard]] std::size_t columns() const { return columns_; }
    [[nodiscard]] std::span<const double> operator[](std::size_t row) const {
        return {cells_.data() + row * columns_, columns_};
    }

private:
    std::size_t columns_;
    std::vector<double> cells_;
};

/// The values of a complete trial as losses: negated where the goal is to maximise. As many values
/// as goals.
[[nodiscard]] std::vector<double> losses_of(double value, std::span<const double> more_values,
                                            std::span<const Goal> goals);
[[nodiscard]] std::vector<double> losses_of(const Observation& observation,
                                            const Objectives& objectives);

/// `a` is nowhere worse than `b` and somewhere better.
[[nodiscard]] bool dominates(std::span<const double> a, std::span<const double> b);

/// The rank of each row: 0 for those that none dominates, 1 for those that only rank 0 dominates,
/// and so on; equal rows share a rank. Stops once `enough` distinct rows have theirs; the others
/// share the next one. O(columns * rows * fronts found), O(rows log rows) for one column. Source:
/// optuna 5.0.0, study/_multi_objective.py.
[[nodiscard]] std::vector<std::size_t> domination_ranks(const LossTable& losses,
                                                        std::size_t enough);

/// As above for all rows, where `violations` (0: feasible) come first: feasible rows by their
/// losses, then the others by how far they are off.
[[nodiscard]] std::vector<std::size_t> domination_ranks(const LossTable& losses,
                                                        std::span<const double> violations);

/// The rows in lexicographic order, of equal ones the first alone.
[[nodiscard]] std::vector<std::size_t> distinct_rows(const LossTable& losses);

}  // namespace tune::tuner
