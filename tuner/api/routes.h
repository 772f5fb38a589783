#pragma once
// Tuning over REST: /api/2.0/tune/... (and /ajax-api/2.0/tune/...). Every handler parses, calls
// Studies and writes the answer; long-polls are answered by Studies when there is something to say
// or their time is over, so that no handler waits.
//
//   POST tune/studies                        the fields of study.yaml, `name` for `study` -> study
//   GET  tune/studies
//   GET  tune/schema                         the JSON Schema of studies
//   GET  tune/studies/{name}[?version=&wait_ms=]   long-poll: when `version` is another one
//   GET  tune/studies/{name}/replay          every suggestion asked for again, and compared
//   POST tune/studies/{name}/ask             {count, worker?, lease_ttl_ms?, request_id?}
//   POST tune/studies/{name}/report          {number, attempt?, step, value} -> {action}
//   POST tune/studies/{name}/tell            {number, attempt?, value | state, reason?}
//   POST tune/studies/{name}/enqueue         {params: {...}}
//   POST tune/studies/{name}/{pause|resume|stop}
//   GET  tune/studies/{name}/trials?state=&fields=intermediate&max_results=&page_token=
//   GET  tune/studies/{name}/trials/{number}
//   GET  tune/studies/{name}/importance
//   GET  tune/queue                          agents, devices, leases, and why trials wait
//   POST tune/studies/{name}/priority        {priority}
//   GET  tune/quotas, POST tune/quotas {user, slots, gpus, priority}, DELETE tune/quotas/{user}
//   POST tune/agents/...                     tuner/protocol.h
//
// Errors: Studies' own, as MLflow's error body.

#include "tracker/api/http/router.h"
#include "tracker/api/ops/openapi.h"
#include "tracker/store/store.h"
#include "tuner/study/registry/studies.h"

namespace tune::tuner {

/// Trials of one page when the request does not say, and at most.
inline constexpr std::int64_t kTrialsPage = 1000;
inline constexpr std::int64_t kTrialsPageMax = 10'000;
/// Points of a trial's intermediate values; more are thinned out to the last of each part.
inline constexpr std::int64_t kIntermediatePoints = 200;

/// Both outlive the router's use.
struct TuningParts {
    Studies& studies;
    tracker::Store& store;
};

void add_tuning_routes(tracker::Router& router, TuningParts parts);

/// The description of these routes, for add_openapi_routes().
[[nodiscard]] const tracker::OpenApiPart& tuning_openapi();

// The groups of it, each in its own file.
void add_study_routes(tracker::Router& router, TuningParts parts);
void add_trial_routes(tracker::Router& router, TuningParts parts);
void add_importance_routes(tracker::Router& router, TuningParts parts);
void add_agent_routes(tracker::Router& router, Studies& studies);
void add_queue_routes(tracker::Router& router, TuningParts parts);

}  // namespace tune::tuner
