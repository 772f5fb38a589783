#pragma once
// Puts the transforms of columns between a format's decoder and the batches. Internal to the
// loader.

#include "base/result.h"
#include "loader/rows/row_set.h"

namespace tune::loader {

/// `rows` with the images and paddings of options.column_options applied; as it is when there are
/// none. Images and arrays are worked on by options.threads threads, a few samples at a time.
/// Errors: kInvalidParameterValue for options that do not fit their column.
[[nodiscard]] Result<RowSet> with_transforms(const DatasetOptions& options, RowSet rows);

}  // namespace tune::loader
