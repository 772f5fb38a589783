#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loader/order/rng.h"

namespace tune::loader {

struct Split {
    std::string name;
    double fraction = 0;
};

/// Parses "train=0.8,val=0.2". Errors: kInvalidParameterValue for fractions that do not add up to
/// 1, names that are no plain folder names, or named twice.
[[nodiscard]] Result<std::vector<Split>> parse_splits(std::string_view text);

/// Deals rows to splits at random, such that each split gets its exact share and every assignment
/// is equally likely (selection sampling, Knuth TAOCP 2, 3.4.2 S), in one pass and O(1) memory.
class SplitDealer {
public:
    SplitDealer(const std::vector<Split>& splits, std::int64_t row_count, std::uint64_t seed);

    /// Rows that each split gets; adds up to row_count.
    [[nodiscard]] const std::vector<std::int64_t>& counts() const { return counts_; }

    /// The split of the next row. REQUIRES: fewer than row_count calls before.
    [[nodiscard]] std::size_t next();

private:
    std::vector<std::int64_t> counts_;
    std::vector<std::int64_t> left_;
    std::int64_t rows_left_;
    Rng rng_;
};

}  // namespace tune::loader
