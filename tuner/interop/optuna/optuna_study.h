#pragma once
// Our studies as Optuna's and back. Pure: JSON and rows in, rows and JSON out.
//
//   study_json, trial_json (tuner/api)  ->  OptunaStudy  ->  optuna.load_study
//   optuna.create_study                 ->  OptunaStudy  ->  StudyConfig and trials
//
// Our configuration travels along in the study's system attribute `tune:study`, so that what comes
// back is the same study, conditions and all.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tuner/config/study_config.h"
#include "tuner/interop/optuna/optuna_db.h"
#include "tuner/study/trial/trial.h"

namespace tune::tuner {

/// A study for Optuna, as the REST API shows it. `trials`: in order of number, each with
/// `intermediate`: [[step, value], ...] and, as the study, `tags`: {key: text} of its run; both may
/// be left out. Errors: kInvalidParameterValue for what is no study.
[[nodiscard]] Result<OptunaStudy> to_optuna(const Json& study, const Json& trials);

/// A trial on its way in.
struct ImportedTrial {
    TrialState state = TrialState::kQueued;
    Point point;                      ///< kQueued: what is given of it
    std::vector<double> values;       ///< one an objective
    std::vector<double> constraints;  ///< one a constraint of the configuration, if it was measured
    std::vector<std::pair<std::int64_t, double>> intermediate;
    std::int64_t start_ms = 0;
    std::int64_t end_ms = 0;
    std::string reason;
    std::vector<std::pair<std::string, std::string>> tags;  ///< its user attributes as texts
};

struct ImportedStudy {
    StudyConfig config;
    std::vector<ImportedTrial> trials;
    std::vector<std::pair<std::string, std::string>> tags;  ///< its user attributes as texts
    std::vector<std::string> notes;  ///< what was left out or changed, sentence by sentence
};

/// A study of Optuna as one of ours. Parameters that some trials lack become conditional on the
/// choice that explains it; where none does, the trials without them are left out, which is
/// reported. Errors: kInvalidParameterValue for distributions that change their kind within the
/// study, and for a study without parameters. A constraint of Optuna's becomes a metric of its name
/// that may be at most 0; complete trials without all values are failed ones. Names that ours may
/// not have are changed, which is reported, too.
[[nodiscard]] Result<ImportedStudy> from_optuna(OptunaStudy study);

}  // namespace tune::tuner
