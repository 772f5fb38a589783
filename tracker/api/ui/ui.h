#pragma once
// The reads that only the web page makes: compact answers shaped for what it draws. Everything else
// the page gets from MLflow's routes and from /api/2.0/tune.

#include "tracker/api/http/router.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Runs in one answer of /api/ui/experiments/{id}/runs; the newest ones are kept. One run of 20
/// columns is about 400 bytes of answer, so this is 80 MB of text and 1 s of reading.
inline constexpr std::int64_t kUiRunsMax = 200'000;
/// Metrics in one /api/ui/series request: the charts that fit on some screens.
inline constexpr std::size_t kUiSeriesMetricsMax = 64;
/// Buckets a run when the request does not say.
inline constexpr std::int64_t kUiSeriesBuckets = 400;

/// Adds, all of them GET, read on the store's reader threads, 429 when those are busy:
///
///   /api/ui/experiments
///     {"experiments": [{experiment_id, name, runs, running, created_ms, last_activity_ms}]}, the
///     active ones, latest activity first.
///   /api/ui/experiments/{experiment_id}/runs[?view=active|deleted|all]
///     one block per column instead of one object per run; see ui_columns.h. ETag: the answer
///     changes only with a commit.
///   /api/ui/series?run_ids=a,b&metric=loss[&metric=...][&buckets=400]
///     {"metrics": [{metric, series: [{run_id, count, nan_count, step, time, last[, min, max,
///     counts]}]}]}: each run's history in at most `buckets` parts of equal step width, in step
///     order, `step` and `time` those of a part's last point, extrema exact. Without min, max and
///     counts every part is one point. null is NaN. Runs without the metric are left out.
///
/// Errors: kInvalidParameterValue for a bad id, view, bucket count, or too many runs
/// (kBulkRunsMax) or metrics; kResourceDoesNotExist for an unknown experiment. `store` outlives the
/// router's use.
void add_ui_routes(Router& router, Store& store);

}  // namespace tune::tracker
