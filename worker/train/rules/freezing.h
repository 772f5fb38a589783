#pragma once
// Which parameters are trained, and how fast, in each epoch of transfer learning. Pure functions of
// names.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::train {

struct Unfreezing {
    std::int64_t epoch = 0;  ///< counted from 0
    std::string pattern;
};

/// "3:layer4,6:." -> from epoch 3 on what matches layer4, from 6 on everything. Errors:
/// kInvalidParameterValue.
[[nodiscard]] Result<std::vector<Unfreezing>> parse_unfreezing(std::string_view text);

/// Errors: kInvalidParameterValue naming `parameter` when `pattern` is no regular expression
/// (ECMAScript). An empty one is fine and matches nothing.
[[nodiscard]] Result<void> check_pattern(std::string_view parameter, const std::string& pattern);

/// When each parameter is trained from.
inline constexpr std::int64_t kNever = -1;

struct Freezing {
    std::string freeze = {};  ///< a pattern that is found in the names of frozen parameters
    std::vector<Unfreezing> unfreeze = {};

    /// The first epoch in which `name` is trained: 0, that of the first entry that names it, or
    /// kNever.
    [[nodiscard]] std::int64_t first_epoch(const std::string& name) const;
};

/// Errors: kInvalidParameterValue, listing the layers, when a pattern is found in none of `names`:
/// a misspelt one would train what should be kept. Without `freeze` nothing is looked at.
[[nodiscard]] Result<void> check_found(const Freezing& freezing,
                                       const std::vector<std::string>& names);

/// The layer of each parameter, from 0 near the input: names that agree up to and including their
/// first number ("layer1.0"), or in their first part ("conv1"), are one layer. `names` in the order
/// of the layers.
[[nodiscard]] std::vector<std::size_t> layers_of(const std::vector<std::string>& names);

/// decay^(last layer - layer) for each parameter (Howard and Ruder 2018, arXiv:1801.06146, section
/// 3.2).
[[nodiscard]] std::vector<double> layer_factors(const std::vector<std::string>& names,
                                                double decay);

}  // namespace tune::train
