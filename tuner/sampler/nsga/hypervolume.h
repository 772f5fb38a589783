#pragma once
// The volume that a set of losses dominates, and the subset that keeps most of it. Private to
// tuner/sampler (and its tests and benches).

#include <span>
#include <vector>

#include "tuner/sampler/nsga/pareto.h"

namespace tune::tuner {

/// The volume between `reference` and the rows, all of which are at or below it in every column;
/// infinite if the reference point is. O(n log n) for two columns, O(n^2) for three, exponential in
/// the worst case for more. Source: While, Bradstreet, Barone 2012 (WFG) for four and more.
[[nodiscard]] double hypervolume(const LossTable& losses, std::span<const double> reference);

/// `count` rows of one front chosen greedily by what each adds to the volume of those before, which
/// is at least 63 % of the best choice (Guerreiro, Fonseca, Paquete 2016). Of equal rows the first
/// comes first. O(count * rows) for two columns, times a hypervolume for more. Source of order and
/// ties: optuna 5.0.0, _hypervolume/hssp.py. REQUIRES: count <= rows.
[[nodiscard]] std::vector<std::size_t> select_by_hypervolume(const LossTable& losses,
                                                             std::span<const double> reference,
                                                             std::size_t count);

/// A point beyond the worst of each column, as MOTPE takes it: max(1.1 w, 0.9 w), 1e-12 for 0.
[[nodiscard]] std::vector<double> reference_point(const LossTable& losses);

}  // namespace tune::tuner
