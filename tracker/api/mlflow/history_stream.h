#pragma once
// metrics/get-history. A long history without max_results is sent while it is read, in bounded
// memory: a million points are 80 MB of JSON.

#include "tracker/api/http/http_types.h"
#include "tracker/api/http/router.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Points from which on an answer is streamed; less is answered whole, on a connection that stays
/// open. MLflow's client asks for pages of 25,000.
inline constexpr std::int64_t kStreamedPointsMin = 50'000;
/// JSON made at once; one such piece waits while the one before it is sent.
inline constexpr std::size_t kHistoryPieceBytes = 512 << 10;

[[nodiscard]] Handler history_handler(Store& store);

}  // namespace tune::tracker
