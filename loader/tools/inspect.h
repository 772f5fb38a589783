#pragma once

#include <cstddef>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "loader/tools/data_sets.h"

namespace tune::loader {

struct InspectOptions {
    /// First samples that are shown.
    std::size_t rows = 3;
    /// Shards that are listed in the text form; the JSON lists all.
    std::size_t shards_max = 10;
    /// Elements of an array, or characters of a text, that are shown.
    std::size_t elements_max = 16;
};

/// What a data set holds: {"directory", "samples", "bytes", "columns", "shards", "rows"}. Errors:
/// those of reading the first samples.
[[nodiscard]] Result<Json> inspect_json(const DataSet& set, const InspectOptions& options);

/// The same as text for people.
[[nodiscard]] Result<std::string> inspect_text(const DataSet& set, const InspectOptions& options);

}  // namespace tune::loader
