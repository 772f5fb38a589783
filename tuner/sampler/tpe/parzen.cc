// The adaptive Parzen estimator of Optuna 5.0.0 (optuna/samplers/_tpe/parzen_estimator.py), after
// Bergstra et al., "Algorithms for Hyper-Parameter Optimization" (2011), and Watanabe,
// arXiv:2304.11127.
//
// The idea. The density of n observations is a mixture of n product kernels and one prior,
//     p(x) = sum_i w_i prod_j k_ij(x_j) / sum_i w_i,
// where k_ij is a normal distribution truncated to the segment of axis j, centred on observation i;
// integrated over the cell of a grid value where the axis has a step; and a smoothed indicator
// where the axis is a category. Its bandwidth is the larger gap to the two neighbours on that axis,
// clipped to [R/min(100, n+2), R].
//
// Why it can be kept incrementally. A bandwidth depends on the two neighbours in sorted order only,
// so a new observation changes at most three bandwidths an axis: its own and its neighbours'. The
// lower clip depends on n, but is R/100 for good from n = 98 on; below that the rows that sit on it
// are settled again, which is a few dozen rows. Normalisers (logarithms, two error functions) are
// therefore computed only for rows whose bandwidth changed, and an ask reads them.
//
// Every stored number is a pure function of the set of observations, never of the path that led
// there: nothing is updated by differences. So a rebuilt sampler has the same bits.
//
// Exactness: no approximation here; tails beyond 8.3 deviations are dropped, where 1 - tail == 1.

#include "tuner/sampler/tpe/parzen.h"

#include <array>
#include <cmath>

#include "base/check.h"
#include "tuner/sampler/normal.h"

namespace tune::tuner {
namespace {

constexpr double kSqrtTau = 2.50662827463100050242;
constexpr std::size_t kFullWeights = 25;  // the newest so many observations weigh 1
constexpr double kNarrow = 0.02;
constexpr std::size_t kDrawn = 32;  // positions at a time
constexpr double kUnsettled = 0;    // no bandwidth

}  // namespace

ParzenEstimator::ParzenEstimator(std::vector<Axis> axes, Weights by, Floor floor)
    : axes_(std::move(axes)),
      by_(by),
      floor_(floor),
      base_(-std::numeric_limits<double>::infinity()) {
    for (const Axis& axis : axes_) {
        if (axis.kind == Axis::Kind::kCategory) {
            slot_.push_back(codes_.size());
            codes_.emplace_back(-1.0);
            continue;
        }
        slot_.push_back(kernels_.size());
        KernelColumns kernel;
        kernel.prior_low_tail = upper_tail((axis.prior_mean() - axis.low) / axis.prior_width());
        kernel.prior_high_tail = upper_tail((axis.high - axis.prior_mean()) / axis.prior_width());
        // Without a prior of the user's it sits in the middle with sigma = R: both bounds are half
        // a deviation away, exactly.
        if (axis.spread == 0) kernel.prior_low_tail = kernel.prior_high_tail = upper_tail(0.5);
        const double log_z = std::log1p(-(kernel.prior_low_tail + kernel.prior_high_tail));
        kernel.prior_log_norm =
            log_z +
            (axis.kind == Axis::Kind::kContinuous ? std::log(axis.prior_width() * kSqrtTau) : 0);
        kernel.floor = smallest_bandwidth(axis, 0);
        if (axis.kind == Axis::Kind::kStepped) kernel.cells = std::make_unique<CellTables>(axis);
        kernels_.push_back(std::move(kernel));
    }
}

double ParzenEstimator::smallest_bandwidth(const Axis& axis, std::size_t count) const {
    const double n = static_cast<double>(count) + 2;
    if (floor_ == Floor::kOptuna || axis.kind == Axis::Kind::kStepped)
        return axis.range / std::min(100.0, n);
    return axis.range * std::max(kNarrow, floor_ == Floor::kNarrow ? 1 / n : 1 / (n * n));
}

void ParzenEstimator::insert(std::uint64_t number, std::span<const double> positions) {
    const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    TUNE_CHECK(at == numbers_.end() || *at != number, "the trial is already in this estimator");
    const auto row = static_cast<std::size_t>(at - numbers_.begin());
    const std::size_t count = numbers_.size();
    numbers_.insert(at, number);
    base_.insert(row, count, 0);
    weights_.insert(row, count, 0);
    touched_.assign(1, static_cast<std::uint32_t>(row));
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        if (axes_[j].kind == Axis::Kind::kCategory) {
            codes_[slot_[j]].insert(row, count, positions[j]);
        } else {
            insert_axis(j, row, positions[j]);
        }
    }
    settle_weights();
    settle_axes();
    if (all_touched_) {
        for (std::size_t i = 0; i <= count; ++i) settle_base(i);
    } else {
        for (const std::uint32_t i : touched_) settle_base(i);
    }
    all_touched_ = false;
}

