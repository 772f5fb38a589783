// What is unset, and an empty list, is left out, as protobuf's JSON does. Where MLflow shows an
// empty list all the same, a parameter says so.

#include "tracker/api/mlflow/serializers.h"

#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

void write_metric_fields(JsonWriter& out, const Metric& metric) {
    out.field("key", metric.key);
    out.key("value").real(metric.value);
    out.field("timestamp", metric.timestamp_ms);
    out.field("step", metric.step);
}

void write_model_metric(JsonWriter& out, const Metric& metric) {
    out.begin_object();
    write_metric_fields(out, metric);
    if (!metric.dataset_name.empty()) out.field("dataset_name", metric.dataset_name);
    if (!metric.dataset_digest.empty()) out.field("dataset_digest", metric.dataset_digest);
    if (!metric.model_id.empty()) out.field("model_id", metric.model_id);
    if (!metric.run_id.empty()) out.field("run_id", metric.run_id);
    out.end_object();
}

/// {"name": [...], "next_page_token"}, as MLflow leaves out an empty list.
template <class Value>
std::string page_response(std::string_view name, const Page<Value>& page,
                          void (*write)(JsonWriter&, const Value&)) {
    JsonWriter out;
    out.begin_object();
    if (!page.items.empty()) {
        out.key(name).begin_array();
        for (const Value& item : page.items) write(out, item);
        out.end_array();
    }
    if (!page.next_page_token.empty()) out.field("next_page_token", page.next_page_token);
    out.end_object();
    return out.take();
}

}  // namespace

void write_experiment(JsonWriter& out, const Experiment& experiment) {
    out.begin_object();
    out.field("experiment_id", std::to_string(experiment.experiment_id));
    out.field("name", experiment.name);
    out.field("artifact_location", experiment.artifact_location);
    out.field("lifecycle_stage", lifecycle_name(experiment.lifecycle_stage));
    out.field("last_update_time", experiment.last_update_time_ms);
    out.field("creation_time", experiment.creation_time_ms);
    write_pairs(out, "tags", experiment.tags);
    out.field("workspace", "default");
    out.end_object();
}

void write_metric(JsonWriter& out, const Metric& metric) {
    out.begin_object();
    write_metric_fields(out, metric);
    out.end_object();
}

void write_logged_model(JsonWriter& out, const LoggedModel& model) {
    out.begin_object().key("info").begin_object();
    out.field("model_id", model.model_id);
    out.field("experiment_id", std::to_string(model.experiment_id));
    out.field("name", model.name);
    out.field("creation_timestamp_ms", model.creation_time_ms);
    out.field("last_updated_timestamp_ms", model.last_updated_time_ms);
    out.field("artifact_uri", model.artifact_uri);
    out.field("status", logged_model_status_name(model.status));
    out.field("model_type", model.model_type);
    out.field("source_run_id", model.source_run_id);
    if (!model.status_message.empty()) out.field("status_message", model.status_message);
    write_pairs(out, "tags", model.tags);
    out.end_object().key("data").begin_object();
    write_pairs(out, "params", model.params);
    if (!model.metrics.empty()) {
        out.key("metrics").begin_array();
        for (const Metric& metric : model.metrics) write_model_metric(out, metric);
        out.end_array();
    }
    out.end_object().end_object();
}

std::string experiments_response(const Page<Experiment>& page) {
    return page_response("experiments", page, write_experiment);
}

std::string metrics_response(const Page<Metric>& page) {
    return page_response("metrics", page, write_metric);
}

std::string logged_models_response(const Page<LoggedModel>& page) {
    return page_response("models", page, write_logged_model);
}

std::string histories_response(const std::vector<RunHistory>& histories, bool always_list) {
    JsonWriter out;
    out.begin_object();
    bool is_empty = true;
    for (const RunHistory& history : histories) is_empty = is_empty && history.metrics.empty();
    if (!is_empty || always_list) {
        out.key("metrics").begin_array();
        for (const RunHistory& history : histories)
            for (const Metric& metric : history.metrics) {
                out.begin_object();
                write_metric_fields(out, metric);
                out.field("run_id", history.run_id).end_object();
            }
        out.end_array();
    }
    out.end_object();
    return out.take();
}

std::string datasets_response(const std::vector<DatasetSummary>& datasets) {
    JsonWriter out;
    out.begin_object();
    if (!datasets.empty()) {
        out.key("dataset_summaries").begin_array();
        for (const DatasetSummary& dataset : datasets) {
            out.begin_object();
            out.field("experiment_id", std::to_string(dataset.experiment_id));
            out.field("name", dataset.name).field("digest", dataset.digest);
            if (!dataset.context.empty()) out.field("context", dataset.context);
            out.end_object();
        }
        out.end_array();
    }
    out.end_object();
    return out.take();
}

std::string files_response(std::string_view root_uri, std::string_view folder,
                           const std::vector<ArtifactEntry>& entries) {
    JsonWriter out;
    out.begin_object();
    if (!root_uri.empty()) out.field("root_uri", root_uri);
    if (!entries.empty()) {
        out.key("files").begin_array();
        for (const ArtifactEntry& entry : entries) {
            out.begin_object().field("path", join_artifact_path(folder, entry.name));
            out.key("is_dir").boolean(entry.is_directory);
            if (!entry.is_directory)
                out.field("file_size", static_cast<std::int64_t>(entry.size_bytes));
            out.end_object();
        }
        out.end_array();
    }
    out.end_object();
    return out.take();
}

}  // namespace tune::tracker
