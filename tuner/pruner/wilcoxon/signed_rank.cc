// The Wilcoxon signed-rank test, one-sided, with the p-values of scipy.stats.wilcoxon(d,
// alternative="greater", zero_method="zsplit").
//
// The statistic is the sum of the ranks of the positive differences, ranked by size. If signs are a
// matter of chance, each rank is in the sum or not with probability 1/2. So the exact distribution
// is that of the subset sums of the ranks: it is built rank by rank, halving as it goes, so that
// the numbers stay probabilities. Ties share their mean rank; doubled ranks keep that whole. Zeros
// have no sign: half of their rank sum counts on either side, which moves the observed sum and all
// others alike and is therefore left out of the exact count.
//
// Beyond scipy's limits for that (50 differences, 13 with ties or zeros) the normal approximation:
// mean n(n + 1)/4, variance (n(n + 1)(2n + 1) - sum(t^3 - t)/2) / 24 over ties of t, without
// continuity correction.

#include "tuner/pruner/wilcoxon/signed_rank.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace tune::tuner {
namespace {

constexpr std::size_t kExactMax = 50;
constexpr std::size_t kExactWithTiesMax = 13;

/// Ranks of the absolute differences, doubled so that the mean rank of a tie is a whole number.
struct Ranks {
    std::vector<std::size_t> doubled;  // by difference
    double tie_sum = 0;                // sum of t^3 - t over ties of t
    bool has_ties = false;
};

Ranks ranks_of(std::span<const double> differences) {
    const std::size_t n = differences.size();
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto size_of = [&](std::size_t i) { return std::fabs(differences[i]); };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return size_of(a) < size_of(b); });
    Ranks ranks;
    ranks.doubled.resize(n);
    for (std::size_t first = 0; first < n;) {
        std::size_t end = first + 1;
        while (end < n && size_of(order[end]) == size_of(order[first])) ++end;
        for (std::size_t i = first; i < end; ++i) ranks.doubled[order[i]] = first + 1 + end;
        const auto t = static_cast<double>(end - first);
        ranks.tie_sum += t * t * t - t;
        ranks.has_ties = ranks.has_ties || end - first > 1;
        first = end;
    }
    return ranks;
}

/// P(sum >= observed) over all signs of the non-zero differences, by counting the sums.
double exact_p(std::span<const double> differences, const Ranks& ranks, std::size_t observed) {
    std::vector<double> share = {1};  // of the sign patterns, by doubled sum
    for (std::size_t i = 0; i < differences.size(); ++i) {
        if (differences[i] == 0) continue;
        const std::size_t rank = ranks.doubled[i];
        std::vector<double> next(share.size() + rank, 0.0);
        for (std::size_t sum = 0; sum < share.size(); ++sum) {
            next[sum] += share[sum] / 2;
            next[sum + rank] += share[sum] / 2;
        }
        share = std::move(next);
    }
    double p = 0;
    for (std::size_t sum = share.size(); sum-- > observed;) p += share[sum];
    return p;
}

}  // namespace

double signed_rank_p(std::span<const double> differences) {
    const std::size_t n = differences.size();
    const Ranks ranks = ranks_of(differences);
    std::size_t positive = 0;  // doubled
    std::size_t zero = 0;
    std::size_t zero_count = 0;
    for (std::size_t i = 0; i < n; ++i) {
        if (differences[i] > 0) positive += ranks.doubled[i];
        if (differences[i] == 0) zero += ranks.doubled[i];
        if (differences[i] == 0) ++zero_count;
    }
    const bool is_plain = !ranks.has_ties && zero_count == 0;
    if (n <= (is_plain ? kExactMax : kExactWithTiesMax))
        return exact_p(differences, ranks, positive);
    const auto count = static_cast<double>(n);
    // Half of the zeros' ranks counts as positive.
    const double sum = static_cast<double>(positive) / 2 + static_cast<double>(zero) / 4;
    const double mean = count * (count + 1) / 4;
    const double deviation =
        std::sqrt((count * (count + 1) * (2 * count + 1) - ranks.tie_sum / 2) / 24);
    return std::erfc((sum - mean) / deviation / std::sqrt(2.0)) / 2;
}

}  // namespace tune::tuner
