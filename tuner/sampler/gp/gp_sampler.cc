// Bayesian optimisation: a Gaussian process models the objective, and the next point is where the
// expected improvement over the best is greatest. Few trials tell it more than they tell TPE, at a
// cost that grows with their square and cube.
//
//   start      ten points of a scrambled Sobol sequence
//   values     ranks instead of values for the worse half, then standardised: an objective that
//              explodes somewhere must not flatten what matters ("half-rank warping", Song et al.,
//              "The Vizier Gaussian Process Bandit Algorithm", 2024)
//   pruned     count as what they last reported, but as no better than the median
//   running    take away uncertainty where they are, so that parallel asks keep apart
//   kernel     refitted at a few numbers of finished trials (10, 11, ... then every 4, 8, 16), on
//              at most 120 of them; between refits only the data changes
//   nearby     every third trial comes from a model of the 4 + d trials nearest to the best one,
//              fitted to these alone, and stays in the box they span, which shrinks as trials
//              gather: where the whole function is too rugged for one length scale a feature, its
//              ripples look like noise to the model of all trials (the idea of trust regions:
//              Eriksson et al., "TuRBO", 2019)
//   limit      at most 600 rows: the best and the latest
//
// Deterministic: everything is a function of (seed, number, observations), the fit too: it always
// starts at the same place and its trials are chosen by number. Sums depend on the processor's
// instructions through the C library's exp, so other machines may differ in last bits, which TPE's
// do not.

#include "tuner/sampler/gp/gp_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/decorators/deduplicating_sampler.h"
#include "tuner/sampler/gp/search.h"
#include "tuner/sampler/normal.h"

namespace tune::tuner {
namespace {

constexpr std::size_t kRowsMax = 600;
constexpr std::size_t kLatestRows = 300;
constexpr std::size_t kPendingMax = 64;
constexpr std::size_t kFitRowsMax = 120;
constexpr std::size_t kStarts = 6;
/// Every third trial looks around the best one only.
constexpr std::uint64_t kLocalEvery = 3;
/// Share of the values' variance that may be noise for that.
constexpr double kNoiseOfLocalMax = 0.1;
constexpr std::size_t kNeighbours = 4;
constexpr std::size_t kNeighboursPerFeature = 1;
/// Values below this and above its inverse are scaled.
constexpr double kSmall = 1e-100;

double median_of(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

/// Better than the median: as it is. Worse: where its rank would lie in a normal distribution whose
/// better half is as wide as that of the values.
void warp(std::vector<double>& values) {
    const double median = median_of(values);
    double sum = 0;
    std::size_t count = 0;
    for (const double value : values) {
        if (value >= median) continue;
        sum += (value - median) * (value - median);
        ++count;
    }
    if (count == 0) return;
    const double width = std::sqrt(sum / static_cast<double>(count));
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto n = static_cast<double>(values.size());
    for (double& value : values) {
        if (value <= median) continue;
        const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), value);
        const double rank =
            0.5 * static_cast<double>((first - sorted.begin()) + (last - sorted.begin()));
        value = median + width * normal_quantile(std::clamp(rank / n, 0.5, 1 - 0.25 / n));
    }
}

/// To mean 0 and deviation 1; returns the deviation that they had, 0 if all are the same.
double standardise(std::vector<double>& values) {
    const auto n = static_cast<double>(values.size());
    const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    double square = 0;
    for (const double value : values) square += (value - mean) * (value - mean);
    const double deviation = std::sqrt(square / n);
    for (double& value : values) value = deviation > 0 ? (value - mean) / deviation : 0;
    return deviation;
}

/// Brings values whose squares are no doubles near 1, by a power of two, which changes no digit;
/// returns its exponent.
int bring_near_one(std::vector<double>& values) {
    double largest = 0;
    for (const double value : values)
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
    if (largest == 0 || (largest > kSmall && largest < 1 / kSmall)) return 0;
    const int exponent = std::ilogb(largest);
    for (double& value : values) value = std::ldexp(value, -exponent);
    return exponent;
}

/// Infinities become a little worse, or better, than the rest.
void make_finite(std::vector<double>& values) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    if (!(low <= high)) low = high = 0;
    const double margin = high > low ? (high - low) : 1;
    for (double& value : values)
        if (!std::isfinite(value)) value = value > 0 ? high + margin : low - margin;
}

/// How many of the first trials the kernel is fitted to when `finished` are known.
std::size_t fit_count(std::size_t finished) {
    const std::size_t every = finished < 30    ? 1
                              : finished < 60  ? 2
                              : finished < 120 ? 4
                              : finished < 240 ? 8
                                               : 16;
    return finished / every * every;
}

