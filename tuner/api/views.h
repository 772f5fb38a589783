#pragma once
// A study and a trial as the REST API, the live events and `--json` show them.

#include "base/json.h"
#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// {name, study_id, experiment_id, run_id, state, note, metric, space, sampler, pruner, budget,
/// space_order?, command, version, created_ms, started_ms, counts: {queued, ...}, trials, best:
/// {number, value, params, run_id} | null}. With constraints also `constraints`, and best has their
/// values; in population based training it has what add_origin adds and its `lineage`, oldest
/// first. `register` where the study has that key, and, once it is known what became of it,
/// `registered`: {name, trial, version, model_id} or {name, trial, error}. With several objectives
/// `metric` is the first of `metrics`, `best` is null, and
/// `best_trials` holds the Pareto front, by number, at most kFrontShownMax of it.
[[nodiscard]] Json study_json(const Study& study);

/// A front of this many trials fills a picture; more would weigh down every event of the study.
inline constexpr std::size_t kFrontShownMax = 1000;

/// {number, state, attempt, run_id, params, value | null, reason, start_ms | null, end_ms | null,
/// worker}; while it runs also intermediate_last: [step, value] once there is one. With several
/// objectives also `values` once it is complete; with constraints `constraints`: {name: value} and
/// `violation`. Population based training adds what add_origin does.
[[nodiscard]] Json trial_json(const Study& study, const Trial& trial);

/// Of population based training: `parent` | null, `member`, `generation`, `steps`: [from, to].
void add_origin(const Origin& origin, const Steps& steps, Json& json);

/// Trials of a lineage that a best trial is shown with; the last ones of a longer one.
inline constexpr std::size_t kLineageShownMax = 1000;

}  // namespace tune::tuner
