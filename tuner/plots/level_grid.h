#pragma once
// A surface over scattered values, and where it crosses a level. Private to tuner/plots. Pure.

#include <cstddef>
#include <utility>
#include <vector>

namespace tune::tuner {

/// Values at the nodes of a square grid, row by row from the bottom.
struct LevelGrid {
    std::size_t side = 0;
    std::vector<double> z = {};

    [[nodiscard]] double at(std::size_t column, std::size_t row) const {
        return z[row * side + column];
    }
};

/// A node whose value is given.
struct GridValue {
    std::size_t column = 0;
    std::size_t row = 0;
    double value = 0;
};

/// The surface that has the given values and is the mean of its neighbours at every other node,
/// with slope 0 at the edges: Laplace's equation, as plotly and Optuna fill their grids. Of several
/// values at one node the last counts. Constant where there is one value, empty where there is
/// none. To 1e-10 of the range of the values. Cost O(side^3): 30 ms at 100.
[[nodiscard]] LevelGrid interpolated(std::size_t side, const std::vector<GridValue>& known);

/// A corner of an outline, in nodes from the grid's lower left one.
struct GridSpot {
    double x = 0;
    double y = 0;
};

/// The closed outlines of where the surface is at least `level`, holes included (even-odd).
/// Linear between nodes; the grid's edge closes what reaches it.
[[nodiscard]] std::vector<std::vector<GridSpot>> outlines(const LevelGrid& grid, double level);

}  // namespace tune::tuner
