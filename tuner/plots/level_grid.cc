// The surface solves Laplace's equation at the free nodes of the grid: each is the mean of its
// neighbours, the given ones are fixed. The matrix is symmetric and positive definite, so conjugate
// gradients converge; they stop at a residual of 1e-10 of the range. The outlines follow marching
// squares: each cell edge that crosses the level gets a point, each cell links its points, and the
// ring of low nodes around the grid closes every chain.

#include "tuner/plots/level_grid.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace tune::tuner {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// The equations of the unknown nodes: degree * z - (sum of the neighbours) = 0.
class Laplace {
public:
    Laplace(std::size_t side, const std::vector<std::optional<double>>& known)
        : side_(side), known_(known) {}

    /// Neighbours of a node, at most four.
    template <typename Visit>
    void visit(std::size_t node, Visit&& take) const {
        const std::size_t column = node % side_;
        if (column > 0) take(node - 1);
        if (column + 1 < side_) take(node + 1);
        if (node >= side_) take(node - side_);
        if (node + side_ < known_.size()) take(node + side_);
    }

    [[nodiscard]] double degree(std::size_t node) const {
        double count = 0;
        visit(node, [&](std::size_t) { ++count; });
        return count;
    }

    /// out = A * z over the unknown nodes; z is 0 at the others.
    void multiply(const std::vector<double>& z, std::vector<double>& out) const {
        for (std::size_t node = 0; node < z.size(); ++node) {
            if (known_[node]) continue;
            double sum = 0;
            visit(node, [&](std::size_t other) { sum += z[node] - z[other]; });
            out[node] = sum;
        }
    }

    /// What the given values add to the right-hand side.
    [[nodiscard]] std::vector<double> right_hand_side() const {
        std::vector<double> b(known_.size(), 0.0);
        for (std::size_t node = 0; node < known_.size(); ++node)
            if (!known_[node])
                visit(node, [&](std::size_t other) { b[node] += known_[other].value_or(0); });
        return b;
    }

private:
    std::size_t side_;
    const std::vector<std::optional<double>>& known_;
};

/// Conjugate gradients, preconditioned by the diagonal. The matrix is symmetric and, with one given
/// value or more, positive definite.
std::vector<double> solve(const Laplace& equations, std::size_t size) {
    std::vector<double> z(size, 0.0);
    std::vector<double> residual = equations.right_hand_side();
    std::vector<double> scale(size);
    for (std::size_t node = 0; node < size; ++node) scale[node] = 1 / equations.degree(node);
    const auto scaled = [&] {
        std::vector<double> out(size);
        for (std::size_t node = 0; node < size; ++node) out[node] = residual[node] * scale[node];
        return out;
    };
    std::vector<double> preconditioned = scaled();
    std::vector<double> direction = preconditioned;
    std::vector<double> moved(size, 0.0);
    double length = dot(residual, preconditioned);
    const double enough = length * 1e-26;
    const std::size_t steps_max = 20 * size;  // far beyond what a grid of this size takes
    for (std::size_t i = 0; i < steps_max && length > enough && length > 0; ++i) {
        equations.multiply(direction, moved);
        const double step = length / dot(direction, moved);
        for (std::size_t node = 0; node < size; ++node) {
            z[node] += step * direction[node];
            residual[node] -= step * moved[node];
        }
        preconditioned = scaled();
        const double before = std::exchange(length, dot(residual, preconditioned));
        for (std::size_t node = 0; node < size; ++node)
            direction[node] = preconditioned[node] + length / before * direction[node];
    }
    return z;
}

// Outlines. The grid is seen with a ring of nodes around it that lie below every level at the same
// places as its edge, so that every outline is closed.

/// Between two neighbouring nodes: the left or lower one, and whether the other is above it.
struct Crossing {
    long column = 0;
    long row = 0;
    bool is_upwards = false;

    auto operator<=>(const Crossing&) const = default;
};

class Tracer {
public:
    Tracer(const LevelGrid& grid, double level)
        : grid_(grid), level_(level), side_(static_cast<long>(grid.side)) {}

