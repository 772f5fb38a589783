// Values from mpmath with 40 digits.

#include "tuner/sampler/normal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace tune::tuner {
namespace {

void expect_relative(double found, double expected, double tolerance) {
    EXPECT_NEAR(found / expected, 1, tolerance) << found << " for " << expected;
}

TEST(Normal, UpperTail) {
    expect_relative(upper_tail(0), 0.5, 1e-15);
    expect_relative(upper_tail(0.5), 0.308537538725986896, 1e-15);
    expect_relative(upper_tail(3), 0.00134989803163009453, 1e-14);
    expect_relative(upper_tail(8), 6.22096057427178412e-16, 1e-14);
    expect_relative(upper_tail(37), 5.72557122252457682e-300, 1e-12);
    EXPECT_EQ(1 - upper_tail(kTailGone), 1);
}

TEST(Normal, Quantile) {
    expect_relative(normal_quantile(1e-300), -37.0470962993611992, 1e-14);
    expect_relative(normal_quantile(1e-20), -9.26234008979840757, 1e-14);
    expect_relative(normal_quantile(1e-5), -4.26489079392282463, 1e-14);
    expect_relative(normal_quantile(0.01), -2.3263478740408411, 1e-14);
    expect_relative(normal_quantile(0.075), -1.43953147093845592, 1e-14);
    expect_relative(normal_quantile(0.3), -0.524400512708040784, 1e-14);
    EXPECT_EQ(normal_quantile(0.5), 0);
    expect_relative(normal_quantile(0.7), 0.524400512708040784, 1e-14);
    expect_relative(normal_quantile(0.99), 2.3263478740408411, 1e-14);
    EXPECT_EQ(normal_quantile(0), -std::numeric_limits<double>::infinity());
    EXPECT_EQ(normal_quantile(1), std::numeric_limits<double>::infinity());
}

TEST(Normal, QuantileInvertsTheTail) {
    for (double z = -8; z <= 8; z += 0.01) {
        const double p = z < 0 ? upper_tail(-z) : upper_tail(z);
        ASSERT_NEAR(normal_quantile(p), -std::abs(z), 1e-13 * std::max(1.0, std::abs(z)));
    }
}

TEST(Normal, ManyTruncatedQuantilesHaveTheBitsOfEach) {
    const double ends[] = {0, 1e-300, 1e-17, 1e-9, 0.01, 0.2, 0.4999999, 0.5};
    std::vector<double> low;
    std::vector<double> high;
    std::vector<double> uniform;
    for (const double low_tail : ends)
        for (const double high_tail : ends)
            for (double u = 0; u <= 1; u += 1.0 / 512) {
                low.push_back(low_tail);
                high.push_back(high_tail);
                uniform.push_back(u);
            }
    for (const std::size_t count : {uniform.size(), std::size_t{1}, std::size_t{3}}) {
        std::vector<double> z(uniform.end() - static_cast<std::ptrdiff_t>(count), uniform.end());
        const std::size_t first = uniform.size() - count;
        truncated_normal_quantiles(std::span(low).subspan(first), std::span(high).subspan(first),
                                   z);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t at = first + i;
            const double each = truncated_normal_quantile(low[at], high[at], uniform[at]);
            ASSERT_EQ(std::bit_cast<std::uint64_t>(z[i]), std::bit_cast<std::uint64_t>(each))
                << low[at] << " " << high[at] << " " << uniform[at];
        }
    }
}

TEST(Normal, LogMass) {
    expect_relative(log_normal_mass(-1e-6, 1e-6), -14.0413019106091682, 1e-14);
    expect_relative(log_normal_mass(-1, 2), -0.20016629432446258, 1e-14);
    expect_relative(log_normal_mass(0, 1), -1.07486232686207138, 1e-14);
    expect_relative(log_normal_mass(3, 3.5), -6.79686800668343277, 1e-14);
    expect_relative(log_normal_mass(10, 11), -53.2313102255831249, 1e-14);
    expect_relative(log_normal_mass(19, 30), -184.366128669160967, 1e-14);
    expect_relative(log_normal_mass(25, 26), -316.639408008028359, 1e-14);
    expect_relative(log_normal_mass(38, 40), -726.55721601882013, 1e-14);
    expect_relative(log_normal_mass(-40, -38), -726.55721601882013, 1e-14);
    expect_relative(log_normal_mass(100, 101), -5005.52420869420509, 1e-14);
    expect_relative(log_normal_mass(5, 5.001), -20.3291929369783841, 1e-12);
    EXPECT_NEAR(log_normal_mass(-9, 9), -2.2571768119076813e-19, 1e-30);
    EXPECT_EQ(log_normal_mass(1, 1), -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace tune::tuner
