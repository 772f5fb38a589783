#pragma once
// inspect and verify for data sets that are not MDS.

#include <string>

#include "base/json.h"
#include "base/result.h"
#include "loader/rows/row_set.h"
#include "loader/tools/inspect.h"
#include "loader/tools/verify.h"

namespace tune::loader {

/// {"directory", "format", "samples", "bytes", "columns", "shards", "rows"}. Errors: those of
/// reading the first samples.
[[nodiscard]] Result<Json> inspect_rows_json(const std::string& directory, const RowSet& rows,
                                             const InspectOptions& options);
[[nodiscard]] Result<std::string> inspect_rows_text(const std::string& directory,
                                                    const RowSet& rows,
                                                    const InspectOptions& options);

/// Decodes every sample; goes on behind a faulty shard. Where the format has checksums they are
/// checked.
[[nodiscard]] VerifyReport verify_rows(const RowSet& rows);

/// One value as JSON for people, as describe_payload has it; null where there is none.
[[nodiscard]] Json value_json(const Column& column, std::size_t row, std::size_t elements_max);

}  // namespace tune::loader
