#pragma once
// A study and a trial as the REST API, the live events and `--json` show them.

#include "base/json.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// {name, study_id, experiment_id, run_id, state, note, metric, space, sampler, pruner, budget,
/// space_order?, command, version, created_ms, started_ms, counts: {queued, ...}, trials, best:
/// {number, value, params, run_id} | null}
[[nodiscard]] Json study_json(const Study& study);

/// {number, state, attempt, run_id, params, value | null, reason, start_ms | null, end_ms | null,
/// worker}; while it runs also intermediate_last: [step, value] once there is one.
[[nodiscard]] Json trial_json(const Study& study, const Trial& trial);

}  // namespace tune::tuner
