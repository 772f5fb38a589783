// CMA-ES: Hansen, "The CMA Evolution Strategy: A Tutorial", arXiv:1604.00772, with its default
// weights (negative ones too) and learning rates; equation numbers below are the tutorial's. The
// margin for grids: Hamano, Saito, Nomura, Shirakawa, "CMA-ES with Margin", GECCO 2022
// (arXiv:2205.13482).
//
// Why a margin. On an integer axis the distribution soon becomes narrower than a cell; every draw
// then lands in one cell and the axis is stuck. The margin keeps the probability of leaving the
// mean's cell, to either side, at 1/(d * population) at least: by widening the marginal (`scales_`)
// and moving the mean, never by touching covariance or step size, which are learnt.
//
// A golden file holds this to the package `cmaes` 0.13.1 (tests/tuner/golden/make_cma_golden.py).
//
// Points that were not drawn from this distribution (given by the user, replaced because they were
// tried, asked before the last update) are pulled to a length that a draw could have (Hansen,
// "Injecting External Solutions Into CMA-ES", arXiv:1110.4181); otherwise one of them could throw
// the step size.

#include "tuner/sampler/cma/state.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"
#include "tuner/sampler/normal.h"

namespace tune::tuner {
namespace {

constexpr double kTiny = 1e-8;
constexpr double kSigmaMax = 1e32;
/// In units of the ranges: a step below this changes nothing that anyone would notice.
constexpr double kStepMin = 1e-12;
constexpr double kSpreadMax = 1e4;
constexpr double kSpreadMin = 1e-12;
constexpr double kConditionMax = 1e14;

struct Rates {
    Eigen::VectorXd weights;
    Eigen::Index parents = 0;
    double parents_effective = 0;
    double rank_one = 0;
    double rank_mu = 0;
    double step_path = 0;
    double step_damping = 0;
    double covariance_path = 0;
};

Rates rates_of(Eigen::Index dimensions, std::size_t members) {
    const auto d = static_cast<double>(dimensions);
    const auto count = static_cast<Eigen::Index>(members);
    Rates rates;
    rates.parents = count / 2;
    Eigen::VectorXd raw(count);  // (49)
    for (Eigen::Index i = 0; i < count; ++i)
        raw[i] =
            std::log((static_cast<double>(count) + 1) / 2) - std::log(static_cast<double>(i) + 1);
    const auto effective = [](const auto& part) {
        return part.squaredNorm() > 0 ? part.sum() * part.sum() / part.squaredNorm() : 0.0;
    };
    const double mu = effective(raw.head(rates.parents));
    const double mu_minus = effective(raw.tail(count - rates.parents));
    rates.parents_effective = mu;
    rates.rank_one = 2 / ((d + 1.3) * (d + 1.3) + mu);
    rates.rank_mu = std::min(1 - rates.rank_one - 1e-8,
                             2 * (mu - 2 + 1 / mu) / ((d + 2) * (d + 2) + 2 * mu / 2));
    const double both = rates.rank_one + rates.rank_mu;
    double limit = 1 + 2 * mu_minus / (mu + 2);  // (50) to (52)
    if (rates.rank_mu > 0)
        limit =
            std::min({limit, 1 + rates.rank_one / rates.rank_mu, (1 - both) / (d * rates.rank_mu)});
    const double positive = raw.cwiseMax(0.0).sum();
    const double negative = -raw.cwiseMin(0.0).sum();
    rates.weights = raw;
    for (Eigen::Index i = 0; i < count; ++i)
        rates.weights[i] *= raw[i] >= 0 ? 1 / positive : limit / negative;  // (53)
    rates.step_path = (mu + 2) / (d + mu + 5);                              // (55)
    rates.step_damping = 1 + 2 * std::max(0.0, std::sqrt((mu - 1) / (d + 1)) - 1) + rates.step_path;
    rates.covariance_path = (4 + mu / d) / (d + 4 + 2 * mu / d);  // (56)
    return rates;
}

/// The length that a standard normal point has in the mean.
double expected_length(Eigen::Index dimensions) {
    const auto d = static_cast<double>(dimensions);
    return std::sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d));
}

double unit_of(const Axis& axis, double position) {
    return axis.share_below(position);
}

double value_at(const Axis& axis, double unit) {
    return axis.value(axis.quantile(std::clamp(unit, 0.0, 1.0)));
}

/// The ends of the cell that holds `unit`. The outermost cells have one inner end, which then
/// stands for both.
struct Cell {
    double low;
    double high;
};