void ParzenEstimator::erase(std::uint64_t number) {
    const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    TUNE_CHECK(at != numbers_.end() && *at == number, "the trial is not in this estimator");
    const auto row = static_cast<std::size_t>(at - numbers_.begin());
    const std::size_t count = numbers_.size();
    touched_.clear();
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        if (axes_[j].kind == Axis::Kind::kCategory) {
            codes_[slot_[j]].erase(row, count);
        } else {
            erase_axis(j, row);
        }
    }
    numbers_.erase(at);
    base_.erase(row, count);
    weights_.erase(row, count);
    settle_weights();
    settle_axes();
    if (all_touched_) {
        for (std::size_t i = 0; i + 1 < count; ++i) settle_base(i);
    } else {
        for (const std::uint32_t i : touched_) settle_base(i);
    }
    all_touched_ = false;
}

void ParzenEstimator::insert_axis(std::size_t axis_index, std::size_t row, double position) {
    const Axis& axis = axes_[axis_index];
    KernelColumns& kernel = kernels_[slot_[axis_index]];
    const std::size_t count = kernel.order.size();
    kernel.mu.insert(row, count, position);
    kernel.raw.insert(row, count, 0);
    kernel.sigma.insert(row, count, kUnsettled);
    kernel.inverse.insert(row, count, 0);
    kernel.log_norm.insert(row, count, 0);
    kernel.low_tail.insert(row, count, 0);
    kernel.high_tail.insert(row, count, 0);
    if (kernel.cells) kernel.cells->classes().insert_row(row);
    const auto new_row = static_cast<std::uint32_t>(row);
    if (row != count)
        for (std::uint32_t& other : kernel.order) other += other >= new_row ? 1 : 0;
    const auto place = std::lower_bound(
        kernel.order.begin(), kernel.order.end(), new_row, [&](std::uint32_t a, std::uint32_t b) {
            return kernel.mu[a] != kernel.mu[b] ? kernel.mu[a] < kernel.mu[b] : a < b;
        });
    const auto index = static_cast<std::size_t>(place - kernel.order.begin());
    kernel.order.insert(place, new_row);
    kernel.floor = smallest_bandwidth(axis, count + 1);
    for (std::size_t i = index == 0 ? 0 : index - 1; i <= index + 1 && i <= count; ++i)
        refresh_raw(axis, kernel, i);
}

void ParzenEstimator::erase_axis(std::size_t axis_index, std::size_t row) {
    const Axis& axis = axes_[axis_index];
    KernelColumns& kernel = kernels_[slot_[axis_index]];
    const std::size_t count = kernel.order.size();
    const auto old_row = static_cast<std::uint32_t>(row);
    const auto place = std::lower_bound(
        kernel.order.begin(), kernel.order.end(), old_row, [&](std::uint32_t a, std::uint32_t b) {
            return kernel.mu[a] != kernel.mu[b] ? kernel.mu[a] < kernel.mu[b] : a < b;
        });
    const auto index = static_cast<std::size_t>(place - kernel.order.begin());
    kernel.order.erase(place);
    for (std::uint32_t& other : kernel.order) other -= other > old_row ? 1 : 0;
    for (Column* column : {&kernel.mu, &kernel.raw, &kernel.sigma, &kernel.inverse,
                           &kernel.log_norm, &kernel.low_tail, &kernel.high_tail})
        column->erase(row, count);
    if (kernel.cells) kernel.cells->classes().erase_row(row);
    kernel.floor = smallest_bandwidth(axis, count - 1);
    for (std::size_t i = index == 0 ? 0 : index - 1; i <= index && i + 1 < count; ++i)
        refresh_raw(axis, kernel, i);
}

