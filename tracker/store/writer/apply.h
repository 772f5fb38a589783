#pragma once
// Commands -> changes in the open transaction. Each function checks everything before it writes, so
// that a refused command has changed nothing; errors of SQL need the transaction to be rolled back.

#include "base/result.h"
#include "tracker/store/commands/commands.h"
#include "tracker/store/writer/write_context.h"

namespace tune::tracker {

/// Applies any command. May shorten texts of `command` (truncation), so that it can be applied
/// again.
[[nodiscard]] Result<Outcome> apply(WriteContext& context, Command& command);

// apply_experiments.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateExperiment& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RenameExperiment& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteExperiment& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RestoreExperiment& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SetExperimentTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteExperimentTag& command);

// apply_runs.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateRun& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, UpdateRun& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteRun& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RestoreRun& command);

// apply_logging.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, LogMetric& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, LogParam& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SetTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, LogBatch& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SuggestParams& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, const CloseParams& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, MarkMetrics& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RecordLoggedModel& command);

// apply_links.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, LogInputs& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, LogOutputs& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PutDocument& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteDocument& command);

// apply_models.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, CreateLoggedModel& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, FinalizeLoggedModel& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SetLoggedModelTags& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteLoggedModelTag& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, LogLoggedModelParams& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, DeleteLoggedModel& command);

// apply_import.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, ImportRows& command);
// apply_import_registry.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, ImportRegisteredModel& command);

/// Links that keep the order in which they are made; true if the edge is new (apply_links.cc).
[[nodiscard]] Result<bool> link_dataset(WriteContext& context, const RunRow& run,
                                        const DatasetInput& input);
[[nodiscard]] Result<bool> link_model(WriteContext& context, const RunRow& run, bool is_output,
                                      const ModelOutput& model);

// apply_registered_models.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, RegistryCommand& command);

// permissions/apply_users.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PermissionCommand& command);

// apply_answers.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, KeyedCommand& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SweepAnswers& command);

// apply_garbage.cc
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PurgeRuns& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PurgeModels& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PurgeExperiment& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PurgeRows& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, PurgeBlocks& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, ForgetFolders& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SweepDatasets& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, BeginKeySweep& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, SweepKeys& command);
[[nodiscard]] Result<Outcome> apply(WriteContext& context, ShrinkFile& command);

/// Adds `metrics` (those with a model_id) to their models. `model_rows`: as from find_model_rows.
[[nodiscard]] Result<void> log_model_metrics(WriteContext& context, std::string_view run_id,
                                             const std::vector<Metric>& metrics);
/// Errors: kResourceDoesNotExist if a metric names a model that is not there.
[[nodiscard]] Result<void> check_models_exist(WriteContext& context,
                                              const std::vector<Metric>& metrics);

/// Writes tags of a run; mlflow.runName renames it. Nothing is checked.
[[nodiscard]] Result<void> put_tags(WriteContext& context, const RunRow& run,
                                    std::string_view run_id, const std::vector<Tag>& tags);

/// The active experiment. Errors: kResourceDoesNotExist; kInvalidParameterValue when deleted.
[[nodiscard]] Result<Experiment> require_active_experiment(WriteContext& context,
                                                           ExperimentId experiment_id);

/// "a" + "b" with one slash between.
[[nodiscard]] std::string join_uri(std::string_view root, std::string_view path);

}  // namespace tune::tracker
