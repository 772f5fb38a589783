#pragma once
// Every limit that more than one file must agree on, each with its reason. Over a limit a client
// gets 413 or 429 and a sentence that names the limit; nothing grows without bound.

#include <cstddef>
#include <cstdint>

namespace tune {

/// JSON nesting. nlohmann/json recurses on destruction; 64 levels are far beyond any request and
/// far below the stack.
inline constexpr int kJsonDepthMax = 64;

/// A request body that is JSON. log-batch of 1,000 metrics is about 150 kB, a logged model's JSON
/// about 1 MB; log-inputs may hold one data set of MLflow's sizes (16 MiB of profile, 1 MiB of
/// schema, 64 KiB of source) with some of it escaped.
inline constexpr std::size_t kJsonBodyBytesMax = 20u << 20;

/// All headers of a request. The MLflow client sends about 300 bytes; cookies of a proxy may add
/// some kB.
inline constexpr std::size_t kHeaderBytesMax = 16u << 10;

/// Open connections unless the server is told otherwise, and as far as its limit of open files
/// allows. 10,000 agents hold one each, and their trials some more; one that waits in a long-poll
/// costs about 8 kB with all that is known of its agent.
inline constexpr std::size_t kConnectionsMax = 16'384;

/// A connection that sends nothing for this long is closed. Longer than the client's keep-alive
/// reuse, shorter than what a slow-loris attack needs.
inline constexpr int kIdleTimeout_s = 75;

/// A request must have arrived whole (headers and JSON body) in this time; streamed artifact bodies
/// count from the last byte received instead.
inline constexpr int kRequestTimeout_s = 30;

/// Longest time a long-poll (agent lease) or an event stream's keep-alive may wait; below common
/// proxies' 60 s.
inline constexpr int kLongPollMax_ms = 30'000;

/// Commands waiting for the writer thread. At 20,000 writes/s this is 0.4 s of backlog; beyond it
/// clients get 429.
inline constexpr std::size_t kWriteQueueMax = 8192;

/// Commands in one transaction (group commit). Bounds the latency of the first waiting request.
inline constexpr std::size_t kGroupCommitMax = 1024;

/// MLflow's own limits, mlflow/utils/validation.py of 3.17.2.
inline constexpr std::size_t kKeyCharsMax = 250;
inline constexpr std::size_t kParamValueCharsMax = 6000;
inline constexpr std::size_t kRunTagValueCharsMax = 8000;
inline constexpr std::size_t kExperimentTagValueCharsMax = 20000;
inline constexpr std::size_t kBatchMetricsMax = 1000;
inline constexpr std::size_t kBatchParamsMax = 100;
inline constexpr std::size_t kBatchTagsMax = 100;
inline constexpr std::size_t kBatchTotalMax = 1000;
inline constexpr std::int64_t kSearchResultsMax = 50'000;

/// Events queued for one browser. A slower browser gets one `resync` in their place and reads the
/// state anew.
inline constexpr std::size_t kEventQueueMax = 256;

}  // namespace tune