/// Drops the first rows of one axis.
void ParzenEstimator::erase_front(const Axis& axis, KernelColumns& kernel, std::size_t gone) {
    const std::size_t count = kernel.order.size();
    std::erase_if(kernel.order, [&](std::uint32_t row) { return row < gone; });
    for (std::uint32_t& row : kernel.order) row -= static_cast<std::uint32_t>(gone);
    for (Column* column : {&kernel.mu, &kernel.raw, &kernel.sigma, &kernel.inverse,
                           &kernel.log_norm, &kernel.low_tail, &kernel.high_tail})
        column->erase_front(gone, count);
    if (kernel.cells) kernel.cells->classes().erase_front(gone);
    kernel.floor = smallest_bandwidth(axis, count - gone);
    for (std::size_t i = 0; i < count - gone; ++i) refresh_raw(axis, kernel, i);
}

void ParzenEstimator::erase_before(std::uint64_t number) {
    const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), number);
    const auto gone = static_cast<std::size_t>(at - numbers_.begin());
    if (gone == 0) return;
    const std::size_t count = numbers_.size();
    numbers_.erase(numbers_.begin(), at);
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        if (axes_[j].kind == Axis::Kind::kCategory) {
            codes_[slot_[j]].erase_front(gone, count);
        } else {
            erase_front(axes_[j], kernels_[slot_[j]], gone);
        }
    }
    touched_.clear();
    base_.erase_front(gone, count);
    weights_.erase_front(gone, count);
    settle_weights();
    settle_axes();
    for (std::size_t i = 0; i < count - gone; ++i) settle_base(i);
}

/// The bandwidth of the kernel at `place` in sorted order, from its neighbours.
void ParzenEstimator::refresh_raw(const Axis& axis, KernelColumns& kernel, std::size_t place) {
    const std::size_t count = kernel.order.size();
    const std::uint32_t row = kernel.order[place];
    const double here = kernel.mu[row];
    const bool is_first = place == 0;
    const bool is_last = place + 1 == count;
    const double left = is_first ? here - axis.low : here - kernel.mu[kernel.order[place - 1]];
    const double right = is_last ? axis.high - here : kernel.mu[kernel.order[place + 1]] - here;
    // The outermost kernels look inwards only, unless there is but one.
    double raw = std::max(left, right);
    if (count >= 2 && is_first) raw = right;
    if (count >= 2 && is_last) raw = left;
    kernel.raw[row] = raw;
    // Where points lie close, most bandwidths are the smallest one whatever comes between them.
    if (kernel.sigma[row] != std::clamp(raw, kernel.floor, axis.range)) {
        settle_row(axis, kernel, row);
        touched_.push_back(row);
    }
    if (!kernel.cells) return;
    kernel.cells->classes().set(row, is_first ? KernelClasses::kNone : kernel.order[place - 1],
                                is_last ? KernelClasses::kNone : kernel.order[place + 1], here,
                                kernel.inverse[row]);
}

/// Everything that follows from a row's raw bandwidth.
void ParzenEstimator::settle_row(const Axis& axis, KernelColumns& kernel, std::size_t row) {
    const double sigma = std::clamp(kernel.raw[row], kernel.floor, axis.range);
    const double mu = kernel.mu[row];
    const double to_low = (mu - axis.low) / sigma;
    const double to_high = (axis.high - mu) / sigma;
    const double low_tail = to_low > kTailGone ? 0 : upper_tail(to_low);
    const double high_tail = to_high > kTailGone ? 0 : upper_tail(to_high);
    const double log_z = low_tail + high_tail == 0 ? 0 : std::log1p(-(low_tail + high_tail));
    kernel.sigma[row] = sigma;
    kernel.inverse[row] = kSqrtHalf / sigma;
    kernel.low_tail[row] = low_tail;
    kernel.high_tail[row] = high_tail;
    kernel.log_norm[row] =
        log_z + (axis.kind == Axis::Kind::kContinuous ? std::log(sigma * kSqrtTau) : 0);
}

