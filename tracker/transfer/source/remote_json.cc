// protobuf's JSON leaves out what is empty and zero, and writes 64-bit integers as text; other
// servers write numbers, so both are read. What is absent reads as empty; an experiment without an
// id or a metric's value that is no number is an error, so that a proxy's login page is never taken
// for an empty record.

#include "tracker/transfer/source/remote_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tracker/transfer/stored_names.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

const Json kNothing = Json::object();
const Json kNoItems = Json::array();

template <class Item>
std::vector<Item> pairs_of(const Json& json, const char* name) {
    std::vector<Item> items;
    for (const Json& pair : json_list(json, name))
        items.push_back({json_text(pair, "key"), json_text(pair, "value")});
    return items;
}

LifecycleStage stage_of(const Json& json) {
    return json_text(json, "lifecycle_stage") == "deleted" ? LifecycleStage::kDeleted
                                                           : LifecycleStage::kActive;
}

std::optional<std::string> optional_text(const Json& json, const char* name) {
    if (!json.contains(name)) return std::nullopt;
    return json_text(json, name);
}

DatasetInput dataset_input_of(const Json& json) {
    const Json& dataset = json_object(json, "dataset");
    DatasetInput input;
    input.dataset = {json_text(dataset, "name"),        json_text(dataset, "digest"),
                     json_text(dataset, "source_type"), json_text(dataset, "source"),
                     optional_text(dataset, "schema"),  optional_text(dataset, "profile")};
    input.tags = pairs_of<Tag>(json, "tags");
    return input;
}

}  // namespace

std::string json_text(const Json& json, const char* name) {
    if (!json.is_object()) return {};
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) return {};
    return found->get<std::string>();
}

std::optional<std::int64_t> json_integer(const Json& json, const char* name) {
    if (!json.is_object()) return std::nullopt;
    const auto found = json.find(name);
    if (found == json.end()) return std::nullopt;
    if (found->is_number_integer()) return found->get<std::int64_t>();
    std::int64_t number = 0;
    if (found->is_string() &&
        parse_number(std::string_view(found->get_ref<const std::string&>()), number))
        return number;
    return std::nullopt;
}

const Json& json_object(const Json& json, const char* name) {
    if (!json.is_object()) return kNothing;
    const auto found = json.find(name);
    return found != json.end() && found->is_object() ? *found : kNothing;
}

const Json& json_list(const Json& json, const char* name) {
    if (!json.is_object()) return kNoItems;
    const auto found = json.find(name);
    return found != json.end() && found->is_array() ? *found : kNoItems;
}

Result<double> metric_value(const Json& metric) {
    const auto found = metric.is_object() ? metric.find("value") : metric.end();
    if (found == metric.end()) return 0.0;  // protobuf leaves out what is zero
    if (found->is_number()) return found->get<double>();
    double value = 0;
    if (found->is_string() &&
        parse_number(std::string_view(found->get_ref<const std::string&>()), value))
        return value;
    return Error{Code::kDataLoss, "a metric has the value " + shown(to_text(*found))};
}

Result<Experiment> experiment_of(const Json& json) {
    const auto id = json_integer(json, "experiment_id");
    if (!id) return Error{Code::kDataLoss, "the server gave an experiment without an id"};
    Experiment experiment;
    experiment.experiment_id = *id;
    experiment.name = json_text(json, "name");
    experiment.artifact_location = json_text(json, "artifact_location");
    experiment.lifecycle_stage = stage_of(json);
    experiment.creation_time_ms = json_integer(json, "creation_time").value_or(0);
    experiment.last_update_time_ms = json_integer(json, "last_update_time").value_or(0);
    experiment.tags = pairs_of<Tag>(json, "tags");
    return experiment;
}

