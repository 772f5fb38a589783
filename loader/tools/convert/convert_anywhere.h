#pragma once
// Conversions whose tables or output lie in object stores.

#include <string>
#include <vector>

#include "loader/tools/convert.h"

namespace tune::loader {

/// As convert(), with URLs in place of paths: tables are fetched first, and the data set is written
/// to a temporary folder ($TMPDIR) and uploaded when it is complete, each index.json last. Errors:
/// also those of the sources.
[[nodiscard]] Result<ConvertReport> convert_anywhere(ConvertOptions options,
                                                     const std::vector<std::string>& inputs,
                                                     const std::string& output);

}  // namespace tune::loader
