#pragma once
// Everything that changes the store. A command is checked and applied on the writer thread; one
// that fails has changed nothing. All rules of MLflow 3.17.2 that depend on values (names, lengths,
// time stamps, life cycle, immutability) are enforced there, with MLflow's codes and messages; the
// caller checks only what JSON can get wrong (types, missing fields).
//
// Errors common to commands on a run: kResourceDoesNotExist "Run with id=x not found";
// kInvalidParameterValue "The run x must be in the 'active' state. Current state is deleted.".

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tracker/store/commands/import_commands.h"
#include "tracker/store/commands/maintenance_commands.h"
#include "tracker/store/commands/registry_commands.h"
#include "tracker/store/permissions/permission_commands.h"
#include "tracker/store/types.h"

namespace tune::tracker {

// --- experiments ---------------------------------------------------------------------------------

/// Outcome: ExperimentId. Errors: kResourceAlreadyExists "Experiment(name=X) already exists." (the
/// name of a deleted one is free, unlike MLflow's); kInvalidParameterValue for a bad name, tag or
/// artifact location. An empty `artifact_location` means <artifact root>/<id>.
struct CreateExperiment {
    std::string name;
    std::string artifact_location = {};
    std::vector<Tag> tags = {};
    std::int64_t owner_id = 0;  ///< the user who will manage it; 0: nobody in particular
};

/// Errors: kInvalidParameterValue "Cannot rename a non-active experiment." (MLflow: 500);
/// kResourceAlreadyExists.
struct RenameExperiment {
    ExperimentId experiment_id = 0;
    std::string new_name;
};

/// Deletes the experiment and all its runs (reversible). Errors: kResourceDoesNotExist when there
/// is no such active experiment.
struct DeleteExperiment {
    ExperimentId experiment_id = 0;
};

/// Restores the experiment and all its runs, even those deleted one by one before. Errors:
/// kResourceDoesNotExist when there is no such deleted experiment; kResourceAlreadyExists when
/// another one uses its name by now.
struct RestoreExperiment {
    ExperimentId experiment_id = 0;
};

/// Creates or overwrites.
struct SetExperimentTag {
    ExperimentId experiment_id = 0;
    Tag tag;
};

/// Errors: kResourceDoesNotExist when the experiment has no such tag.
struct DeleteExperimentTag {
    ExperimentId experiment_id = 0;
    std::string key;
};

// --- runs ----------------------------------------------------------------------------------------

/// Outcome: Run. An empty `run_id` is generated (32 hex digits); one that exists already is
/// kResourceAlreadyExists. An empty name without a tag mlflow.runName is generated
/// (adjective-noun-number); name and tag are kept in step. `status` is RUNNING in MLflow always;
/// the tuner queues runs as SCHEDULED. `start_time_ms` is stored as given (0 = not set).
struct CreateRun {
    ExperimentId experiment_id = 0;
    std::string run_id = {};
    std::string run_name = {};
    std::string user_id = {};
    std::int64_t start_time_ms = 0;
    std::vector<Tag> tags = {};
    RunStatus status = RunStatus::kRunning;
};

/// Outcome: RunInfo. Fields left out stay; an empty `run_name` stays too. Errors: kInvalidState
/// when `only_if_status` is given and the run has another one; nothing is changed then.
struct UpdateRun {
    std::string run_id;
    std::optional<RunStatus> status = {};
    std::optional<std::int64_t> end_time_ms = {};
    std::string run_name = {};
    /// The tuner starts a queued run later than it creates it; not reachable over MLflow's API.
    std::optional<std::int64_t> start_time_ms = {};
    std::optional<RunStatus> only_if_status = {};
};

/// Idempotent, whatever the state.
struct DeleteRun {
    std::string run_id;
};
struct RestoreRun {
    std::string run_id;
};

/// As a LogBatch of one metric.
struct LogMetric {
    std::string run_id;
    Metric metric;
};

/// Errors: kInvalidParameterValue "Changing param values is not allowed. ..." for another value;
/// the same value again is fine.
struct LogParam {
    std::string run_id;
    Param param;
};

/// Creates or overwrites. mlflow.runName renames the run.
struct SetTag {
    std::string run_id;
    Tag tag;
};

/// Errors: kResourceDoesNotExist when the run has no such tag.
struct DeleteTag {
    std::string run_id;
    std::string key;
};

/// Params, then metrics, then tags, all or nothing. An exact repeat of a metric row is dropped (so
/// a retried request changes nothing); of several tags with one key the last wins. Metrics with a
/// model_id also become metrics of that logged model. Limits:
/// kBatchMetricsMax, kBatchParamsMax, kBatchTagsMax, kBatchTotalMax.
struct LogBatch {
    std::string run_id;
    std::vector<Metric> metrics = {};
    std::vector<Param> params = {};
    std::vector<Tag> tags = {};
};

/// Params set on behalf of a run's own program, before it logs any. Those that the run has already
/// keep their value. Each may then be logged once more by LogParam or LogBatch with another value,
/// which replaces this one: a program writes "True" or "1e-3" in its own words.
struct SuggestParams {
    std::string run_id;
    std::vector<Param> params;
    /// So may all that the run has: its program starts anew, and may say otherwise (a host, a
    /// time).
    bool reopens = false;
};

/// What SuggestParams left to be logged once more stays as it is. Cost: O(such params).
struct CloseParams {
    std::string run_id;
};

/// Divides the history of these metrics of the run: points that come from now on are noted with
/// `mark` and in their order (tracker/store/metrics/metric_marks.h), until the next mark. Nothing:
/// the run's marks go, with what was noted. Not reachable over MLflow's API.
struct MarkMetrics {
    std::string run_id;
    std::vector<std::string> keys = {};
    std::optional<std::int64_t> mark = {};
};

/// Datasets are one per (experiment, name, digest), the first one wins; a repeated edge is ignored.
struct LogInputs {
    std::string run_id;
    std::vector<DatasetInput> datasets = {};
    std::vector<ModelInput> models = {};
};

/// A repeated edge is ignored (MLflow: 400; its clients retry POSTs, so a repeat must be harmless).
struct LogOutputs {
    std::string run_id;
    std::vector<ModelOutput> models = {};
};

/// Legacy runs/log-model: appends `model_json` to the JSON list in the tag
/// mlflow.log-model.history. Errors: kInvalidParameterValue when it is not a JSON object or misses
/// a required field.
struct RecordLoggedModel {
    std::string run_id;
    std::string model_json;
};

// --- logged models -------------------------------------------------------------------------------

/// Outcome: LoggedModel. An empty `model_id` is generated ("m-" and 32 hex digits), an empty name
/// too.
struct CreateLoggedModel {
    ExperimentId experiment_id = 0;
    std::string name = {};
    std::string model_type = {};
    std::string source_run_id = {};
    std::vector<Param> params = {};
    std::vector<Tag> tags = {};
    std::string model_id = {};
};

/// Outcome: LoggedModel.
struct FinalizeLoggedModel {
    std::string model_id;
    LoggedModelStatus status = LoggedModelStatus::kReady;
};

/// Of several tags with one key the last wins.
struct SetLoggedModelTags {
    std::string model_id;
    std::vector<Tag> tags;
};

/// Errors: kResourceDoesNotExist when the model has no such tag.
struct DeleteLoggedModelTag {
    std::string model_id;
    std::string key;
};

struct LogLoggedModelParams {
    std::string model_id;
    std::vector<Param> params;
};

/// A second delete is fine; afterwards the model is kResourceDoesNotExist to reads.
struct DeleteLoggedModel {
    std::string model_id;
};

// --- documents -----------------------------------------------------------------------------------

/// Creates or replaces. `json_text` is stored as given; the store does not look into it.
struct PutDocument {
    std::string collection;
    std::string key;
    std::string json_text;
};

/// Fine when there is none.
struct DeleteDocument {
    std::string collection;
    std::string key;
};

// --- together ------------------------------------------------------------------------------------

struct Command;

/// Applies the commands in order, all or none: later ones see the earlier ones' effects, and the
/// first error is the outcome. Outcome: AtomicOutcome with one entry a command. Not nestable
/// (kInvalidParameterValue). At most kAtomicCommandsMax commands.
struct Atomic {
    std::vector<Command> commands;
};

using CommandVariant =
    std::variant<CreateExperiment, RenameExperiment, DeleteExperiment, RestoreExperiment,
                 SetExperimentTag, DeleteExperimentTag, CreateRun, UpdateRun, DeleteRun, RestoreRun,
                 LogMetric, LogParam, SetTag, DeleteTag, LogBatch, SuggestParams, CloseParams,
                 MarkMetrics, LogInputs, LogOutputs, RecordLoggedModel, CreateLoggedModel,
                 FinalizeLoggedModel, SetLoggedModelTags, DeleteLoggedModelTag,
                 LogLoggedModelParams, DeleteLoggedModel, PutDocument, DeleteDocument, ImportRows,
                 RegistryCommand, PermissionCommand, Operation, Atomic>;

/// One change. Converts implicitly from each struct above. Its special members are compiled once,
/// in commands.cc: those of so large a variant are what most files that write would consist of.
struct Command : CommandVariant {
    using CommandVariant::CommandVariant;
    Command();
    Command(const Command&);
    Command(Command&&) noexcept;
    Command& operator=(const Command&);
    Command& operator=(Command&&) noexcept;
    ~Command();
};

struct Outcome;

struct AtomicOutcome {
    std::vector<Outcome> outcomes;
};

using OutcomeVariant =
    std::variant<std::monostate, ExperimentId, RunInfo, Run, LoggedModel, RegisteredModel,
                 ModelVersion, RecordedResponse, PurgeProgress, PermissionOutcome, AtomicOutcome>;

/// What a command answers: std::monostate unless the command's comment names a type.
struct Outcome : OutcomeVariant {
    using OutcomeVariant::OutcomeVariant;
    Outcome();
    Outcome(const Outcome&);
    Outcome(Outcome&&) noexcept;
    Outcome& operator=(const Outcome&);
    Outcome& operator=(Outcome&&) noexcept;
    ~Outcome();
};

}  // namespace tune::tracker
