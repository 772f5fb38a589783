#pragma once
// The ways of mosaicml-streaming 0.13.0 to make batches of one stream, or of fixed parts of each:
// its batching methods "stratified", "per_stream" and "device_per_stream".

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "loader/order/epoch.h"

namespace tune::loader {

/// As rank_samples, for options.batching other than kRandom. Each stream is sampled, shuffled (with
/// its part of the shuffle block) and partitioned by itself; then batches are made of the streams.
/// Only whole global batches are read, and a run resumes after the last whole one that
/// partition.drop_first covers. Errors: those of the parts; kInvalidParameterValue when a stream is
/// too small for one batch.
[[nodiscard]] Result<std::vector<std::int64_t>> batched_by_stream(
    const std::vector<Stream>& streams, const EpochOptions& options);

}  // namespace tune::loader
