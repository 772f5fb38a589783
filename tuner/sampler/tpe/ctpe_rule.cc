#include "tuner/sampler/tpe/ctpe_rule.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tune::tuner {

std::vector<std::uint64_t> constrained_good(std::vector<ConstrainedLoss> trials,
                                            std::size_t count) {
    std::sort(trials.begin(), trials.end(), [](const auto& a, const auto& b) {
        return std::tie(a.loss, a.number) < std::tie(b.loss, b.number);
    });
    std::vector<std::uint64_t> good;
    std::size_t feasible = 0;
    for (const ConstrainedLoss& trial : trials) {
        if (feasible == count) break;
        good.push_back(trial.number);
        if (trial.is_feasible) ++feasible;
    }
    return good;
}

std::vector<bool> satisfied(std::span<const double> violations) {
    std::vector<bool> holds;
    for (const double violation : violations) holds.push_back(violation <= 0);
    if (holds.empty() || std::find(holds.begin(), holds.end(), true) != holds.end()) return holds;
    const auto least = std::min_element(violations.begin(), violations.end());
    holds[static_cast<std::size_t>(least - violations.begin())] = true;
    return holds;
}

double constrained_term(double share, double log_good, double log_bad) {
    // Source of the guard: optunahub, samplers/ctpe.
    constexpr double kTiny = 1e-12;
    const double first = std::log(share + kTiny);
    const double second = std::log(1 - share + kTiny) + log_bad - log_good;
    const double larger = std::max(first, second);
    return -(larger + std::log(std::exp(first - larger) + std::exp(second - larger)));
}

}  // namespace tune::tuner
