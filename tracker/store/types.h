#pragma once
// What the tracker stores, as plain values. Names and rules follow MLflow 3.17.2; times are
// milliseconds since 1970 (UTC). An empty string means "not set" wherever MLflow has an optional
// string.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tune::tracker {

/// MLflow's experiment ids are integers that travel as strings. 0 is "Default" and always exists.
using ExperimentId = std::int64_t;

/// The id in `text`. Errors: kInvalidParameterValue "Invalid experiment ID 'abc'. Experiment ID
/// must be a valid integer." (MLflow's text).
[[nodiscard]] Result<ExperimentId> parse_experiment_id(std::string_view text);

enum class LifecycleStage { kActive, kDeleted };
/// "active" or "deleted".
[[nodiscard]] std::string_view lifecycle_name(LifecycleStage stage);

/// The numbers are MLflow's protobuf enum.
enum class RunStatus { kRunning = 1, kScheduled = 2, kFinished = 3, kFailed = 4, kKilled = 5 };
/// "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED".
[[nodiscard]] std::string_view status_name(RunStatus status);
[[nodiscard]] std::optional<RunStatus> status_from_name(std::string_view name);
/// FINISHED, FAILED or KILLED.
[[nodiscard]] bool is_terminal(RunStatus status);

/// The numbers are MLflow's protobuf enum.
enum class ViewType { kActiveOnly = 1, kDeletedOnly = 2, kAll = 3 };

/// The numbers are MLflow's protobuf enum.
enum class LoggedModelStatus { kUnspecified = 0, kPending = 1, kReady = 2, kUploadFailed = 3 };
/// "LOGGED_MODEL_PENDING" and so on.
[[nodiscard]] std::string_view logged_model_status_name(LoggedModelStatus status);
[[nodiscard]] std::optional<LoggedModelStatus> logged_model_status_from_name(std::string_view name);

/// A tag of anything, and a param of a run or logged model.
struct Tag {
    std::string key;
    std::string value;
    bool operator==(const Tag&) const = default;
};
struct Param {
    std::string key;
    std::string value;
    bool operator==(const Param&) const = default;
};

/// One point. `value` is NaN or finite when read: the store clamps infinities to +-DBL_MAX, as
/// MLflow does. The last four fields matter only for metrics of logged models: `model_id` and the
/// dataset are what the writer gave; `run_id` is filled only where a read says so.
struct Metric {
    std::string key;
    double value = 0;
    std::int64_t timestamp_ms = 0;
    std::int64_t step = 0;
    std::string model_id = {};
    std::string dataset_name = {};
    std::string dataset_digest = {};
    std::string run_id = {};
};

struct Experiment {
    ExperimentId experiment_id = 0;
    std::string name;
    std::string artifact_location;
    LifecycleStage lifecycle_stage = LifecycleStage::kActive;
    std::int64_t creation_time_ms = 0;
    std::int64_t last_update_time_ms = 0;
    std::vector<Tag> tags;  // sorted by key
};

struct RunInfo {
    std::string run_id;
    ExperimentId experiment_id = 0;
    std::string run_name;
    std::string user_id;
    RunStatus status = RunStatus::kRunning;
    std::int64_t start_time_ms = 0;
    std::optional<std::int64_t> end_time_ms;
    std::string artifact_uri;
    LifecycleStage lifecycle_stage = LifecycleStage::kActive;
};

struct Dataset {
    std::string name = {};
    std::string digest = {};
    std::string source_type = {};
    std::string source = {};
    std::optional<std::string> schema = {};
    std::optional<std::string> profile = {};
};

/// A dataset as the input of a run. The tag `mlflow.data.context` says what for.
struct DatasetInput {
    Dataset dataset;
    std::vector<Tag> tags;
};

struct ModelInput {
    std::string model_id;
};

struct ModelOutput {
    std::string model_id;
    std::int64_t step = 0;
};

/// A run as MLflow answers it: `metrics` are the latest values only (greatest by step, then
/// timestamp, then value), with key, value, timestamp and step. Lists are sorted by key.
struct Run {
    RunInfo info;
    std::vector<Metric> metrics;
    std::vector<Param> params;
    std::vector<Tag> tags;
    std::vector<DatasetInput> dataset_inputs;
    std::vector<ModelInput> model_inputs;
    std::vector<ModelOutput> model_outputs;
};

struct LoggedModel {
    std::string model_id;
    ExperimentId experiment_id = 0;
    std::string name;
    std::string artifact_uri;
    std::int64_t creation_time_ms = 0;
    std::int64_t last_updated_time_ms = 0;
    LoggedModelStatus status = LoggedModelStatus::kPending;
    std::string status_message;
    std::string model_type;
    std::string source_run_id;
    std::vector<Tag> tags;        // sorted by key
    std::vector<Param> params;    // sorted by key
    std::vector<Metric> metrics;  // each with model_id, run_id and its dataset
};

struct DatasetSummary {
    ExperimentId experiment_id = 0;
    std::string name;
    std::string digest;
    std::string context;  // tag mlflow.data.context of an input; empty if it has none
};

/// A JSON text under (collection, key); what other libraries keep in the store's transactions.
struct Document {
    std::string collection;
    std::string key;
    std::string json_text;
};

/// A page of a listing; `next_page_token` is empty on the last one. Tokens are opaque and survive a
/// restart; a row inserted or removed meanwhile never makes another one appear twice or vanish.
template <class T>
struct Page {
    std::vector<T> items;
    std::string next_page_token;
};

/// A part of a metric's history drawn as one pixel column: exact extrema and the last point.
/// `count` points, ordered by (step, timestamp); NaN points are counted in `nan_count` only.
struct SeriesBucket {
    std::int64_t first_step = 0;
    std::int64_t last_step = 0;
    std::int64_t first_timestamp_ms = 0;
    std::int64_t last_timestamp_ms = 0;
    double min = 0;  // NaN when every point of the bucket is
    double max = 0;
    double last = 0;  // the bucket's last point, which may be NaN
    std::int64_t count = 0;
    std::int64_t nan_count = 0;
};

struct Series {
    std::string run_id;
    std::vector<SeriesBucket> buckets;  // in step order
};

/// One row of the list of experiments.
struct ExperimentStatistics {
    ExperimentId experiment_id = 0;
    std::int64_t run_count = 0;      // not deleted
    std::int64_t running_count = 0;  // of these, with status RUNNING
    std::int64_t last_activity_ms = 0;
};

}  // namespace tune::tracker
