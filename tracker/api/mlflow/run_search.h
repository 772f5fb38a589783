#pragma once
// runs/search: a page of runs, or all of them as JSON lines.

#include "tracker/api/http/http_types.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Streams of runs under way; one more is 429. Each holds its list of rows.
inline constexpr int kRunStreamsMax = 16;
/// Runs in one stream: the list of rows is 8 MB at most.
inline constexpr std::int64_t kStreamedRunsMax = 1'000'000;
/// From this size on a piece of a stream is sent.
inline constexpr std::size_t kRunStreamPieceBytes = 256 << 10;

/// One run: {"run": ...}. `fields` limits what is in it.
[[nodiscard]] Result<std::string> get_run_response(const Store& store, const Request& request);

/// Answers a search. With `Accept: application/x-ndjson` all matching runs (at most max_results
/// where given, kStreamedRunsMax anyway) as one JSON object a line, in memory of one piece and 8
/// bytes per run. Which runs match, and their order, is of one moment; each piece then shows its
/// runs as they are when it is made (a run that was removed for good meanwhile is left out).
[[nodiscard]] Handler search_runs_handler(Store& store);

}  // namespace tune::tracker
