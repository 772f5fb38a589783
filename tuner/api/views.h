#pragma once
// A study and a trial as the REST API, the live events and `--json` show them.
//
// What is shown is copied under the lock of the studies, which takes microseconds, and becomes JSON
// without it, which takes a hundred times as long: a large answer keeps nobody waiting.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/study/study.h"

namespace tune::tuner {

/// What of a trial is shown.
struct TrialCopy {
    std::uint64_t number = 0;
    TrialState state = TrialState::kQueued;
    int attempt = 0;
    std::string run_id;
    Point point;
    std::optional<double> value;
    std::vector<double> more_values;
    std::vector<double> constraint_values;
    std::string reason;
    std::int64_t start_ms = 0;
    std::int64_t end_ms = 0;
    std::int64_t ran_ms = 0;
    std::int64_t attempt_start_ms = 0;
    std::string worker;
    double cost = 0;
    std::optional<std::uint64_t> reused_from;
    std::optional<Origin> origin;
    std::optional<Steps> steps;               ///< with an origin
    std::optional<TrialResult> now;           ///< while it runs, of several objectives
    std::optional<Objective::Row> last = {};  ///< while it runs
};

/// What of a study is shown, without its trials but for the best. Cost of a copy: the best trials.
struct StudyCopy {
    struct Best {
        TrialCopy trial;
        std::vector<TrialCopy> lineage;
    };
    StudyIdentity identity;
    std::shared_ptr<const StudyConfig> config;
    StudyState state = StudyState::kRunning;
    std::string_view status;
    std::string note;
    std::string obstacle;  ///< while nothing runs
    StudyEnd end = StudyEnd::kNone;
    int priority = 0;
    std::string user;
    std::int64_t started_ms = 0;
    TrialTable::Counts counts{};
    std::size_t trials = 0;
    std::size_t excused = 0;
    std::int64_t version = 0;
    double paid = 0;
    std::optional<Best> best;
    std::vector<Best> front;                      ///< of several objectives
    std::optional<Registration> registered = {};  ///< of the model of the best trial
};

/// To be called under the lock (Studies::read).
[[nodiscard]] TrialCopy copy_of(const Study& study, const Trial& trial);
[[nodiscard]] StudyCopy copy_of(const Study& study);

/// {name, study_id, experiment_id, run_id, state, note, metric, space, sampler, pruner, budget,
/// space_order?, command, version, created_ms, started_ms, counts: {queued, ...}, trials, best:
/// {number, value, params, run_id} | null}. With constraints also `constraints`, and best has their
/// values; in population based training it has what add_origin adds and its `lineage`, oldest
/// first. `register` where the study has that key, and, once it is known what became of it,
/// `registered`: {name, trial, version, model_id} or {name, trial, error}. With several objectives
/// `metric` is the first of `metrics`, `best` is null, and
/// `best_trials` holds the Pareto front, by number, at most kFrontShownMax of it.
[[nodiscard]] Json study_json(const StudyCopy& study);

/// A front of this many trials fills a picture; more would weigh down every event of the study.
inline constexpr std::size_t kFrontShownMax = 1000;

/// {number, state, attempt, run_id, params, value | null, reason, start_ms | null, end_ms | null,
/// worker}; while it runs also intermediate_last: [step, value] once there is one. With several
/// objectives also `values` once it is complete; with constraints `constraints`: {name: value} and
/// `violation`. Population based training adds what add_origin does.
[[nodiscard]] Json trial_json(const StudyConfig& config, const TrialCopy& trial);

/// Of population based training: `parent` | null, `member`, `generation`, `steps`: [from, to].
void add_origin(const Origin& origin, const Steps& steps, Json& json);

/// Trials of a lineage that a best trial is shown with; the last ones of a longer one.
inline constexpr std::size_t kLineageShownMax = 1000;

}  // namespace tune::tuner
