#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "loader/format/table.h"

namespace tune::loader {

/// Opens a CSV file (RFC 4180: quotes, doubled quotes, line ends within quotes; LF or CRLF; a UTF-8
/// byte order mark is skipped; empty lines are skipped when there is more than one column). The
/// first line names the columns. Every value is text. Natural encodings: int, float64 or str,
/// whichever takes every value of the column. Errors: kInvalidParameterValue with line and column
/// for a header that is empty, malformed or names a column twice; those of opening.
[[nodiscard]] Result<std::unique_ptr<TableReader>> open_csv(const std::filesystem::path& path,
                                                            char separator);

}  // namespace tune::loader