/// While few rows are there the smallest bandwidth moves with their number, and with it every row
/// that sits on it. On a grid many of these are alike, one after the other in order.
void ParzenEstimator::settle_floor(const Axis& axis, KernelColumns& kernel) {
    if (kernel.floor == kernel.settled_floor) return;
    kernel.settled_floor = kernel.floor;
    std::uint32_t last = KernelClasses::kNone;
    for (const std::uint32_t row : kernel.order) {
        const double sigma = std::clamp(kernel.raw[row], kernel.floor, axis.range);
        if (kernel.sigma[row] == sigma) continue;
        if (last != KernelClasses::kNone && kernel.mu[last] == kernel.mu[row] &&
            kernel.sigma[last] == sigma) {
            for (Column* column : {&kernel.sigma, &kernel.inverse, &kernel.log_norm,
                                   &kernel.low_tail, &kernel.high_tail})
                (*column)[row] = (*column)[last];
        } else {
            settle_row(axis, kernel, row);
        }
        last = row;
    }
    if (last == KernelClasses::kNone) return;
    all_touched_ = true;
    if (kernel.cells)
        kernel.cells->classes().rebuild(kernel.order, kernel.mu.data(), kernel.inverse.data());
}

/// What follows from the number of rows, on every numeric axis.
void ParzenEstimator::settle_axes() {
    for (std::size_t j = 0; j < axes_.size(); ++j) {
        if (axes_[j].kind == Axis::Kind::kCategory) continue;
        KernelColumns& kernel = kernels_[slot_[j]];
        settle_floor(axes_[j], kernel);
        if (kernel.cells) kernel.cells->settle(kernel.order.size());
    }
}

void ParzenEstimator::settle_base(std::size_t row) {
    double sum = 0;
    for (const KernelColumns& kernel : kernels_) sum += kernel.log_norm[row];
    base_[row] = -sum;
}

/// The newest 25 observations weigh 1, older ones fall linearly to 1/n (numpy.linspace).
void ParzenEstimator::settle_weights() {
    const std::size_t count = numbers_.size();
    const std::size_t ramp =
        count < kFullWeights || by_ == Weights::kEqual ? 0 : count - kFullWeights;
    const double first = 1.0 / static_cast<double>(std::max<std::size_t>(count, 1));
    const double step = ramp > 1 ? (1 - first) / static_cast<double>(ramp - 1) : 0;
    double* weights = weights_.data();
    for (std::size_t i = 0; i < ramp; ++i) weights[i] = static_cast<double>(i) * step + first;
    if (ramp > 1) weights[ramp - 1] = 1;
    for (std::size_t i = ramp; i < count; ++i) weights[i] = 1;
    // The ramp's sum in closed form; the prior weighs 1.
    const double ramp_sum = ramp > 1    ? static_cast<double>(ramp) * (first + 1) / 2
                            : ramp == 1 ? first
                                        : 0;
    weight_sum_ = ramp_sum + static_cast<double>(count - ramp) + 1;
}

std::size_t ParzenEstimator::component(double uniform) const {
    const double target = uniform * weight_sum_;
    double sum = 0;
    for (std::size_t row = 0; row < numbers_.size(); ++row) {
        sum += weights_[row];
        if (target < sum) return row;
    }
    return numbers_.size();
}