GpData data_of(const std::vector<std::vector<double>>& rows, const std::vector<double>& values) {
    GpData data;
    const auto features = static_cast<Eigen::Index>(rows.front().size());
    data.rows.resize(static_cast<Eigen::Index>(rows.size()), features);
    for (std::size_t i = 0; i < rows.size(); ++i)
        data.rows.row(static_cast<Eigen::Index>(i)) =
            Eigen::Map<const Eigen::RowVectorXd>(rows[i].data(), features);
    data.values =
        Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
    return data;
}

/// Positions of the best `best` and the latest `latest` of the values, in order.
std::vector<std::size_t> best_and_latest(const std::vector<double>& values, std::size_t best,
                                         std::size_t latest) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (values.size() <= best + latest) return order;
    const auto middle = order.end() - static_cast<std::ptrdiff_t>(latest);
    std::stable_sort(order.begin(), middle,
                     [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(best), middle);
    std::sort(order.begin(), order.end());
    return order;
}

WarpUse warp_use(Warp warp) {
    switch (warp) {
        case Warp::kAuto: break;
        case Warp::kOn: return WarpUse::kAlways;
        case Warp::kOff: return WarpUse::kNever;
    }
    return WarpUse::kWhereItHelps;
}

constexpr const char* kGpName = "gp";

OptionTable gp_rows() {
    TableOf<GpOptions> table;
    table.integer("startup", &GpOptions::startup, 0, kCountMax,
                  "Sobol points before the model is used");
    add_model_rows(table);
    return table;
}

std::unique_ptr<Sampler> make_gp(const SamplerConfig& config, const SamplerContext& context) {
    return std::make_unique<GpSampler>(context.space, config.get<GpOptions>(),
                                       context.objectives.goals.front(), context.seed);
}

Result<void> check_gp(const Space& space, const SamplerConfig&) {
    return check_model_size(kGpName, space.size(), "parameters");
}

}  // namespace

const SamplerKind& gp_sampler() {
    static const OptionTable kOptions = gp_rows();
    static const SamplerKind kKind = [] {
        SamplerKind kind{{kGpName,
                          "the point of greatest expected improvement under a Gaussian process: "
                          "better than tpe with up to a few hundred trials, at a few ms per trial",
                          kOptions},
                         make_gp};
        kind.check_space = check_gp;
        return kind;
    }();
    return kKind;
}

GpSampler::GpSampler(const Space& space, const GpOptions& options, Goal goal, std::uint64_t seed)
    : space_(space),
      goal_(goal),
      startup_(static_cast<std::size_t>(options.startup)),
      warp_(warp_use(options.warp)),
      noise_(options.noise),
      encoding_(space_),
      first_(space_, seed),
      source_(seed) {
    for (const Feature& feature : encoding_.features())
        is_category_.push_back(feature.is_category());
    factor_ = CovarianceFactor(is_category_);
}

Result<void> GpSampler::observe(const Observation& observation) {
    TUNE_CHECK(observation.number < kTrialsMax, "trial numbers are below kTrialsMax");
    const double sign = goal_ == Goal::kMinimize ? 1 : -1;
    Trial trial;
    switch (observation.state) {
        case Observation::State::kRunning: break;
        case Observation::State::kComplete: trial.value = sign * observation.value; break;
        case Observation::State::kPruned:
            trial.is_pruned = true;
            trial.value = observation.last_step ? sign * observation.last_value
                                                : std::numeric_limits<double>::infinity();
            break;
        case Observation::State::kGone: break;
    }
    const bool is_nan = trial.value && std::isnan(*trial.value);
    if (observation.state == Observation::State::kGone || (is_nan && !trial.is_pruned)) {
        trials_.erase(observation.number);
        return {};
    }
    if (is_nan) trial.value = std::numeric_limits<double>::infinity();
    TUNE_TRY_VOID(space_.check(observation.point));
    trial.row = encoding_.row(observation.point);
    trials_.insert_or_assign(observation.number, std::move(trial));
    return {};
}

GpSampler::View GpSampler::view(std::uint64_t number) const {
    View view;
    for (const auto& [other, trial] : trials_) {
        if (other == number) continue;
        (trial.value ? view.finished : view.pending).push_back(&trial);
    }
    return view;
}

