#pragma once
// The Parzen estimator of TPE: a mixture of product kernels, one kernel an observation plus a wide
// prior, kept up to date observation by observation. Private to tuner/sampler.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tuner/sampler/axis.h"
#include "tuner/sampler/tpe/cell_tables.h"
#include "tuner/sampler/tpe/columns.h"

namespace tune::tuner {

/// The kernels of one numeric axis.
struct KernelColumns {
    Column mu{0};         // position of the observation
    Column raw{0};        // bandwidth before it is clipped
    Column sigma{1};      // bandwidth
    Column inverse{0};    // sqrt(1/2) / sigma
    Column log_norm{0};   // ln of what the kernel is divided by: sigma sqrt(tau) Z, or Z for a grid
    Column low_tail{0};   // mass of the untruncated kernel below the segment
    Column high_tail{0};  // and above it
    std::vector<std::uint32_t> order;  // rows by (mu, row)
    double prior_log_norm = 0;
    double prior_low_tail = 0;          // mass of the untruncated prior below the segment
    double prior_high_tail = 0;         // and above it
    double floor = 0;                   // smallest bandwidth at this size
    double settled_floor = 0;           // the one that every sigma is clipped to
    std::unique_ptr<CellTables> cells;  // stepped axes only
};

/// What a kernel weighs: kAge: the newest 25 weigh 1, older ones less and less; kEqual: all 1.
enum class Weights { kAge, kEqual };

/// The smallest bandwidth on an axis of range R under n kernels. kOptuna: R / min(100, n + 2).
/// kNarrow and kNarrowest, of continuous axes: R max(0.02, (n + 2)^-1) and R max(0.02, (n + 2)^-2).
enum class Floor { kOptuna, kNarrow, kNarrowest };

/// Points as the scoring kernel reads them (score.h), and the prior's part of their sums.
struct Candidates {
    /// One that some of the points lie in.
    struct Cell {
        double position;
        double low;
        double high;
    };
    std::vector<double> values;          // [count][continuous axes, then categories]
    std::vector<std::uint32_t> cells;    // [stepped axes][count], indices in `distinct`
    std::vector<Cell> distinct;          // axis by axis
    std::vector<std::size_t> cells_end;  // [stepped axes], in `distinct`
    std::vector<double> log_prior;       // [count]
};

/// Rows are observations in order of trial number; row size() stands for the prior.
class ParzenEstimator {
public:
    explicit ParzenEstimator(std::vector<Axis> axes, Weights by = Weights::kAge,
                             Floor floor = Floor::kOptuna);

    /// Adds an observation; `positions` has one entry an axis. REQUIRES: `number` is not in it.
    /// O(axes * (log n + rows after it)), and O(axes * n) while n < 98, when the smallest bandwidth
    /// still depends on n.
    void insert(std::uint64_t number, std::span<const double> positions);

    /// REQUIRES: `number` is in it. Cost as insert.
    void erase(std::uint64_t number);

    /// Drops every observation of a lower number. O(axes * n log n).
    void erase_before(std::uint64_t number);

    [[nodiscard]] std::size_t size() const { return numbers_.size(); }
    [[nodiscard]] std::span<const Axis> axes() const { return axes_; }

    /// `count` points, row-major [count][axes], for log_density() of this estimator and of others
    /// with the same axes.
    [[nodiscard]] Candidates lay_out(std::span<const double> points, std::size_t count) const;

    /// ln of the density (per unit of position; a probability for grids and categories) at each
    /// point. O(count * n * axes) at worst, far less when kernels are narrow.
    void log_density(const Candidates& points, std::span<double> out) const;
    void log_density(std::span<const double> points, std::span<double> out) const {
        log_density(lay_out(points, out.size()), out);
    }

    /// Draws positions from the mixture: `component` chooses a row by its weight, then draw() gives
    /// each axis its coordinates (of cells: their middles) from the kernels of such rows. All spans
    /// have one entry a point.
    [[nodiscard]] std::size_t component(double uniform) const;
    void draw(std::size_t axis, std::span<const std::size_t> rows, std::span<const double> uniforms,
              std::span<double> positions) const;

    // What the kernel reads.
    [[nodiscard]] std::size_t numeric_count() const { return kernels_.size(); }
    [[nodiscard]] const KernelColumns& kernel(std::size_t axis) const {
        return kernels_[slot_[axis]];
    }
    [[nodiscard]] const Column& category(std::size_t axis) const { return codes_[slot_[axis]]; }
    [[nodiscard]] const Column& base() const { return base_; }
    [[nodiscard]] const Column& weights() const { return weights_; }
    [[nodiscard]] double log_own_category(std::size_t axis) const;
    [[nodiscard]] double log_other_category(std::size_t axis) const;

    /// ln of the prior kernel on one axis. REQUIRES: not stepped (its cells know).
    [[nodiscard]] double log_prior(std::size_t axis, double position) const;

private:
    void insert_axis(std::size_t axis, std::size_t row, double position);
    void erase_axis(std::size_t axis, std::size_t row);
    void erase_front(const Axis& axis, KernelColumns& kernel, std::size_t gone);
    void refresh_raw(const Axis& axis, KernelColumns& kernel, std::size_t place);
    void settle_row(const Axis& axis, KernelColumns& kernel, std::size_t row);
    void settle_floor(const Axis& axis, KernelColumns& kernel);
    void settle_axes();
    void settle_base(std::size_t row);
    void settle_weights();

    [[nodiscard]] double smallest_bandwidth(const Axis& axis, std::size_t count) const;
    void draw_numbers(std::size_t axis, std::span<const std::size_t> rows,
                      std::span<const double> uniforms, std::span<double> positions) const;
    [[nodiscard]] double draw_category(std::size_t axis, std::size_t row, double uniform) const;

    std::vector<Axis> axes_;
    Weights by_;
    Floor floor_;
    std::vector<std::size_t> slot_;  // axis -> index in kernels_ or codes_
    std::vector<KernelColumns> kernels_;
    std::vector<Column> codes_;
    std::vector<std::uint64_t> numbers_;  // ascending
    Column base_;                         // minus the sum of log_norm over the axes
    Column weights_{0};
    double weight_sum_ = 1;
    std::vector<std::uint32_t> touched_;  // rows whose base must be formed again
    bool all_touched_ = false;
};

}  // namespace tune::tuner