Cell cell_around(const Axis& axis, double unit) {
    const double value = value_at(axis, unit);
    Cell cell{unit_of(axis, axis.cell_low(value)), unit_of(axis, axis.cell_high(value))};
    if (value <= axis.value_low) cell.low = cell.high;
    if (value >= axis.value_high) cell.high = cell.low;
    return cell;
}

}  // namespace

std::size_t default_population(std::size_t dimensions) {
    return 4 + static_cast<std::size_t>(3 * std::log(static_cast<double>(dimensions)));
}

CmaState::CmaState(const std::vector<Axis>& axes, std::size_t population, Eigen::VectorXd mean,
                   double sigma)
    : axes_(&axes), population_(population), mean_(std::move(mean)), sigma_(sigma) {
    const Eigen::Index d = mean_.size();
    TUNE_CHECK(static_cast<std::size_t>(d) == axes.size() && d > 0 && population >= 4 && sigma > 0,
               "a run of CMA-ES has axes, four members at least and a step");
    covariance_.setIdentity(d, d);
    scales_.setOnes(d);
    step_path_.setZero(d);
    covariance_path_.setZero(d);
    recent_.assign(2 * (10 + static_cast<std::size_t>(std::ceil(30.0 * static_cast<double>(d) /
                                                                static_cast<double>(population)))),
                   std::numeric_limits<double>::infinity());
    decompose();
}

void CmaState::decompose() {
    covariance_ = 0.5 * (covariance_ + covariance_.transpose()).eval();
    const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(covariance_);
    axes_of_ellipsoid_ = solver.eigenvectors();
    lengths_ = solver.eigenvalues()
                   .unaryExpr([](double value) { return value < 0 ? kTiny : value; })
                   .cwiseSqrt();
    covariance_ =
        axes_of_ellipsoid_ * lengths_.cwiseAbs2().asDiagonal() * axes_of_ellipsoid_.transpose();
}

Eigen::VectorXd CmaState::latent(const Eigen::VectorXd& normals) const {
    return mean_ + sigma_ * (axes_of_ellipsoid_ * lengths_.cwiseProduct(normals));
}

bool CmaState::is_feasible(const Eigen::VectorXd& latent) const {
    for (Eigen::Index j = 0; j < latent.size(); ++j) {
        const bool is_stepped = (*axes_)[static_cast<std::size_t>(j)].kind == Axis::Kind::kStepped;
        if (!is_stepped && (latent[j] < 0 || latent[j] > 1)) return false;
    }
    return true;
}

std::vector<double> CmaState::values(const Eigen::VectorXd& latent) const {
    std::vector<double> values;
    for (Eigen::Index j = 0; j < latent.size(); ++j)
        values.push_back(value_at((*axes_)[static_cast<std::size_t>(j)],
                                  mean_[j] + scales_[j] * (latent[j] - mean_[j])));
    return values;
}

Eigen::VectorXd CmaState::position(const std::vector<double>& values) const {
    Eigen::VectorXd at(mean_.size());
    for (std::size_t j = 0; j < values.size(); ++j)
        at[static_cast<Eigen::Index>(j)] = unit_of((*axes_)[j], (*axes_)[j].position(values[j]));
    return at;
}

