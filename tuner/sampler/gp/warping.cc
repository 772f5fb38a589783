// Kumaraswamy's distribution function 1 - (1 - x^a)^b, by logarithms: log1p(-x^a) keeps the digits
// that 1 - x^a loses near 0. Its derivatives are infinite at 0 or 1 where an exponent is below 1;
// drawing the number in by 1e-6 first keeps them finite and moves no point that anyone would
// notice.

#include "tuner/sampler/gp/warping.h"

#include <cmath>

namespace tune::tuner {
namespace {

constexpr double kMargin = 1e-6;

}  // namespace

bool Warping::operator==(const Warping& other) const {
    return log_a.size() == other.log_a.size() && (log_a == other.log_a).all() &&
           (log_b == other.log_b).all();
}

WarpedNumber warp_number(double x, double log_a, double log_b) {
    const double a = std::exp(log_a);
    const double b = std::exp(log_b);
    const double inner = kMargin + (1 - 2 * kMargin) * x;
    const double log_inner = std::log(inner);
    const double power = std::exp(a * log_inner);         // x^a
    const double log_rest = std::log1p(-power);           // log(1 - x^a)
    const double rest = std::exp(b * log_rest);           // (1 - x^a)^b
    const double slope = b * rest / (1 - power) * power;  // by log(x^a)
    WarpedNumber warped;
    warped.value = 1 - rest;
    warped.by_x = slope * a / inner * (1 - 2 * kMargin);
    warped.by_log_a = slope * a * log_inner;
    warped.by_log_b = -rest * b * log_rest;
    return warped;
}

Eigen::MatrixXd warp_rows(const Eigen::MatrixXd& rows, const CategoryMask& mask,
                          const Warping& warping) {
    if (!warping.is_on()) return rows;
    Eigen::MatrixXd warped = rows;
    for (Eigen::Index j = 0; j < rows.cols(); ++j) {
        const double log_a = warping.log_a[j];
        const double log_b = warping.log_b[j];
        if (mask[static_cast<std::size_t>(j)] || (log_a == 0 && log_b == 0)) continue;
        for (Eigen::Index i = 0; i < rows.rows(); ++i)
            warped(i, j) = warp_number(rows(i, j), log_a, log_b).value;
    }
    return warped;
}

}  // namespace tune::tuner
