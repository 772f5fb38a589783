#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace tune::tracker::sqlite {

/// Pages copied so far, and all; false ends the copy.
using CopyProgress = std::function<bool(std::int64_t done, std::int64_t total)>;

/// Copies one snapshot of the database `source`, which others may read and write meanwhile (also
/// other processes), into the file `target`, replacing what is there. Blocks; memory: 1 MB. While
/// it runs the source's log cannot be cut. Errors: kCancelled when `progress` returned an error;
/// kResourceExhausted for a full disk; those of errors.h.
[[nodiscard]] Result<void> copy_database(const std::string& source, const std::string& target,
                                         const CopyProgress& progress);

/// Reads the whole file, which nobody writes, and checks that pages, rows and indexes fit together.
/// Errors: kDataLoss with the first error.
[[nodiscard]] Result<void> check_database(const std::string& path);

}  // namespace tune::tracker::sqlite
