#pragma once

#include <cstdint>

#include "base/result.h"
#include "loader/dataset.h"

namespace tune::loader {

struct Throughput {
    double first_batch_s = 0;  ///< from opening to the first batch
    double seconds = 0;        ///< of what follows
    std::int64_t samples = 0;
    std::uint64_t bytes = 0;
};

/// Reads whole epochs until `seconds_min` have passed, at least one. Errors: those of the data set.
[[nodiscard]] Result<Throughput> measure_throughput(DatasetOptions options, double seconds_min);

}  // namespace tune::loader
