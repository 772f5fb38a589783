#pragma once
// Rows of MDS shards. Internal to the loader.

#include <memory>
#include <vector>

#include "loader/batch_decoder.h"
#include "loader/format/convert_dtype.h"
#include "loader/format/mds/shard.h"
#include "loader/rows/row_set.h"
#include "loader/source/shard_store.h"
#include "loader/stream_set.h"

namespace tune::loader {

/// A data set whose shards are all MDS. Errors: those of check_names and apply_dtype.
[[nodiscard]] Result<RowSet> open_mds(const DatasetOptions& options, StreamSet set);

}  // namespace tune::loader
