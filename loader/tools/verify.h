#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "loader/tools/data_sets.h"

namespace tune::loader {

struct VerifyReport {
    std::int64_t samples = 0;  ///< that were decoded without error
    std::int64_t shards = 0;
    /// One sentence a faulty shard, with its path.
    std::vector<std::string> errors;
    /// Shards for which the index holds no hash: changed values inside them cannot be noticed.
    std::int64_t shards_without_hash = 0;
};

/// Opens every shard (sizes, hashes, offsets) and checks every value of every sample. Goes on after
/// a faulty shard. Cost: reads everything once. Memory: one shard when compressed.
[[nodiscard]] VerifyReport verify(const DataSet& set);

}  // namespace tune::loader
