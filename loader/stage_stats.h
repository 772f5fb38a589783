#pragma once
// Where the time of reading a data set goes, and what that means.

#include <cstdint>
#include <string>

namespace tune::loader {

/// Since the data set was opened. Times of decoding threads are summed over them.
struct StageStats {
    std::int64_t samples = 0;
    int threads = 0;
    /// From the first call of next() to the end of the last one.
    double elapsed_s = 0;
    /// next() waited for a batch whose bytes had not come over the network.
    double fetch_wait_s = 0;
    /// next() waited for a batch that was being read and decoded, or did that itself.
    double decode_wait_s = 0;
    /// Threads read samples and copied them into batches: all work but the next two.
    double read_s = 0;
    double decompress_s = 0;
    /// Images and padding.
    double transform_s = 0;
    /// Over the network.
    std::uint64_t fetched_bytes = 0;
};

/// One sentence that says what holds the reader of the data up, and what to do about it.
[[nodiscard]] std::string bottleneck(const StageStats& stats);

}  // namespace tune::loader
