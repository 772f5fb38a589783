#pragma once
// Test problems of several objectives, all in [0, 1]^d and to be minimised: ZDT1-3 (Zitzler, Deb,
// Thiele 2000), DTLZ2 with three objectives (Deb, Thiele, Laumanns, Zitzler 2002). For benches
// and tests; several_peers.py holds the same for Optuna.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

namespace tune::bench {

inline std::vector<double> zdt(int which, const std::vector<double>& x) {
    double sum = 0;
    for (std::size_t i = 1; i < x.size(); ++i) sum += x[i];
    const double g = 1 + 9 * sum / static_cast<double>(x.size() - 1);
    const double ratio = x[0] / g;
    double h = 1 - std::sqrt(ratio);
    if (which == 2) h = 1 - ratio * ratio;
    if (which == 3) h -= ratio * std::sin(10 * std::numbers::pi * x[0]);
    return {x[0], g * h};
}

inline std::vector<double> dtlz2(const std::vector<double>& x) {
    double g = 1;
    for (std::size_t i = 2; i < x.size(); ++i) g += (x[i] - 0.5) * (x[i] - 0.5);
    const double a = x[0] * std::numbers::pi / 2;
    const double b = x[1] * std::numbers::pi / 2;
    return {g * std::cos(a) * std::cos(b), g * std::cos(a) * std::sin(b), g * std::sin(a)};
}

/// How far the losses of DTLZ2 lie outside the allowed balls of radius 0.4: the constraint of
/// C2-DTLZ2 (Jain, Deb 2014). 0: inside one of them.
inline double c2dtlz2(const std::vector<double>& x) {
    const std::vector<double> f = dtlz2(x);
    double nearest = 0;
    for (const double v : f) nearest += (v - 1 / std::sqrt(3.0)) * (v - 1 / std::sqrt(3.0));
    for (std::size_t i = 0; i < f.size(); ++i) {
        double square = 0;
        for (std::size_t j = 0; j < f.size(); ++j) {
            const double off = f[j] - (j == i ? 1 : 0);
            square += off * off;
        }
        nearest = std::min(nearest, square);
    }
    return std::max(0.0, nearest - 0.16);
}

}  // namespace tune::bench