Result<Run> run_of(const Json& json) {
    const Json& info = json_object(json, "info");
    const Json& data = json_object(json, "data");
    Run run;
    run.info.run_id = json_text(info, "run_id");
    run.info.run_name = json_text(info, "run_name");
    run.info.user_id = json_text(info, "user_id");
    const auto status = status_from_name(json_text(info, "status"));
    if (!status || run.info.run_id.empty())
        return Error{Code::kDataLoss, "the server's answer is no run: " + shown(to_text(info))};
    run.info.status = *status;
    run.info.start_time_ms = json_integer(info, "start_time").value_or(0);
    run.info.end_time_ms = json_integer(info, "end_time");
    run.info.artifact_uri = json_text(info, "artifact_uri");
    run.info.lifecycle_stage = stage_of(info);
    run.params = pairs_of<Param>(data, "params");
    run.tags = pairs_of<Tag>(data, "tags");
    const Json& inputs = json_object(json, "inputs");
    for (const Json& input : json_list(inputs, "dataset_inputs"))
        run.dataset_inputs.push_back(dataset_input_of(input));
    for (const Json& model : json_list(inputs, "model_inputs"))
        run.model_inputs.push_back({json_text(model, "model_id")});
    for (const Json& model : json_list(json_object(json, "outputs"), "model_outputs"))
        run.model_outputs.push_back(
            {json_text(model, "model_id"), json_integer(model, "step").value_or(0)});
    return run;
}

Result<LoggedModel> logged_model_of(const Json& json) {
    const Json& info = json_object(json, "info");
    const Json& data = json_object(json, "data");
    LoggedModel model;
    model.model_id = json_text(info, "model_id");
    if (model.model_id.empty())
        return Error{Code::kDataLoss, "the server's answer is no logged model"};
    model.name = json_text(info, "name");
    model.artifact_uri = json_text(info, "artifact_uri");
    model.creation_time_ms = json_integer(info, "creation_timestamp_ms").value_or(0);
    model.last_updated_time_ms = json_integer(info, "last_updated_timestamp_ms").value_or(0);
    model.status = logged_model_status_from_name(json_text(info, "status"))
                       .value_or(LoggedModelStatus::kUnspecified);
    model.status_message = json_text(info, "status_message");
    model.model_type = json_text(info, "model_type");
    model.source_run_id = json_text(info, "source_run_id");
    model.tags = pairs_of<Tag>(info, "tags");
    model.params = pairs_of<Param>(data, "params");
    for (const Json& json_metric : json_list(data, "metrics")) {
        Metric metric;
        TUNE_TRY(value, metric_value(json_metric));
        metric.key = json_text(json_metric, "key");
        metric.value = value;
        metric.timestamp_ms = json_integer(json_metric, "timestamp").value_or(0);
        metric.step = json_integer(json_metric, "step").value_or(0);
        metric.run_id = json_text(json_metric, "run_id");
        metric.dataset_name = json_text(json_metric, "dataset_name");
        metric.dataset_digest = json_text(json_metric, "dataset_digest");
        model.metrics.push_back(std::move(metric));
    }
    return model;
}

Result<RegisteredModel> registered_model_of(const Json& json) {
    RegisteredModel model;
    model.name = json_text(json, "name");
    if (model.name.empty())
        return Error{Code::kDataLoss, "the server gave a registered model without a name"};
    model.creation_time_ms = json_integer(json, "creation_timestamp").value_or(0);
    model.last_updated_time_ms = json_integer(json, "last_updated_timestamp").value_or(0);
    model.description = json_text(json, "description");
    model.tags = pairs_of<Tag>(json, "tags");
    for (const Json& alias : json_list(json, "aliases"))
        model.aliases.push_back(
            {json_text(alias, "alias"), json_integer(alias, "version").value_or(0)});
    return model;
}

Result<ModelVersion> model_version_of(const Json& json) {
    ModelVersion version;
    version.name = json_text(json, "name");
    version.version = json_integer(json, "version").value_or(0);
    if (version.version < 1)
        return Error{Code::kDataLoss, "the server gave a model version without its number"};
    version.creation_time_ms = json_integer(json, "creation_timestamp").value_or(0);
    version.last_updated_time_ms = json_integer(json, "last_updated_timestamp").value_or(0);
    version.description = optional_text(json, "description");
    version.user_id = optional_text(json, "user_id");
    TUNE_TRY(stage, stored_stage(json_text(json, "current_stage")));
    version.stage = stage;
    version.source = json_text(json, "source");
    version.run_id = optional_text(json, "run_id");
    version.run_link = optional_text(json, "run_link");
    version.status = stored_version_status(json_text(json, "status"));
    version.status_message = json_text(json, "status_message");
    version.tags = pairs_of<Tag>(json, "tags");
    return version;
}

}  // namespace tune::tracker
