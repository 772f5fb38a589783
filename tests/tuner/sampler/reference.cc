#include "tests/tuner/sampler/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "tuner/config/study_config.h"

namespace tune::tuner {
namespace {

double cdf(double z) {
    return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

/// Phi(b) - Phi(a) on the side where both are small.
double mass(double a, double b) {
    return a > 0 ? cdf(-a) - cdf(-b) : cdf(b) - cdf(a);
}

double log_kernel(const Axis& axis, double mu, double sigma, double position) {
    const double z = mass((axis.low - mu) / sigma, (axis.high - mu) / sigma);
    if (axis.kind == Axis::Kind::kContinuous) {
        const double d = (position - mu) / sigma;
        return -0.5 * d * d - std::log(sigma * std::sqrt(2 * M_PI) * z);
    }
    const double value = axis.log ? std::exp(position) : position;
    const double low = value - axis.step / 2;
    const double high = value + axis.step / 2;
    return std::log(mass(((axis.log ? std::log(low) : low) - mu) / sigma,
                         ((axis.log ? std::log(high) : high) - mu) / sigma) /
                    z);
}

}  // namespace

Space space_of(const std::vector<std::string>& words) {
    StudySource source;
    source.inline_parameters = words;
    Result<StudyConfig> config = read_study(source);
    TUNE_CHECK(config.has_value(), config.error().message);
    return config->space;
}

Axis axis_of(const std::string& word) {
    return Axis::of(space_of({word})[0]);
}

std::vector<double> reference_weights(std::size_t count) {
    std::vector<double> weights(count, 1.0);
    if (count < 25) return weights;
    const std::size_t ramp = count - 25;
    for (std::size_t i = 0; i < ramp; ++i) {
        const double first = 1.0 / static_cast<double>(count);
        const double share = ramp == 1 ? 0 : static_cast<double>(i) / static_cast<double>(ramp - 1);
        weights[i] = first + (1 - first) * share;
    }
    return weights;
}

std::vector<double> reference_bandwidths(const Axis& axis, const std::vector<double>& mus) {
    const std::size_t n = mus.size();
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return mus[a] < mus[b]; });
    std::vector<double> ends = {axis.low};
    for (const std::size_t i : order) ends.push_back(mus[i]);
    ends.push_back(axis.high);
    std::vector<double> sigmas(n);
    for (std::size_t j = 1; j <= n; ++j)
        sigmas[order[j - 1]] = std::max(ends[j] - ends[j - 1], ends[j + 1] - ends[j]);
    if (n >= 2) {
        sigmas[order.front()] = ends[2] - ends[1];
        sigmas[order.back()] = ends[n] - ends[n - 1];
    }
    const double floor = axis.range / std::min(100.0, static_cast<double>(n) + 2);
    for (double& sigma : sigmas) sigma = std::clamp(sigma, floor, axis.range);
    return sigmas;
}

double reference_log_density(const std::vector<Axis>& axes,
                             const std::vector<std::vector<double>>& rows,
                             const std::vector<double>& point) {
    const std::size_t n = rows.size();
    std::vector<double> weights = reference_weights(n);
    weights.push_back(1);
    std::vector<double> terms;
    for (const double weight : weights) terms.push_back(std::log(weight));
    for (std::size_t j = 0; j < axes.size(); ++j) {
        const Axis& axis = axes[j];
        std::vector<double> mus;
        for (const std::vector<double>& row : rows) mus.push_back(row[j]);
        if (axis.kind == Axis::Kind::kCategory) {
            for (std::size_t i = 0; i <= n; ++i) {
                const double smoothing = 1 / (static_cast<double>(n) + 1);
                const double own = i < n && mus[i] == point[j] ? 1 : 0;
                terms[i] += i < n ? std::log((smoothing + own) / (1 + axis.categories * smoothing))
                                  : -std::log(axis.categories);
            }
            continue;
        }
        std::vector<double> sigmas = reference_bandwidths(axis, mus);
        mus.push_back((axis.low + axis.high) / 2);
        sigmas.push_back(axis.range);
        for (std::size_t i = 0; i <= n; ++i)
            terms[i] += log_kernel(axis, mus[i], sigmas[i], point[j]);
    }
    const double top = *std::max_element(terms.begin(), terms.end());
    double sum = 0;
    for (const double term : terms) sum += std::exp(term - top);
    return top + std::log(sum) - std::log(std::accumulate(weights.begin(), weights.end(), 0.0));
}

}  // namespace tune::tuner