/// What the model sees of the first `count` finished trials; a function of these alone.
GpSampler::Values GpSampler::values_of(const View& view, std::size_t count) {
    Values of;
    std::vector<double>& values = of.values;
    std::vector<double> complete;
    for (std::size_t i = 0; i < count; ++i) values.push_back(*view.finished[i]->value);
    const int exponent = bring_near_one(values);
    make_finite(values);
    for (std::size_t i = 0; i < count; ++i)
        if (!view.finished[i]->is_pruned) complete.push_back(values[i]);
    if (!complete.empty()) {
        const double median = median_of(complete);
        for (std::size_t i = 0; i < count; ++i)
            if (view.finished[i]->is_pruned) values[i] = std::max(values[i], median);
    }
    warp(values);
    of.unit = std::ldexp(standardise(values), exponent);
    return of;
}

/// Settings of a fit to values of which one is so much of the objective's unit.
FitSettings GpSampler::fit_settings(double unit) const {
    FitSettings settings{warp_, {}};
    if (noise_ && unit > 0) settings.noise_variance = std::pow(*noise_ / unit, 2);
    return settings;
}

/// The kernel fitted to the best and the latest of the first `count` finished trials.
const KernelParameters& GpSampler::kernel_of(const View& view, const Values& of) {
    const std::vector<double>& values = of.values;
    const std::vector<std::size_t> chosen =
        best_and_latest(values, kFitRowsMax / 2, kFitRowsMax / 2);
    std::vector<double> key;
    for (const std::size_t i : chosen) {
        key.push_back(values[i]);
        key.insert(key.end(), view.finished[i]->row.begin(), view.finished[i]->row.end());
    }
    if (key == fitted_to_) return kernel_;
    std::vector<std::vector<double>> rows;
    std::vector<double> of_rows;
    for (const std::size_t i : chosen) {
        rows.push_back(view.finished[i]->row);
        of_rows.push_back(values[i]);
    }
    const double unit = of.unit * standardise(of_rows);
    kernel_ = fit_kernel(data_of(rows, of_rows), is_category_, fit_settings(unit));
    fitted_to_ = std::move(key);
    return kernel_;
}

/// The rows of the model and the kernel fitted to them: the best and the latest at the time of the
/// last fit, and all since.
GpSampler::Rows GpSampler::whole(const View& view) {
    const std::size_t count = fit_count(view.finished.size());
    const Values fitted = values_of(view, count);
    Rows chosen;
    chosen.kernel = kernel_of(view, fitted);
    std::vector<std::size_t> order =
        best_and_latest(fitted.values, kRowsMax - kLatestRows, kLatestRows);
    chosen.base = order.size();
    for (std::size_t i = count; i < view.finished.size(); ++i) order.push_back(i);
    const std::vector<double> all = values_of(view, view.finished.size()).values;
    for (const std::size_t i : order) {
        chosen.rows.push_back(view.finished[i]->row);
        chosen.values.push_back(all[i]);
    }
    chosen.low.assign(encoding_.size(), 0);
    chosen.high.assign(encoding_.size(), 1);
    return chosen;
}

/// The rows nearest to the best one, a kernel fitted to these alone, and the box that they span.
GpSampler::Rows GpSampler::neighbourhood(const View& view) const {
    Rows chosen;
    const Values of = values_of(view, view.finished.size());
    const std::vector<double>& all = of.values;
    const auto best =
        static_cast<std::size_t>(std::min_element(all.begin(), all.end()) - all.begin());
    const std::vector<double>& centre = view.finished[best]->row;
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t i = 0; i < all.size(); ++i) {
        double distance = 0;
        for (std::size_t j = 0; j < centre.size(); ++j) {
            const double d = view.finished[i]->row[j] - centre[j];
            distance += is_category_[j] ? (d != 0 ? 0.25 : 0) : d * d;
        }
        order.emplace_back(distance, i);
    }
    std::sort(order.begin(), order.end());
    const std::size_t count =
        std::min(order.size(), kNeighbours + kNeighboursPerFeature * centre.size());
    chosen.low = chosen.high = centre;
    for (std::size_t i = 0; i < count; ++i) {
        const std::vector<double>& row = view.finished[order[i].second]->row;
        chosen.rows.push_back(row);
        chosen.values.push_back(all[order[i].second]);
        for (std::size_t j = 0; j < row.size(); ++j) {
            chosen.low[j] = std::min(chosen.low[j], row[j]);
            chosen.high[j] = std::max(chosen.high[j], row[j]);
        }
    }
    chosen.base = count;
    // So few values say nothing of a warp.
    FitSettings settings = fit_settings(of.unit * standardise(chosen.values));
    settings.warp = WarpUse::kNever;
    chosen.kernel = fit_kernel(data_of(chosen.rows, chosen.values), is_category_, settings);
    return chosen;
}

