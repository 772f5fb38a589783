#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// The version this program writes: that of the last file in migrations/.
[[nodiscard]] int schema_version();

/// The version that wrote the database; 0 for an empty one. Errors: kInvalidState when it is not a
/// store of ours.
[[nodiscard]] Result<int> stored_schema_version(sqlite::Connection& connection);

/// Brings the database to schema_version(), one transaction a step; creates everything in an empty
/// one. Errors: kInvalidState when it is newer, or not a store of ours; errors of SQL.
[[nodiscard]] Result<void> migrate(sqlite::Connection& connection, const Clock& clock);

}  // namespace tune::tracker
