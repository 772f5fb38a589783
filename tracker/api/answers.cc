#include "tracker/api/answers.h"

#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

template <class Pair>
void write_pairs(JsonWriter& out, std::string_view name, const std::vector<Pair>& pairs) {
    if (pairs.empty()) return;
    out.key(name).begin_array();
    for (const Pair& pair : pairs)
        out.begin_object().field("key", pair.key).field("value", pair.value).end_object();
    out.end_array();
}

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

void write_dataset_input(JsonWriter& out, const DatasetInput& input) {
    out.begin_object();
    write_pairs(out, "tags", input.tags);
    const Dataset& dataset = input.dataset;
    out.key("dataset").begin_object();
    out.field("name", dataset.name).field("digest", dataset.digest);
    out.field("source_type", dataset.source_type).field("source", dataset.source);
    if (dataset.schema) out.field("schema", *dataset.schema);
    if (dataset.profile) out.field("profile", *dataset.profile);
    out.end_object().end_object();
}

void write_run_links(JsonWriter& out, const Run& run) {
    out.key("inputs").begin_object();
    if (!run.dataset_inputs.empty()) {
        out.key("dataset_inputs").begin_array();
        for (const DatasetInput& input : run.dataset_inputs) write_dataset_input(out, input);
        out.end_array();
    }
    if (!run.model_inputs.empty()) {
        out.key("model_inputs").begin_array();
        for (const ModelInput& input : run.model_inputs)
            out.begin_object().field("model_id", input.model_id).end_object();
        out.end_array();
    }
    out.end_object();
    if (run.model_outputs.empty()) return;
    out.key("outputs").begin_object().key("model_outputs").begin_array();
    for (const ModelOutput& output : run.model_outputs)
        out.begin_object()
            .field("model_id", output.model_id)
            .field("step", output.step)
            .end_object();
    out.end_array().end_object();
}

/// {"name": [...], "next_page_token"}, as MLflow leaves out an empty list.
template <class Value>
std::string page_answer(std::string_view name, const Page<Value>& page,
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

void write_run_info(JsonWriter& out, const RunInfo& info) {
    out.begin_object();
    out.field("run_uuid", info.run_id);
    out.field("experiment_id", std::to_string(info.experiment_id));
    out.field("run_name", info.run_name);
    out.field("user_id", info.user_id);
    out.field("status", status_name(info.status));
    out.field("start_time", info.start_time_ms);
    if (info.end_time_ms) out.field("end_time", *info.end_time_ms);
    out.field("artifact_uri", info.artifact_uri);
    out.field("lifecycle_stage", lifecycle_name(info.lifecycle_stage));
    out.field("run_id", info.run_id);
    out.end_object();
}

void write_metric(JsonWriter& out, const Metric& metric) {
    out.begin_object();
    write_metric_fields(out, metric);
    out.end_object();
}

void write_run(JsonWriter& out, const Run& run) {
    out.begin_object().key("info");
    write_run_info(out, run.info);
    out.key("data").begin_object();
    if (!run.metrics.empty()) {
        out.key("metrics").begin_array();
        for (const Metric& metric : run.metrics) write_metric(out, metric);
        out.end_array();
    }
    write_pairs(out, "params", run.params);
    write_pairs(out, "tags", run.tags);
    out.end_object();
    write_run_links(out, run);
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
    if (!model.source_run_id.empty()) out.field("source_run_id", model.source_run_id);
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

std::string experiments_answer(const Page<Experiment>& page) {
    return page_answer("experiments", page, write_experiment);
}

std::string runs_answer(const Page<Run>& page) {
    return page_answer("runs", page, write_run);
}

std::string metrics_answer(const Page<Metric>& page) {
    return page_answer("metrics", page, write_metric);
}

std::string logged_models_answer(const Page<LoggedModel>& page) {
    return page_answer("models", page, write_logged_model);
}

std::string histories_answer(const std::vector<RunHistory>& histories, bool always_list) {
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

std::string datasets_answer(const std::vector<DatasetSummary>& datasets) {
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

std::string files_answer(std::string_view root_uri, std::string_view folder,
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
