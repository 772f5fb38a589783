#pragma once
// How a study lies in the store: its documents, which are the truth after a restart, and its MLflow
// runs, which show the same to every MLflow tool. Both change in one transaction.
//
//   tune.studies / <name>                the study: identity, configuration, state
//   tune.trials  / <study id>/<number>   one trial (trial_to_document)
//
// Pure: builds commands and reads documents; submits nothing.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "tracker/store/commands/commands.h"
#include "tracker/store/types.h"
#include "tuner/protocol.h"
#include "tuner/study/study.h"

namespace tune::tuner {

inline constexpr const char* kStudyCollection = "tune.studies";
inline constexpr const char* kTrialCollection = "tune.trials";

/// Marks of the metrics of a trial's run (tracker::MarkMetrics), written with its document: the
/// number of the attempt that runs, or that none does. What came before any mark is of the first
/// attempt: most trials have no other, and need no mark.
inline constexpr std::int64_t kNoAttemptMark = 0;
inline constexpr std::int64_t kFirstAttemptMark = 1;

/// "<study id>/" and the key of one trial; numbers are padded so that keys sort by number.
[[nodiscard]] std::string trial_key_prefix(const StudyIdentity& study);
[[nodiscard]] std::string trial_key(const StudyIdentity& study, std::uint64_t number);

/// The parent run and the document of a new study.
[[nodiscard]] std::vector<tracker::Command> create_study_commands(const Study& study);

/// The study's document after a change of state or configuration, and its parent run's status.
[[nodiscard]] std::vector<tracker::Command> update_study_commands(const Study& study,
                                                                  std::int64_t now_ms);

/// The parent run's metric and tags after `study.front()` changed. Derived, so not part of the
/// truth.
[[nodiscard]] tracker::Command best_trial_command(const Study& study, std::int64_t now_ms);

/// A trial that the store does not know yet: its run with all params and tags, and its document.
[[nodiscard]] std::vector<tracker::Command> create_trial_commands(const Study& study,
                                                                  const Trial& trial);

/// A trial after a change: status, times and tags of its run, the value once it is complete, and
/// its document. `finish`: what an agent said of the attempt's end, kept as tags.
[[nodiscard]] std::vector<tracker::Command> update_trial_commands(const Study& study,
                                                                  const Trial& trial,
                                                                  const FinishRequest* finish);

/// The document alone: for a trial whose run the user has deleted.
[[nodiscard]] tracker::Command trial_document_command(const Study& study, const Trial& trial);

/// A study from its document, still without trials. Errors: kDataLoss naming the study.
[[nodiscard]] Result<std::unique_ptr<Study>> study_from_document(std::string_view json_text);

/// {name, trial, version, model_id}, or {name, trial, error}.
[[nodiscard]] Json to_json(const Registration& registration);

/// MLflow's status for a trial's state.
[[nodiscard]] tracker::RunStatus run_status(TrialState state);

}  // namespace tune::tuner
