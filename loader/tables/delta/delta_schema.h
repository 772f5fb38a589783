#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "loader/delta/action.h"
#include "loader/tables/output_column.h"

namespace tune::loader {

/// The columns of a table after its schemaString and its column mapping. Errors: kDataLoss for a
/// damaged schema, kNotImplemented for a type or mapping that is not known (only where the column
/// is among `wanted`; empty: all).
[[nodiscard]] Result<std::vector<TableColumn>> delta_columns(
    const DeltaMetadata& metadata, const DeltaProtocol& protocol,
    const std::vector<std::string>& wanted);

}  // namespace tune::loader