double ParzenEstimator::draw_category(std::size_t axis_index, std::size_t row,
                                      double uniform) const {
    const Axis& axis = axes_[axis_index];
    const bool is_prior = row == numbers_.size();
    const double count = axis.categories;
    if (is_prior && (numbers_.empty() || !axis.shares.empty())) return axis.category_at(uniform);
    // Each category has mass `share`, the observed one `own` more: invert the staircase.
    const double smoothing = 1 / (static_cast<double>(numbers_.size()) + 1);
    const double total = 1 + count * smoothing;
    const double share = is_prior ? 1 / count : smoothing / total;
    const double own = is_prior ? 0 : 1 / total;
    const double code = is_prior ? 0 : codes_[slot_[axis_index]][row];
    if (uniform <= share * code) return std::max(std::ceil(uniform / share) - 1, 0.0);
    if (uniform <= share * (code + 1) + own) return code;
    return std::min(std::ceil((uniform - own) / share) - 1, count - 1);
}

void ParzenEstimator::draw(std::size_t axis_index, std::span<const std::size_t> rows,
                           std::span<const double> uniforms, std::span<double> positions) const {
    if (axes_[axis_index].kind == Axis::Kind::kCategory) {
        for (std::size_t c = 0; c < rows.size(); ++c)
            positions[c] = draw_category(axis_index, rows[c], uniforms[c]);
        return;
    }
    for (std::size_t begin = 0; begin < rows.size(); begin += kDrawn) {
        const std::size_t count = std::min(kDrawn, rows.size() - begin);
        draw_numbers(axis_index, rows.subspan(begin, count), uniforms.subspan(begin, count),
                     positions.subspan(begin, count));
    }
}

/// At most kDrawn of them, from truncated normal distributions.
void ParzenEstimator::draw_numbers(std::size_t axis_index, std::span<const std::size_t> rows,
                                   std::span<const double> uniforms,
                                   std::span<double> positions) const {
    const Axis& axis = axes_[axis_index];
    const KernelColumns& kernel = kernels_[slot_[axis_index]];
    std::array<double, kDrawn> low_tails;
    std::array<double, kDrawn> high_tails;
    for (std::size_t c = 0; c < rows.size(); ++c) {
        const bool is_prior = rows[c] == numbers_.size();
        low_tails[c] = is_prior ? kernel.prior_low_tail : kernel.low_tail[rows[c]];
        high_tails[c] = is_prior ? kernel.prior_high_tail : kernel.high_tail[rows[c]];
        positions[c] = uniforms[c];
    }
    truncated_normal_quantiles({low_tails.data(), rows.size()}, {high_tails.data(), rows.size()},
                               positions);
    for (std::size_t c = 0; c < rows.size(); ++c) {
        const bool is_prior = rows[c] == numbers_.size();
        const double mu = is_prior ? axis.prior_mean() : kernel.mu[rows[c]];
        const double sigma = is_prior ? axis.prior_width() : kernel.sigma[rows[c]];
        positions[c] = std::clamp(mu + sigma * positions[c], axis.low, axis.high);
        if (axis.kind == Axis::Kind::kStepped)
            positions[c] = axis.position(axis.value(positions[c]));
    }
}

double ParzenEstimator::log_own_category(std::size_t axis) const {
    const double smoothing = 1 / (static_cast<double>(numbers_.size()) + 1);
    return std::log((smoothing + 1) / (1 + axes_[axis].categories * smoothing));
}

double ParzenEstimator::log_other_category(std::size_t axis) const {
    const double smoothing = 1 / (static_cast<double>(numbers_.size()) + 1);
    return std::log(smoothing / (1 + axes_[axis].categories * smoothing));
}

double ParzenEstimator::log_prior(std::size_t axis_index, double position) const {
    const Axis& axis = axes_[axis_index];
    if (axis.kind == Axis::Kind::kCategory)
        return axis.shares.empty() ? -std::log(axis.categories)
                                   : std::log(axis.category_share(position));
    TUNE_CHECK(axis.kind == Axis::Kind::kContinuous, "a cell's prior mass is in its table");
    const double z = (position - axis.prior_mean()) / axis.prior_width();
    return -0.5 * z * z - kernels_[slot_[axis_index]].prior_log_norm;
}

}  // namespace tune::tuner
