// Which individuals survive a generation. Both algorithms keep whole ranks of dominance while they
// fit (infeasible ones rank last, by how far they are off) and differ in the rank that does not
// fit.
//
// NSGA-II (Deb et al. 2002): the least crowded. A row's crowding distance is, summed over the
// columns, the gap between its two neighbours in that column as a share of the column's range; the
// outermost rows have no neighbour and are kept before all others. A column of equal values says
// nothing, and infinite losses have no part in the range.
//
// NSGA-III (Deb, Jain 2014), for three objectives and more, where nearly all rows are in one rank
// and gaps say little:
//   directions   all points whose coordinates are whole numbers that sum to `divisions` (Das,
//                Dennis 1998), spread evenly over the objectives' trade-offs
//   normalise    losses are measured from the ideal point (the least of each column) in units of
//                the intercepts of the plane through the extreme points; m x = 1 gives the
//                reciprocals of the intercepts at once. Where there is no such plane (fewer extreme
//                points than columns) the worst value of each column takes the intercept's place
//   niches       each row belongs to the direction whose line passes nearest. The next survivor
//                comes from a direction that has the fewest: its nearest row if it has none yet,
//                any of its rows otherwise
//
// Deterministic: sorts are stable, and what is drawn at random is a function of (seed, generation).
// The semantics are those of Optuna 5.0.0 (optuna/samplers/nsgaii, _nsgaiii).

#include "tuner/sampler/nsga/nsga_selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace tune::tuner {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Rows of each rank, in order.
std::vector<std::vector<std::size_t>> fronts_of(const Population& population) {
    std::vector<std::vector<std::size_t>> fronts;
    const std::vector<std::size_t> ranks =
        domination_ranks(population.losses, population.violations);
    for (std::size_t row = 0; row < ranks.size(); ++row) {
        if (ranks[row] >= fronts.size()) fronts.resize(ranks[row] + 1);
        fronts[ranks[row]].push_back(row);
    }
    return fronts;
}

LossTable rows_of(const LossTable& losses, const std::vector<std::size_t>& rows) {
    LossTable table(losses.columns());
    for (const std::size_t row : rows) table.add(losses[row]);
    return table;
}

/// Adds one column's share to the distances; `order` becomes the order by that column.
void add_crowding(const LossTable& front, std::size_t column, std::vector<std::size_t>& order,
                  std::vector<double>& distances) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return front[a][column] < front[b][column];
    });
    const auto value = [&](std::size_t place) { return front[order[place]][column]; };
    const std::size_t count = order.size();
    if (value(0) == value(count - 1)) return;
    double least = kInfinity;
    double most = -kInfinity;
    for (std::size_t i = 0; i < count; ++i) {
        if (value(i) != -kInfinity) least = std::min(least, value(i));
        if (value(i) != kInfinity) most = std::max(most, value(i));
    }
    const double width = most > least ? most - least : 1;
    for (std::size_t i = 0; i < count; ++i) {
        const double below = i == 0 ? -kInfinity : value(i - 1);
        const double above = i + 1 == count ? kInfinity : value(i + 1);
        distances[order[i]] += (below == above ? 0 : above - below) / width;
    }
}

/// Solves m x = 1 by elimination; false if m is singular to working precision.
bool solve_ones(std::vector<std::vector<double>> m, std::vector<double>& x) {
    const std::size_t n = m.size();
    double scale = 0;
    for (const auto& row : m)
        for (const double cell : row) scale = std::max(scale, std::abs(cell));
    x.assign(n, 1);
    for (std::size_t c = 0; c < n; ++c) {
        std::size_t pivot = c;
        for (std::size_t r = c; r < n; ++r)
            if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
        if (!(std::abs(m[pivot][c]) > scale * static_cast<double>(n) * 2.3e-16)) return false;
        std::swap(m[c], m[pivot]);
        std::swap(x[c], x[pivot]);
        for (std::size_t r = c + 1; r < n; ++r) {
            const double factor = m[r][c] / m[c][c];
            for (std::size_t k = c; k < n; ++k) m[r][k] -= factor * m[c][k];
            x[r] -= factor * x[c];
        }
    }
    for (std::size_t c = n; c-- > 0;) {
        for (std::size_t k = c + 1; k < n; ++k) x[c] -= m[c][k] * x[k];
        x[c] /= m[c][c];
    }
    return true;
}

