#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "tracker/sqlite/connection.h"

namespace tune::tracker {

/// The version this program writes: that of the last file in migrations/.
[[nodiscard]] int schema_version();

/// Brings the data base to schema_version(), one transaction a step; creates everything in an empty
/// one. Errors: kInvalidState when it is newer, or not a store of ours; errors of SQL.
[[nodiscard]] Result<void> migrate(sqlite::Connection& connection, const Clock& clock);

}  // namespace tune::tracker
