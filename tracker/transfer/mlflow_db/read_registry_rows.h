#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/transfer/mlflow_db/columns.h"
#include "tracker/transfer/source/source.h"

namespace tune::tracker {

[[nodiscard]] Result<std::vector<std::string>> list_registered_rows(sqlite::Connection& connection,
                                                                    const Columns& columns);
/// Of several workspaces' models with one name, all versions of the first. Adds to `changed_texts`
/// those that were not UTF-8. Errors: kDataLoss.
[[nodiscard]] Result<SourceRegisteredModel> read_registered_rows(sqlite::Connection& connection,
                                                                 const Columns& columns,
                                                                 const std::string& name,
                                                                 std::int64_t& changed_texts);

}  // namespace tune::tracker