/// Infinities are moved to three ranges beyond the finite values.
std::vector<std::vector<double>> finite_rows(const LossTable& losses) {
    std::vector<std::vector<double>> rows;
    for (std::size_t row = 0; row < losses.rows(); ++row)
        rows.emplace_back(losses[row].begin(), losses[row].end());
    for (std::size_t c = 0; c < losses.columns(); ++c) {
        double least = kInfinity;
        double most = -kInfinity;
        for (const auto& row : rows) {
            if (!std::isfinite(row[c])) continue;
            least = std::min(least, row[c]);
            most = std::max(most, row[c]);
        }
        if (least > most) least = most = 0;
        const double margin = 3 * (most - least);
        for (auto& row : rows) row[c] = std::clamp(row[c], least - margin, most + margin);
    }
    return rows;
}

/// Takes `wanted` of the last front, always from a direction with the fewest survivors: the nearest
/// one where there is none yet, any one where there are some.
std::vector<std::size_t> fill_niches(const std::vector<Niche>& niches, std::size_t survivors,
                                     std::size_t wanted, Draws& draws) {
    struct Waiting {
        std::vector<std::size_t> members;  // places in the last front; the next one is at the back
        bool is_shuffled = false;
    };
    std::map<std::size_t, Waiting> waiting;
    std::map<std::size_t, std::size_t> taken;
    for (std::size_t i = 0; i < niches.size(); ++i) {
        if (i < survivors)
            ++taken[niches[i].direction];
        else
            waiting[niches[i].direction].members.push_back(i - survivors);
    }
    std::map<std::size_t, std::vector<std::size_t>> by_count;  // survivors -> directions
    for (const auto& [direction, unused] : waiting) by_count[taken[direction]].push_back(direction);
    for (auto& [count, directions] : by_count) draws.shuffle(directions);
    std::vector<std::size_t> chosen;
    while (chosen.size() < wanted) {
        const auto least = by_count.begin();
        if (least->second.empty()) {
            by_count.erase(least);
            continue;
        }
        const std::size_t count = least->first;
        const std::size_t direction = least->second.back();
        least->second.pop_back();
        Waiting& niche = waiting[direction];
        if (count == 0) {
            std::stable_sort(niche.members.begin(), niche.members.end(),
                             [&](std::size_t a, std::size_t b) {
                                 const double first = niches[survivors + a].distance;
                                 const double second = niches[survivors + b].distance;
                                 return first > second || (first == second && a > b);
                             });
        } else if (!niche.is_shuffled) {
            draws.shuffle(niche.members);
            niche.is_shuffled = true;
        }
        chosen.push_back(niche.members.back());
        niche.members.pop_back();
        if (niche.members.empty()) continue;
        std::vector<std::size_t>& next = by_count[count + 1];
        next.insert(next.begin() + static_cast<std::ptrdiff_t>(draws.index(next.size() + 1)),
                    direction);
    }
    return chosen;
}

}  // namespace

Niche niche_of(std::span<const double> losses, const LossTable& directions) {
    Niche nearest{0, kInfinity};
    for (std::size_t d = 0; d < directions.rows(); ++d) {
        double along = 0;
        double norm = 0;
        for (std::size_t c = 0; c < losses.size(); ++c) {
            along += losses[c] * directions[d][c];
            norm += directions[d][c] * directions[d][c];
        }
        double square = 0;
        for (std::size_t c = 0; c < losses.size(); ++c) {
            const double off = losses[c] - along / norm * directions[d][c];
            square += off * off;
        }
        const double distance = std::sqrt(square);
        if (distance < nearest.distance) nearest = {d, distance};
    }
    return nearest;
}

double Draws::next() {
    if (used_ == buffer_.size()) {
        buffer_.resize(64);
        source_.fill(trial_, key_ + block_++, buffer_);
        used_ = 0;
    }
    return buffer_[used_++];
}

std::size_t Draws::index(std::size_t count) {
    const auto at = static_cast<std::size_t>(next() * static_cast<double>(count));
    return std::min(at, count - 1);
}