/// Whether a trial may come from the neighbourhood of the best one: with much noise the best is a
/// lucky one, and so few values around it tell noise from shape no better than it does.
bool GpSampler::may_look_near(const View& view) {
    if (view.finished.size() < 2 * startup_) return false;
    const std::size_t count = fit_count(view.finished.size());
    return kernel_of(view, values_of(view, count)).noise_variance() < kNoiseOfLocalMax;
}

Point GpSampler::suggest(std::uint64_t number, const Point& fixed) {
    TUNE_CHECK(fixed.empty() || fixed.size() == space_.size(), "a point of this space");
    const View view = this->view(number);
    if (encoding_.size() == 0 || view.finished.size() < std::max<std::size_t>(startup_, 2))
        return first_.suggest(number, fixed);
    const bool is_local = number % kLocalEvery == 0 && may_look_near(view);
    std::vector<double> row;
    if (is_local) {
        CovarianceFactor factor(is_category_);
        row = best_row(neighbourhood(view), factor, view, number, fixed);
    }
    // A box whose best corner is taken has nothing more to say.
    if (!is_local || is_known(view, row)) row = best_row(whole(view), factor_, view, number, fixed);
    Point point = encoding_.point(row);
    // Rounding must not move what was given.
    for (std::size_t i = 0; i < fixed.size(); ++i)
        if (is_active(fixed[i]) && is_active(point[i])) point[i] = fixed[i];
    return point;
}

/// Whether a trial has had this row, or one too near to tell apart.
bool GpSampler::is_known(const View& view, const std::vector<double>& row) {
    const auto is_near = [&](const Trial* trial) {
        double distance = 0;
        for (std::size_t j = 0; j < row.size(); ++j)
            distance = std::max(distance, std::abs(trial->row[j] - row[j]));
        return distance < 1e-5;
    };
    return std::any_of(view.finished.begin(), view.finished.end(), is_near) ||
           std::any_of(view.pending.begin(), view.pending.end(), is_near);
}

/// Where the model of `chosen` expects the greatest improvement.
std::vector<double> GpSampler::best_row(Rows chosen, CovarianceFactor& factor, const View& view,
                                        std::uint64_t number, const Point& fixed) {
    std::vector<std::vector<double>>& rows = chosen.rows;
    SearchProblem problem{.encoding = encoding_,
                          .fixed = {},
                          .canonical = {},
                          .starts = {},
                          .low = std::move(chosen.low),
                          .high = std::move(chosen.high)};
    std::vector<std::size_t> order(rows.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return chosen.values[a] < chosen.values[b];
    });
    for (std::size_t i = 0; i < std::min(kStarts, order.size()); ++i)
        problem.starts.push_back(rows[order[i]]);
    const std::size_t pending = std::min(view.pending.size(), kPendingMax);
    for (std::size_t i = view.pending.size() - pending; i < view.pending.size(); ++i)
        rows.push_back(view.pending[i]->row);
    const GpData data = data_of(rows, chosen.values);
    factor.set(data.rows, chosen.base, chosen.kernel);
    GaussianProcess model(factor, data.values);
    problem.model = &model;
    problem.canonical = [this](const std::vector<double>& row) {
        return encoding_.row(encoding_.point(row));
    };
    // Where rules leave little room the best of what they allow may be a point that was had. In a
    // finite space what is wrapped around this sampler sees to that.
    const bool avoids_known = !is_finite_space(space_);
    if (space_.rules() != nullptr)
        problem.is_forbidden = [this, &view, avoids_known](const std::vector<double>& row) {
            return space_.is_forbidden(encoding_.point(row)) ||
                   (avoids_known && is_known(view, row));
        };
    hold_given(fixed, problem.fixed);
    return find_best_row(problem, source_, number);
}

void GpSampler::hold_given(const Point& fixed, FixedFeatures& held) const {
    held.is_fixed.assign(encoding_.size(), false);
    held.values.assign(encoding_.size(), 0);
    if (fixed.empty()) return;
    const std::vector<double> given = encoding_.row(fixed);
    for (std::size_t j = 0; j < encoding_.size(); ++j) {
        held.is_fixed[j] = is_active(fixed[encoding_.features()[j].parameter]);
        held.values[j] = given[j];
    }
}

}  // namespace tune::tuner
