#pragma once
// PED-ANOVA: which parameters decide whether a trial is among the best (Watanabe, Bansal, Hutter
// 2023; with conditions: Optuna 5.0.0, importance/_ped_anova). A parameter matters as far as its
// values among the best tenth of the trials differ from its values among all.
//
// The state is counts, kept as trials come in, so that a page may ask during the study.

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tuner/space/space.h"

namespace tune::tuner {

/// Not thread-safe. Memory: 2 bytes a trial and parameter, and about 100 a trial.
class PedAnova {
public:
    /// `target`: the share of the trials that counts as the best, above 0, below 1.
    explicit PedAnova(Space space, double target = 0.1);

    /// A complete trial. `loss`: lower is better; trials whose loss is not finite do not count.
    /// REQUIRES: the point lies in the space. O(log n + parameters).
    void add(const Point& point, double loss);

    [[nodiscard]] std::size_t count() const { return losses_.size(); }
    [[nodiscard]] const Space& space() const { return space_; }

    /// One value a parameter, >= 0, larger is more important; all 0 below two trials. Not
    /// normalised. O(parameters * cells^2), at most 50 cells (choices: as many as there are), and
    /// O(trials that tie with the worst of the best).
    [[nodiscard]] std::vector<double> importances() const;

private:
    using Cell = std::uint16_t;
    using Ranked = std::pair<double, std::uint32_t>;  // loss, row

    struct Axis {
        std::size_t cells = 0;  // 0: one value only, never important
        bool is_ordered = true;
        double low = 0;  // of the logarithm where the axis is logarithmic
        double width = 1;
        bool log = false;
        std::vector<std::uint32_t> all;   // trials a cell
        std::vector<std::uint32_t> best;  // those among the best
    };

    [[nodiscard]] static Axis axis_of(const Parameter& parameter);
    [[nodiscard]] static Cell cell_of(const Axis& axis, double internal);
    void move(std::set<Ranked>& from, std::set<Ranked>& to, Ranked trial);
    void count_best(std::uint32_t row, bool is_added);
    [[nodiscard]] double divergence_of(std::size_t index, std::size_t best_size,
                                       const std::vector<std::uint32_t>& best) const;

    Space space_;
    double target_;
    std::vector<Axis> axes_;
    std::vector<Cell> cells_;  // row by row
    std::vector<double> losses_;
    std::set<Ranked> best_;  // the best ceil(target * n)
    std::set<Ranked> rest_;
};

/// The same numbers as shares of their sum; all 0 if the sum is.
[[nodiscard]] std::vector<double> shares_of(std::vector<double> importances);

}  // namespace tune::tuner