    [[nodiscard]] std::vector<std::vector<GridSpot>> trace() {
        for (long row = -1; row < side_; ++row)
            for (long column = -1; column < side_; ++column) add_cell(column, row);
        std::vector<std::vector<GridSpot>> found;
        for (auto& [start, ends] : segments_) {
            if (ends.empty()) continue;
            std::vector<GridSpot> loop;
            Crossing at = start;
            // A crossing belongs to two cells and has one segment in each: the way leads back.
            while (!segments_[at].empty()) {
                const Crossing next = segments_[at].back();
                segments_[at].pop_back();
                std::vector<Crossing>& back = segments_[next];
                back.erase(std::find(back.begin(), back.end(), at));
                add(loop, spot_of(at));
                at = next;
            }
            if (loop.size() > 2) found.push_back(std::move(loop));
        }
        return found;
    }

private:
    [[nodiscard]] double value(long column, long row) const {
        if (column < 0 || row < 0 || column >= side_ || row >= side_)
            return -std::numeric_limits<double>::infinity();
        return grid_.at(static_cast<std::size_t>(column), static_cast<std::size_t>(row));
    }
    [[nodiscard]] bool is_above(long column, long row) const {
        return value(column, row) >= level_;
    }

    void join(Crossing a, Crossing b) {
        segments_[a].push_back(b);
        segments_[b].push_back(a);
    }

    void add_cell(long column, long row) {
        const Crossing bottom{column, row, false};
        const Crossing top{column, row + 1, false};
        const Crossing left{column, row, true};
        const Crossing right{column + 1, row, true};
        const std::array<bool, 4> corners = {is_above(column, row), is_above(column + 1, row),
                                             is_above(column + 1, row + 1),
                                             is_above(column, row + 1)};
        // A side is crossed when its two corners differ.
        std::vector<Crossing> crossed;
        const std::array<Crossing, 4> sides = {bottom, right, top, left};
        for (std::size_t i = 0; i < 4; ++i)
            if (corners[i] != corners[(i + 1) % 4]) crossed.push_back(sides[i]);
        if (crossed.size() == 2) join(crossed[0], crossed[1]);
        if (crossed.size() != 4) return;
        // Two opposite corners are above: the mean says whether the middle joins them.
        const double middle = (value(column, row) + value(column + 1, row) +
                               value(column + 1, row + 1) + value(column, row + 1)) /
                              4;
        const bool cuts_first = (middle >= level_) != corners[0];
        join(bottom, cuts_first ? left : right);
        join(top, cuts_first ? right : left);
    }

    [[nodiscard]] GridSpot spot_of(const Crossing& crossing) const {
        const long other_column = crossing.column + (crossing.is_upwards ? 0 : 1);
        const long other_row = crossing.row + (crossing.is_upwards ? 1 : 0);
        const double from = value(crossing.column, crossing.row);
        const double to = value(other_column, other_row);
        const auto inside = [&](long node) {
            return static_cast<double>(std::clamp(node, 0L, side_ - 1));
        };
        const GridSpot a{inside(crossing.column), inside(crossing.row)};
        const GridSpot b{inside(other_column), inside(other_row)};
        // Between the edge and the ring both ends are the same place.
        const double share =
            std::isfinite(from) && std::isfinite(to) ? (level_ - from) / (to - from) : 0;
        return {a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
    }

    /// Spots on a straight line with the two before them replace the last.
    static void add(std::vector<GridSpot>& loop, GridSpot spot) {
        if (loop.size() >= 2) {
            const GridSpot a = loop[loop.size() - 2];
            const GridSpot b = loop.back();
            const double turn = (b.x - a.x) * (spot.y - b.y) - (b.y - a.y) * (spot.x - b.x);
            const double along = (b.x - a.x) * (spot.x - b.x) + (b.y - a.y) * (spot.y - b.y);
            if (std::abs(turn) < 1e-12 && along >= 0) {
                loop.back() = spot;
                return;
            }
        }
        loop.push_back(spot);
    }

    const LevelGrid& grid_;
    double level_;
    long side_;
    std::map<Crossing, std::vector<Crossing>> segments_;
};

}  // namespace

LevelGrid interpolated(std::size_t side, const std::vector<GridValue>& known) {
    if (known.empty() || side == 0) return {};
    // Solved around the first value: a large common part of the values costs no digits.
    const double base = known.front().value;
    std::vector<std::optional<double>> given(side * side);
    for (const GridValue& one : known) given[one.row * side + one.column] = one.value - base;
    LevelGrid grid{.side = side, .z = solve(Laplace(side, given), given.size())};
    for (std::size_t node = 0; node < grid.z.size(); ++node)
        grid.z[node] = base + given[node].value_or(grid.z[node]);
    return grid;
}

std::vector<std::vector<GridSpot>> outlines(const LevelGrid& grid, double level) {
    return grid.side == 0 ? std::vector<std::vector<GridSpot>>{} : Tracer(grid, level).trace();
}

}  // namespace tune::tuner