void CmaState::update(const std::vector<CmaMember>& members, double best, double worst) {
    if (members.size() < 2) return;
    const Eigen::Index d = mean_.size();
    const auto count = static_cast<Eigen::Index>(members.size());
    const Rates rates = rates_of(d, members.size());
    ++generation_;
    const std::size_t slot = 2 * (generation_ % (recent_.size() / 2));
    recent_[slot] = best;
    recent_[slot + 1] = worst;

    const Eigen::MatrixXd whiten =
        axes_of_ellipsoid_ * lengths_.cwiseInverse().asDiagonal() * axes_of_ellipsoid_.transpose();
    Eigen::MatrixXd steps(d, count);
    for (Eigen::Index i = 0; i < count; ++i)
        steps.col(i) = (members[static_cast<std::size_t>(i)].latent - mean_) / sigma_;
    Eigen::VectorXd lengths = (whiten * steps).colwise().norm();
    const double longest = std::sqrt(static_cast<double>(d)) +
                           2 * static_cast<double>(d) / (static_cast<double>(d) + 2);
    for (Eigen::Index i = 0; i < count; ++i) {
        if (members[static_cast<std::size_t>(i)].is_drawn || lengths[i] <= longest) continue;
        steps.col(i) *= longest / lengths[i];
        lengths[i] = longest;
    }

    const Eigen::VectorXd shift =
        steps.leftCols(rates.parents) * rates.weights.head(rates.parents);  // (41)
    mean_ += sigma_ * shift;
    const double c_step = rates.step_path;
    step_path_ = (1 - c_step) * step_path_ +
                 std::sqrt(c_step * (2 - c_step) * rates.parents_effective) * (whiten * shift);
    const double path_length = step_path_.norm();
    const double usual = expected_length(d);
    sigma_ = std::min(sigma_ * std::exp(c_step / rates.step_damping * (path_length / usual - 1)),
                      kSigmaMax);
    const double grown =
        path_length /
        std::sqrt(1 - std::pow(1 - c_step, 2 * (static_cast<double>(generation_) + 1)));
    const bool is_short = grown < (1.4 + 2 / (static_cast<double>(d) + 1)) * usual;
    const double c_path = rates.covariance_path;
    covariance_path_ *= 1 - c_path;  // (45)
    if (is_short)
        covariance_path_ += std::sqrt(c_path * (2 - c_path) * rates.parents_effective) * shift;
    const double lost = is_short ? 0 : c_path * (2 - c_path);
    Eigen::VectorXd weights = rates.weights;  // (46)
    for (Eigen::Index i = 0; i < count; ++i)
        if (weights[i] < 0)
            weights[i] *= static_cast<double>(d) / (lengths[i] * lengths[i] + kTiny);
    covariance_ = (1 + rates.rank_one * lost - rates.rank_one -  // (47)
                   rates.rank_mu * rates.weights.sum()) *
                      covariance_ +
                  rates.rank_one * covariance_path_ * covariance_path_.transpose() +
                  rates.rank_mu * steps * weights.asDiagonal() * steps.transpose();
    hold_margins();
    decompose();
    is_spent_ = must_stop();
}

void CmaState::hold_margins() {
    const double margin =
        1 / (static_cast<double>(mean_.size()) * static_cast<double>(population_));
    for (Eigen::Index j = 0; j < mean_.size(); ++j) {
        const Axis& axis = (*axes_)[static_cast<std::size_t>(j)];
        if (axis.kind != Axis::Kind::kStepped) continue;
        const Cell cell = cell_around(axis, mean_[j]);
        const double spread = sigma_ * std::sqrt(covariance_(j, j));
        const double under = normal_cdf((cell.low - mean_[j]) / (spread * scales_[j]));
        const double over = normal_cdf(-(cell.high - mean_[j]) / (spread * scales_[j]));
        if (std::max(under, over) > 0.5) {
            // In an outermost cell: far enough in that the next cell keeps the margin.
            if (std::min(under, over) >= margin) continue;
            const double away = -normal_quantile(margin) * spread * scales_[j];
            mean_[j] = cell.high + (mean_[j] < cell.high ? -away : away);
            continue;
        }
        const double inside = 1 - under - over;
        const double low = std::max(under, margin / 2);
        const double high = std::max(over, margin / 2);
        // What the two sides gained is taken from where there is most.
        const double excess = 1 - low - high - inside;
        const double room = low + inside + high - 3 * margin / 2;
        const auto share = [&](double side) {
            return std::clamp(side + excess * (side - margin / 2) / room, 1e-10, 0.5 - 1e-10);
        };
        const double to_low = -normal_quantile(share(low));
        const double to_high = -normal_quantile(share(high));
        scales_[j] = (cell.high - cell.low) / ((to_low + to_high) * spread);
        mean_[j] = (cell.low * to_high + cell.high * to_low) / (to_low + to_high);
    }
}

bool CmaState::must_stop() const {
    const auto [least, most] = std::minmax_element(recent_.begin(), recent_.end());
    if (*most - *least < kSpreadMin) return true;
    const Eigen::VectorXd deviations = covariance_.diagonal().cwiseAbs().cwiseSqrt();
    if ((sigma_ * deviations).maxCoeff() < kStepMin) return true;
    if (!(sigma_ * lengths_.maxCoeff() < kSpreadMax)) return true;
    if (!(lengths_.maxCoeff() < kConditionMax * lengths_.minCoeff())) return true;
    if ((mean_.array() == (mean_ + 0.2 * sigma_ * deviations).array()).any()) return true;
    const auto turn = static_cast<Eigen::Index>(generation_) % mean_.size();
    return ((mean_ + 0.1 * sigma_ * lengths_[turn] * axes_of_ellipsoid_.col(turn)).array() ==
            mean_.array())
        .all();
}

}  // namespace tune::tuner
