#pragma once
// What the columns of a data set hold, in numbers.

#include <filesystem>

#include "base/json.h"
#include "base/result.h"
#include "loader/rows/row_set.h"

namespace tune::loader {

/// For each column {"count", "nulls"} and, of numbers (all elements of arrays and lists together),
/// {"elements", "mean", "std", "min", "max", "nan"}; of variable payloads {"length": {"mean",
/// "min", "max"}} in bytes, or elements of a list. Mean and standard deviation (of the whole, not
/// of a sample) by Welford's method. Cost: reads everything once, on two threads or more.
[[nodiscard]] Result<Json> compute_stats(const RowSet& rows, int threads);

/// As compute_stats(), kept under the data set's digest: beside the data (`_tune_stats.json`), or,
/// where that cannot be written, in the user's cache folder. `fresh`: computes anew.
[[nodiscard]] Result<Json> cached_stats(const std::filesystem::path& directory, const RowSet& rows,
                                        int threads, bool fresh);

}  // namespace tune::loader