std::vector<double> crowding_distances(const LossTable& front) {
    std::vector<double> distances(front.rows(), 0);
    std::vector<std::size_t> order(front.rows());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (front.rows() == 0) return distances;
    for (std::size_t c = 0; c < front.columns(); ++c) add_crowding(front, c, order, distances);
    return distances;
}

std::vector<std::size_t> select_by_crowding(const Population& population, std::size_t count) {
    std::vector<std::size_t> chosen;
    for (std::vector<std::size_t>& front : fronts_of(population)) {
        if (chosen.size() + front.size() > count) {
            const std::vector<double> distances =
                crowding_distances(rows_of(population.losses, front));
            std::vector<std::size_t> order(front.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return distances[a] > distances[b];
            });
            for (std::size_t i = 0; chosen.size() < count; ++i) chosen.push_back(front[order[i]]);
            return chosen;
        }
        chosen.insert(chosen.end(), front.begin(), front.end());
    }
    return chosen;
}

LossTable reference_directions(std::size_t objectives, std::size_t divisions) {
    LossTable directions(objectives);
    std::vector<double> point(objectives, 0);
    // All ways to give `left` units to the columns from `column` on.
    const auto place = [&](const auto& self, std::size_t column, std::size_t left) -> void {
        if (column + 1 == objectives) {
            point[column] = static_cast<double>(left);
            directions.add(point);
            return;
        }
        for (std::size_t units = left + 1; units-- > 0;) {
            point[column] = static_cast<double>(units);
            self(self, column + 1, left - units);
        }
    };
    place(place, 0, divisions);
    return directions;
}

LossTable normalized_losses(const LossTable& losses) {
    std::vector<std::vector<double>> rows = finite_rows(losses);
    const std::size_t columns = losses.columns();
    for (std::size_t c = 0; c < columns; ++c) {
        double ideal = kInfinity;
        for (const auto& row : rows) ideal = std::min(ideal, row[c]);
        for (auto& row : rows) row[c] -= ideal;
    }
    // The extreme point of an axis is the one nearest to it: weight 1 along it, 1e6 across.
    std::vector<std::vector<double>> extremes;
    for (std::size_t axis = 0; axis < columns; ++axis) {
        const std::vector<double>* extreme = nullptr;
        double least = kInfinity;
        for (const auto& row : rows) {
            double worst = 0;
            for (std::size_t c = 0; c < columns; ++c)
                worst = std::max(worst, row[c] * (c == axis ? 1 : 1e6));
            if (extreme != nullptr && worst >= least) continue;
            extreme = &row;
            least = worst;
        }
        extremes.push_back(*extreme);
    }
    std::vector<double> scale;
    if (!solve_ones(std::move(extremes), scale)) {
        scale.assign(columns, 1);
        for (std::size_t c = 0; c < columns; ++c) {
            double most = 0;
            for (const auto& row : rows) most = std::max(most, row[c]);
            if (most != 0) scale[c] = 1 / most;
        }
    }
    LossTable normalized(columns);
    for (auto& row : rows) {
        for (std::size_t c = 0; c < columns; ++c) row[c] *= std::isfinite(scale[c]) ? scale[c] : 1;
        normalized.add(row);
    }
    return normalized;
}

std::vector<std::size_t> select_by_directions(const Population& population, std::size_t count,
                                              const LossTable& directions, Draws& draws) {
    std::vector<std::size_t> chosen;
    for (const std::vector<std::size_t>& front : fronts_of(population)) {
        if (chosen.size() + front.size() <= count) {
            chosen.insert(chosen.end(), front.begin(), front.end());
            continue;
        }
        if (chosen.size() == count) break;
        std::vector<std::size_t> rows = chosen;
        rows.insert(rows.end(), front.begin(), front.end());
        const LossTable normalized = normalized_losses(rows_of(population.losses, rows));
        std::vector<Niche> niches;
        for (std::size_t row = 0; row < normalized.rows(); ++row)
            niches.push_back(niche_of(normalized[row], directions));
        const std::size_t survivors = chosen.size();
        for (const std::size_t place : fill_niches(niches, survivors, count - survivors, draws))
            chosen.push_back(front[place]);
        break;
    }
    return chosen;
}

}  // namespace tune::tuner
