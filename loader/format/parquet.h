#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "loader/format/table.h"

namespace tune::loader {

/// Whether this build reads Parquet (it was made with Arrow C++).
[[nodiscard]] bool can_read_parquet();

/// Opens a Parquet file. Natural encodings: numbers as they are, bool as uint8, dates and time
/// stamps as int64 in their own unit, decimals as str_decimal, text as str, binary as bytes, lists
/// of numbers as ndarray:<type> (with their length when it is fixed); other types have none. A null
/// is an error, because MDS has none. Memory: one row group. Errors: kInvalidParameterValue for a
/// damaged file, kNotImplemented in a build without Arrow; those of opening.
[[nodiscard]] Result<std::unique_ptr<TableReader>> open_parquet(const std::filesystem::path& path);

}  // namespace tune::loader
