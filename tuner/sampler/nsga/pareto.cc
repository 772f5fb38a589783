// Ranks of dominance: fronts are peeled off one by one.
//
// Why sorting helps. In lexicographic order a row can only be dominated by an earlier one: what is
// nowhere worse and somewhere better is smaller in the first column where the two differ. So one
// pass over the sorted rows finds a front, comparing each row with the front found so far; with two
// columns the last row of the front has its least second value, and comparing with that one is
// enough (Kung, Luccio, Preparata 1975).
//
// Equal rows dominate each other as little as themselves: they share a rank, and only the first of
// them is compared. Peeling ends when `enough` rows have their rank, since a sampler that wants the
// best tenth need not know who is last. Source of the semantics: optuna 5.0.0,
// study/_multi_objective.py; infeasible rows come after all feasible ones, ranked by how far they
// are off.

#include "tuner/sampler/nsga/pareto.h"

#include <algorithm>
#include <numeric>

namespace tune::tuner {
namespace {

bool is_before(std::span<const double> a, std::span<const double> b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

bool is_equal(std::span<const double> a, std::span<const double> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::vector<std::size_t> sorted_rows(const LossTable& losses) {
    std::vector<std::size_t> rows(losses.rows());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    std::stable_sort(rows.begin(), rows.end(),
                     [&](std::size_t a, std::size_t b) { return is_before(losses[a], losses[b]); });
    return rows;
}

/// Moves the front of `rows` (distinct, sorted) to `front`; both stay sorted.
void peel(const LossTable& losses, std::vector<std::size_t>& rows,
          std::vector<std::size_t>& front) {
    front.clear();
    std::vector<std::size_t> others;
    for (const std::size_t row : rows) {
        // Of two columns the front's last row has the least second value so far.
        const auto first =
            losses.columns() == 2 && !front.empty() ? front.end() - 1 : front.begin();
        const bool is_dominated = std::any_of(first, front.end(), [&](std::size_t other) {
            return dominates(losses[other], losses[row]);
        });
        (is_dominated ? others : front).push_back(row);
    }
    rows = std::move(others);
}

}  // namespace

std::vector<double> losses_of(double value, std::span<const double> more_values,
                              std::span<const Goal> goals) {
    std::vector<double> losses = {value};
    losses.insert(losses.end(), more_values.begin(), more_values.end());
    for (std::size_t i = 0; i < losses.size(); ++i)
        if (goals[i] == Goal::kMaximize) losses[i] = -losses[i];
    return losses;
}

std::vector<double> losses_of(const Observation& observation, const Objectives& objectives) {
    return losses_of(observation.value, observation.more_values, objectives.goals);
}

bool dominates(std::span<const double> a, std::span<const double> b) {
    bool is_better = false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] > b[i]) return false;
        is_better = is_better || a[i] < b[i];
    }
    return is_better;
}

std::vector<std::size_t> distinct_rows(const LossTable& losses) {
    std::vector<std::size_t> rows = sorted_rows(losses);
    rows.erase(
        std::unique(rows.begin(), rows.end(),
                    [&](std::size_t a, std::size_t b) { return is_equal(losses[a], losses[b]); }),
        rows.end());
    return rows;
}

std::vector<std::size_t> domination_ranks(const LossTable& losses, std::size_t enough) {
    std::vector<std::size_t> ranks(losses.rows(), 0);
    if (losses.rows() == 0 || enough == 0) return ranks;
    std::vector<std::size_t> left = distinct_rows(losses);
    const std::size_t distinct = left.size();
    enough = std::min(enough, distinct);
    // Of one column each distinct row is a front of its own.
    if (losses.columns() == 1) {
        for (std::size_t i = 0; i < distinct; ++i) ranks[left[i]] = std::min(i, enough);
        left.clear();
    }
    std::size_t rank = 0;
    std::vector<std::size_t> front;
    while (!left.empty() && distinct - left.size() < enough) {
        peel(losses, left, front);
        for (const std::size_t row : front) ranks[row] = rank;
        ++rank;
    }
    for (const std::size_t row : left) ranks[row] = rank;
    // Rows equal to a ranked one follow it in sorted order.
    const std::vector<std::size_t> sorted = sorted_rows(losses);
    for (std::size_t i = 1; i < sorted.size(); ++i)
        if (is_equal(losses[sorted[i - 1]], losses[sorted[i]]))
            ranks[sorted[i]] = ranks[sorted[i - 1]];
    return ranks;
}

std::vector<std::size_t> domination_ranks(const LossTable& losses,
                                          std::span<const double> violations) {
    LossTable feasible(losses.columns());
    LossTable off(1);
    for (std::size_t row = 0; row < losses.rows(); ++row) {
        if (violations[row] > 0)
            off.add(violations.subspan(row, 1));
        else
            feasible.add(losses[row]);
    }
    const std::vector<std::size_t> inner = domination_ranks(feasible, feasible.rows());
    const std::vector<std::size_t> outer = domination_ranks(off, off.rows());
    const std::size_t first = inner.empty() ? 0 : *std::max_element(inner.begin(), inner.end()) + 1;
    std::vector<std::size_t> ranks;
    std::size_t in = 0;
    std::size_t out = 0;
    for (std::size_t row = 0; row < losses.rows(); ++row)
        ranks.push_back(violations[row] > 0 ? first + outer[out++] : inner[in++]);
    return ranks;
}

}  // namespace tune::tuner
