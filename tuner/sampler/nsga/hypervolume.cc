// The volume that a set of losses dominates below a reference point, and the subset that keeps most
// of it.
//
// Volume. Only the front counts. Two columns: a staircase of rectangles along the sorted rows, O(n
// log n). Three: slices along the first column; the slice up to row i is the area that the rows
// before it dominate in the other two, swept over the second column, O(n^2). Four and more: WFG
// (While, Bradstreet, Barone, "A Fast Way of Calculating Exact Hypervolumes", 2012): a row adds its
// box less what later rows share with that box, and what they share is the volume of these rows
// moved into the box (the larger loss in each column), of which few are left in their front.
//
// Selection. The volume of a set is monotone and submodular: a row adds the less the more rows are
// chosen. Choosing the row with the greatest gain again and again therefore keeps at least 1 - 1/e
// = 63 % of the best choice (Nemhauser, Wolsey, Fisher 1978; Guerreiro, Fonseca, Paquete 2016).
//   two columns   a row's gain is one rectangle, whose far corner moves in when a neighbour is
//                 chosen: no volume is computed
//   more          an old gain is an upper bound of the new one, so only rows whose bound reaches
//                 the best gain found so far are computed again
//
// Equal rows and ties go as in Optuna 5.0.0 (optuna/_hypervolume/hssp.py), so that the same trials
// are good: the first of the greatest gains, where a gain that is not a number (infinite less
// infinite) is the greatest, as for numpy.argmax. Rows that repeat another one come last, in their
// order.

#include "tuner/sampler/nsga/hypervolume.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tune::tuner {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

double box(std::span<const double> losses, std::span<const double> reference) {
    double volume = 1;
    for (std::size_t i = 0; i < losses.size(); ++i) volume *= reference[i] - losses[i];
    return volume;
}

/// Rows that none dominates, distinct, by their first column.
LossTable front_of(const LossTable& losses) {
    LossTable front(losses.columns());
    for (const std::size_t row : distinct_rows(losses)) {
        bool is_dominated = false;
        for (std::size_t i = 0; i < front.rows() && !is_dominated; ++i)
            is_dominated = dominates(front[i], losses[row]);
        if (!is_dominated) front.add(losses[row]);
    }
    return front;
}

double area(const LossTable& front, std::span<const double> reference) {
    double sum = 0;
    double top = reference[1];
    for (std::size_t i = 0; i < front.rows(); ++i) {
        sum += (reference[0] - front[i][0]) * (top - front[i][1]);
        top = front[i][1];
    }
    return sum;
}

/// Slices along the first column: the area that the rows up to there dominate in the others, kept
/// as a staircase over the second column.
double volume_of_three(const LossTable& front, std::span<const double> reference) {
    const std::size_t n = front.rows();
    std::vector<std::size_t> by_second(n);
    std::iota(by_second.begin(), by_second.end(), std::size_t{0});
    std::sort(by_second.begin(), by_second.end(),
              [&](std::size_t a, std::size_t b) { return front[a][1] < front[b][1]; });
    double volume = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double width = (i + 1 < n ? front[i + 1][0] : reference[0]) - front[i][0];
        double slice = 0;
        double height = 0;  // of the third column, above the least value so far
        for (std::size_t k = 0; k < n; ++k) {
            const auto row = by_second[k];
            if (row <= i) height = std::max(height, reference[2] - front[row][2]);
            const double next = k + 1 < n ? front[by_second[k + 1]][1] : reference[1];
            slice += height * (next - front[row][1]);
        }
        volume += width * slice;
    }
    return volume;
}

/// WFG: each row adds its box less what the rows after it share with that box.
double volume_of_many(const LossTable& front, std::span<const double> reference) {
    double volume = 0;
    std::vector<double> shared(front.columns());
    for (std::size_t i = 0; i < front.rows(); ++i) {
        LossTable limited(front.columns());
        for (std::size_t j = i + 1; j < front.rows(); ++j) {
            for (std::size_t c = 0; c < shared.size(); ++c)
                shared[c] = std::max(front[i][c], front[j][c]);
            limited.add(shared);
        }
        volume += box(front[i], reference);
        if (limited.rows() > 0) volume -= volume_of_many(front_of(limited), reference);
    }
    return volume;
}

/// The first of the greatest; what is not a number (infinite less infinite) counts as the greatest.
std::size_t first_greatest(const std::vector<double>& values) {
    std::size_t best = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) return i;
        if (values[i] > values[best]) best = i;
    }
    return best;
}

