// MLflow's protobuf messages leave out what was never set but write an empty text that was given;
// std::optional keeps the two apart, down to the column.

#include "tracker/api/mlflow/registry_serializer.h"

namespace tune::tracker {
namespace {

void write_tags(JsonWriter& out, const std::vector<Tag>& tags) {
    if (tags.empty()) return;
    out.key("tags").begin_array();
    for (const Tag& tag : tags)
        out.begin_object().field("key", tag.key).field("value", tag.value).end_object();
    out.end_array();
}

void write_optional(JsonWriter& out, std::string_view name,
                    const std::optional<std::string>& value) {
    if (value) out.field(name, *value);
}

}  // namespace

void write_model_version(JsonWriter& out, const ModelVersion& version) {
    out.begin_object();
    out.field("name", version.name);
    out.field("version", std::to_string(version.version));
    out.field("creation_timestamp", version.creation_time_ms);
    out.field("last_updated_timestamp", version.last_updated_time_ms);
    write_optional(out, "user_id", version.user_id);
    out.field("current_stage", stage_name(version.stage));
    write_optional(out, "description", version.description);
    out.field("source", version.source);
    write_optional(out, "run_id", version.run_id);
    out.field("status", model_version_status_name(version.status));
    if (!version.status_message.empty()) out.field("status_message", version.status_message);
    write_tags(out, version.tags);
    write_optional(out, "run_link", version.run_link);
    if (!version.aliases.empty()) {
        out.key("aliases").begin_array();
        for (const std::string& alias : version.aliases) out.text(alias);
        out.end_array();
    }
    out.end_object();
}

void write_registered_model(JsonWriter& out, const RegisteredModel& model) {
    out.begin_object();
    out.field("name", model.name);
    out.field("creation_timestamp", model.creation_time_ms);
    out.field("last_updated_timestamp", model.last_updated_time_ms);
    if (!model.description.empty()) out.field("description", model.description);
    if (!model.latest_versions.empty()) {
        out.key("latest_versions").begin_array();
        for (const ModelVersion& version : model.latest_versions) write_model_version(out, version);
        out.end_array();
    }
    write_tags(out, model.tags);
    if (!model.aliases.empty()) {
        out.key("aliases").begin_array();
        for (const ModelAlias& alias : model.aliases)
            out.begin_object()
                .field("alias", alias.alias)
                .field("version", std::to_string(alias.version))
                .end_object();
        out.end_array();
    }
    out.end_object();
}

std::string registered_models_response(const Page<RegisteredModel>& page) {
    JsonWriter out;
    out.begin_object();
    if (!page.items.empty()) {
        out.key("registered_models").begin_array();
        for (const RegisteredModel& model : page.items) write_registered_model(out, model);
        out.end_array();
    }
    if (!page.next_page_token.empty()) out.field("next_page_token", page.next_page_token);
    out.end_object();
    return out.take();
}

std::string model_versions_response(const std::vector<ModelVersion>& versions,
                                    const std::string& next_page_token) {
    JsonWriter out;
    out.begin_object();
    if (!versions.empty()) {
        out.key("model_versions").begin_array();
        for (const ModelVersion& version : versions) write_model_version(out, version);
        out.end_array();
    }
    if (!next_page_token.empty()) out.field("next_page_token", next_page_token);
    out.end_object();
    return out.take();
}

Result<std::vector<Tag>> registry_tags(const Message& message) {
    TUNE_TRY(items, message.messages("tags"));
    std::vector<Tag> tags;
    for (const Message& item : items) {
        TUNE_TRY(key, item.text("key"));
        TUNE_TRY(value, item.text("value"));
        tags.push_back({std::move(key), std::move(value)});
    }
    return tags;
}

Result<Tag> registry_tag(const Message& message) {
    TUNE_TRY(key, message.required_text("key"));
    TUNE_TRY(value, message.text("value"));
    return Tag{std::move(key), std::move(value)};
}

}  // namespace tune::tracker
