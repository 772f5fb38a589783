#pragma once
// The Wilcoxon signed-rank test. Private to tuner/pruner.

#include <span>

namespace tune::tuner {

/// The probability that differences whose signs are a matter of chance have a positive rank sum as
/// large as these: scipy.stats.wilcoxon(d, alternative="greater", zero_method="zsplit").pvalue.
/// REQUIRES: at least one difference, all finite.
[[nodiscard]] double signed_rank_p(std::span<const double> differences);

}  // namespace tune::tuner