/// Two columns: each row's contribution is a rectangle whose far corner moves in when a neighbour
/// is chosen. `rows` are sorted by the first column.
std::vector<std::size_t> select_in_plane(const LossTable& losses, std::vector<std::size_t> rows,
                                         std::span<const double> reference, std::size_t count) {
    struct Corner {
        double first;
        double second;
    };
    std::vector<Corner> corners(rows.size(), Corner{reference[0], reference[1]});
    std::vector<std::size_t> chosen;
    std::vector<double> gains;
    while (chosen.size() < count) {
        gains.clear();
        for (std::size_t i = 0; i < rows.size(); ++i)
            gains.push_back((corners[i].first - losses[rows[i]][0]) *
                            (corners[i].second - losses[rows[i]][1]));
        const std::size_t at = first_greatest(gains);
        const std::size_t row = rows[at];
        chosen.push_back(row);
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(at));
        corners.erase(corners.begin() + static_cast<std::ptrdiff_t>(at));
        for (std::size_t i = 0; i < rows.size(); ++i) {
            Corner& corner = corners[i];
            if (i < at)
                corner.first = std::min(corner.first, losses[row][0]);
            else
                corner.second = std::min(corner.second, losses[row][1]);
        }
    }
    return chosen;
}

/// What `row` adds to the rows that are chosen.
double gain_of(const LossTable& losses, std::size_t row, const std::vector<std::size_t>& chosen,
               std::span<const double> reference) {
    LossTable shared(losses.columns());
    std::vector<double> cells(losses.columns());
    for (const std::size_t other : chosen) {
        for (std::size_t c = 0; c < cells.size(); ++c)
            cells[c] = std::max(losses[row][c], losses[other][c]);
        shared.add(cells);
    }
    return box(losses[row], reference) - hypervolume(shared, reference);
}

/// Three and more: a gain only shrinks as more rows are chosen, so an old one is an upper bound,
/// and only rows whose bound reaches the best gain found are computed anew.
std::vector<std::size_t> select_in_space(const LossTable& losses, std::vector<std::size_t> rows,
                                         std::span<const double> reference, std::size_t count) {
    std::vector<double> gains;
    for (const std::size_t row : rows) gains.push_back(box(losses[row], reference));
    std::vector<std::size_t> chosen;
    while (true) {
        const std::size_t at = first_greatest(gains);
        chosen.push_back(rows[at]);
        if (chosen.size() == count) return chosen;
        rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(at));
        gains.erase(gains.begin() + static_cast<std::ptrdiff_t>(at));
        std::vector<std::size_t> order(rows.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return gains[a] > gains[b]; });
        double best = 0;
        for (const std::size_t i : order) {
            if (std::isinf(gains[i]) || gains[i] < best) continue;
            gains[i] = gain_of(losses, rows[i], chosen, reference);
            best = std::max(best, gains[i]);
        }
    }
}

bool is_finite(std::span<const double> point) {
    return std::all_of(point.begin(), point.end(), [](double x) { return std::isfinite(x); });
}

}  // namespace

double hypervolume(const LossTable& losses, std::span<const double> reference) {
    if (!is_finite(reference)) return kUnbounded;
    const LossTable front = front_of(losses);
    if (front.rows() == 0) return 0;
    double volume = 0;
    if (front.columns() == 1)
        volume = reference[0] - front[0][0];
    else if (front.columns() == 2)
        volume = area(front, reference);
    else if (front.columns() == 3)
        volume = volume_of_three(front, reference);
    else
        volume = volume_of_many(front, reference);
    return std::isfinite(volume) ? volume : kUnbounded;
}

std::vector<std::size_t> select_by_hypervolume(const LossTable& losses,
                                               std::span<const double> reference,
                                               std::size_t count) {
    std::vector<std::size_t> all(losses.rows());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (count == all.size()) return all;
    std::vector<std::size_t> distinct = distinct_rows(losses);
    if (distinct.size() >= count) {
        if (!is_finite(reference) || distinct.size() == count) {
            distinct.resize(count);
            return distinct;
        }
        return losses.columns() == 2
                   ? select_in_plane(losses, std::move(distinct), reference, count)
                   : select_in_space(losses, std::move(distinct), reference, count);
    }
    // Too few distinct ones: the earliest of the others fill up.
    std::vector<bool> is_distinct(all.size(), false);
    for (const std::size_t row : distinct) is_distinct[row] = true;
    for (std::size_t row = 0; distinct.size() < count; ++row)
        if (!is_distinct[row]) distinct.push_back(row);
    return distinct;
}

std::vector<double> reference_point(const LossTable& losses) {
    std::vector<double> point(losses.columns(), -kUnbounded);
    for (std::size_t row = 0; row < losses.rows(); ++row)
        for (std::size_t c = 0; c < point.size(); ++c)
            point[c] = std::max(point[c], losses[row][c]);
    for (double& worst : point) {
        worst = std::max(1.1 * worst, 0.9 * worst);
        if (worst == 0) worst = 1e-12;
    }
    return point;
}

}  // namespace tune::tuner
