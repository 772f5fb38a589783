#pragma once
// A warm start from a file.

#include "base/json.h"
#include "base/result.h"

namespace tune::cli {

/// Files of earlier studies; 1,000,000 trials of ten parameters.
inline constexpr std::size_t kEarlierBytesMax = 512u << 20;

/// Where `from` of a study's `warm_start` is a file, its complete trials take its place: that of
/// `tune show STUDY --json`, a list of {"params": {...}, "value": 0.5}, or a SQLite file of
/// Optuna's with one study. Else nothing changes: it is a study. Errors: kInvalidParameterValue
/// naming the file.
[[nodiscard]] Result<void> read_warm_start_file(Json& warm_start);

}  // namespace tune::cli
