// Two sources, one form: RunView points into the loader's rows and is used for pages, Run is used
// where a run was just written. The template is the same, so the two cannot drift apart.

#include "tracker/api/mlflow/run_serializer.h"

#include "tracker/api/mlflow/serializers.h"

namespace tune::tracker {
namespace {

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

void write_inputs(JsonWriter& out, const std::vector<DatasetInput>& datasets,
                  const std::vector<ModelInput>& models) {
    out.key("inputs").begin_object();
    if (!datasets.empty()) {
        out.key("dataset_inputs").begin_array();
        for (const DatasetInput& input : datasets) write_dataset_input(out, input);
        out.end_array();
    }
    if (!models.empty()) {
        out.key("model_inputs").begin_array();
        for (const ModelInput& input : models)
            out.begin_object().field("model_id", input.model_id).end_object();
        out.end_array();
    }
    out.end_object();
}

void write_outputs(JsonWriter& out, const std::vector<ModelOutput>& models) {
    out.key("outputs").begin_object();
    if (!models.empty()) {
        out.key("model_outputs").begin_array();
        for (const ModelOutput& output : models)
            out.begin_object()
                .field("model_id", output.model_id)
                .field("step", output.step)
                .end_object();
        out.end_array();
    }
    out.end_object();
}

const std::string& key_of(const Metric& metric) {
    return metric.key;
}

const std::string& key_of(const MetricView& metric) {
    return *metric.key;
}

/// Everything but the outputs and the end. `AnyRun`: Run or RunView.
template <class AnyRun>
void begin_run(JsonWriter& out, const AnyRun& run) {
    out.begin_object().key("info");
    write_run_info(out, run.info);
    out.key("data").begin_object();
    if (!run.metrics.empty()) {
        out.key("metrics").begin_array();
        for (const auto& metric : run.metrics) {
            out.begin_object().field("key", key_of(metric));
            out.key("value").real(metric.value);
            out.field("timestamp", metric.timestamp_ms).field("step", metric.step).end_object();
        }
        out.end_array();
    }
    write_pairs(out, "params", run.params);
    write_pairs(out, "tags", run.tags);
    out.end_object();
    write_inputs(out, run.dataset_inputs, run.model_inputs);
}

}  // namespace

void write_run_info(JsonWriter& out, const RunInfo& info) {
    out.begin_object();
    out.field("run_uuid", info.run_id);
    out.field("experiment_id", std::to_string(info.experiment_id));
    out.field("run_name", info.run_name);
    out.field("user_id", info.user_id);
    out.field("status", status_name(info.status));
    out.field("start_time", info.start_time_ms);
    // MLflow shows no time of 0, though it keeps it.
    if (info.end_time_ms.value_or(0) != 0) out.field("end_time", *info.end_time_ms);
    out.field("artifact_uri", info.artifact_uri);
    out.field("lifecycle_stage", lifecycle_name(info.lifecycle_stage));
    out.field("run_id", info.run_id);
    out.end_object();
}

void write_run(JsonWriter& out, const RunView& run) {
    begin_run(out, run);
    write_outputs(out, run.model_outputs);
    out.end_object();
}

void write_new_run(JsonWriter& out, const Run& run) {
    begin_run(out, run);
    out.end_object();
}

}  // namespace tune::tracker
