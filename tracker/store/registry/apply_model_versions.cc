// Two things must stay in step within one transaction: the count of versions tagged as prompts,
// from which the visibility of all versions of a model follows, and the logged model's tag that
// lists its versions. Whatever writes or removes a prompt tag therefore goes through
// count_prompt_versions. The order of checks is MLflow's, since it decides which error a client
// sees.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/uri.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/reads/read_logged_models.h"
#include "tracker/store/registry/apply_registry.h"
#include "tracker/store/registry/model_source.h"
#include "tracker/store/registry/read_registry.h"
#include "tracker/store/registry/registry_validation.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

struct LoggedModelSource {
    std::int64_t model_row = 0;
    ExperimentId experiment_id = 0;
    std::string artifact_uri;
    std::string source_run_id;
};

/// Nothing when it does not exist or is deleted.
Result<std::optional<LoggedModelSource>> find_logged_model(WriteContext& context,
                                                           std::string_view model_id) {
    TUNE_TRY(select, context.connection.prepare(
                         "SELECT model_row, experiment_id, artifact_uri, source_run_id FROM "
                         "logged_models WHERE model_id = ? AND life = 0"));
    TUNE_TRY(has_row, select.with(model_id).step());
    if (!has_row) return std::optional<LoggedModelSource>();
    return std::optional(LoggedModelSource{select.integer(0), select.integer(1),
                                           std::string(select.text(2)),
                                           std::string(select.text(3))});
}

Result<LoggedModelSource> require_logged_model(WriteContext& context, const std::string& model_id) {
    TUNE_TRY(found, find_logged_model(context, model_id));
    if (!found) return no_logged_model(model_id);
    return std::move(*found);
}

/// Where the files of a source lie; a logged model also lends its run to a version without one.
/// REQUIRES: source.run_id.
Result<std::string> resolve_storage(WriteContext& context, ModelSource& source) {
    if (split_uri(source.source).scheme != "models") return source.source;
    const std::optional<ModelUri> uri = parse_model_uri(source.source);
    if (!uri) return source.source;
    if (uri->model_id.empty()) {
        TUNE_TRY(row, find_version(context.connection, uri->name, uri->version));
        TUNE_TRY(version, load_version(context.connection, row.version_row, false));
        return std::move(version.storage_location);
    }
    TUNE_TRY(model, find_logged_model(context, uri->model_id));
    if (!model)
        return Error{Code::kResourceDoesNotExist,
                     "Unable to fetch model from model URI source artifact location '" +
                         source.source + "'.Error: " + no_logged_model(uri->model_id).message};
    if (source.run_id->empty()) source.run_id = model->source_run_id;
    return std::move(model->artifact_uri);
}

/// JSON as Python's json.dumps prints it, for lists of flat objects.
std::string python_json(const Json& list) {
    std::string text;
    for (const Json& item : list) {
        std::string object;
        for (const auto& [key, value] : item.items())
            object += (object.empty() ? "" : ", ") + Json(key).dump() + ": " +
                      value.dump(-1, ' ', true, Json::error_handler_t::replace);
        text += (text.empty() ? "{" : ", {") + object + "}";
    }
    return "[" + text + "]";
}

/// Notes the version in the logged model's tag mlflow.modelVersions.
Result<void> note_version(WriteContext& context, const LoggedModelSource& model,
                          const std::string& model_id, const std::string& name,
                          std::int64_t version) {
    TUNE_TRY(select, context.connection.prepare("SELECT value FROM logged_model_tags WHERE "
                                                "model_row = ? AND key = ?"));
    TUNE_TRY(has_row, select.with(model.model_row, kModelVersionsTag).step());
    Json versions = Json::array();
    if (has_row) {
        const Result<Json> old = parse_json(select.text(0));
        const bool is_list = old && old->is_array() &&
                             std::all_of(old->begin(), old->end(),
                                         [](const Json& item) { return item.is_object(); });
        if (is_list) versions = *old;
    }
    const Json mention = {{"name", name}, {"version", version}};
    if (std::find(versions.begin(), versions.end(), mention) == versions.end())
        versions.push_back(mention);
    const std::string text = python_json(versions);
    TUNE_TRY(put, context.connection.prepare("INSERT INTO logged_model_tags VALUES (?, ?, ?) ON "
                                             "CONFLICT DO UPDATE SET value = excluded.value"));
    TUNE_TRY_VOID(put.with(model.model_row, kModelVersionsTag, text).run());
    context.events.push_back(LoggedModelChanged{model_id, model.experiment_id});
    return {};
}

/// Versions of the registered model that are tagged as prompts grew by `growth`. With the first and
/// the last of them all its versions change shelves.
Result<void> count_prompt_versions(WriteContext& context, std::int64_t registered_row, int growth) {
    if (growth == 0) return {};
    TUNE_TRY(count, context.connection.prepare("UPDATE registered_models SET prompt_version_count "
                                               "= prompt_version_count + ?2 WHERE "
                                               "registered_row = ?1 RETURNING "
                                               "prompt_version_count"));
    TUNE_TRY(has_row, count.with(registered_row, std::int64_t{growth}).step());
    const std::int64_t now_tagged = has_row ? count.integer(0) : 0;
    count.reset();
    if (now_tagged > 1 || (now_tagged == 1 && growth < 0)) return {};
    TUNE_TRY(move, context.connection.prepare("UPDATE model_versions SET visibility = ?2 WHERE "
                                              "registered_row = ?1 AND stage <> 4"));
    return move.with(registered_row, std::int64_t{now_tagged > 0}).run();
}

Result<std::optional<std::string>> find_version_tag(WriteContext& context, std::int64_t version_row,
                                                    std::string_view key) {
    TUNE_TRY(select, context.connection.prepare("SELECT value FROM model_version_tags WHERE "
                                                "version_row = ? AND key = ?"));
    TUNE_TRY(has_row, select.with(version_row, key).step());
    if (!has_row) return std::optional<std::string>();
    return std::optional<std::string>(select.text(0));
}

/// 1 if a tag of this value hides a model from searches.
int hides(const std::optional<std::string>& value) {
    return value == "true" ? 1 : 0;
}

Result<void> put_tag(WriteContext& context, const VersionRow& row, const Tag& tag) {
    int growth = 0;
    if (tag.key == kIsPromptTag) {
        TUNE_TRY(old, find_version_tag(context, row.version_row, tag.key));
        growth = hides(tag.value) - hides(old);
    }
    TUNE_TRY(put, context.connection.prepare("INSERT INTO model_version_tags VALUES (?, ?, ?) "
                                             "ON CONFLICT DO UPDATE SET value = excluded.value"));
    TUNE_TRY_VOID(put.with(row.version_row, tag.key, tag.value).run());
    return count_prompt_versions(context, row.registered_row, growth);
}

void bind_optional(sqlite::Statement& statement, int index,
                   const std::optional<std::string>& text) {
    if (text) {
        statement.bind(index, *text);
    } else {
        statement.bind_null(index);
    }
}

/// The row of the new version. Its visibility is that of its model until a tag says otherwise.
Result<VersionRow> insert_version(WriteContext& context, std::int64_t registered_row,
                                  const CreateModelVersion& command, const ModelSource& source,
                                  const std::string& storage_location) {
    TUNE_TRY(next, context.connection.prepare("SELECT coalesce(max(version), 0) + 1 FROM "
                                              "model_versions WHERE registered_row = ?"));
    TUNE_TRY(has_row, next.with(registered_row).step());
    const std::int64_t version = has_row ? next.integer(0) : 1;
    TUNE_TRY(
        insert,
        context.connection.prepare(
            "INSERT INTO model_versions (registered_row, name, version, creation_time_ms, "
            "last_updated_time_ms, description, stage, source, storage_location, run_id, "
            "run_link, status, status_message, visibility) VALUES (?1, ?2, ?3, ?4, ?4, ?5, 0, ?6, "
            "?7, ?8, ?9, 3, '', (SELECT prompt_version_count > 0 FROM registered_models WHERE "
            "registered_row = ?1))"));
    const std::int64_t now_ms = context.clock.now_ms();
    insert.with(registered_row, command.name, version, now_ms, command.description, source.source,
                storage_location);
    bind_optional(insert, 8, source.run_id);
    insert.bind(9, command.run_link);
    TUNE_TRY_VOID(insert.run());
    const VersionRow row{context.connection.last_insert_row(), registered_row, version};
    TUNE_TRY_VOID(touch_registered(context, registered_row, now_ms));
    return row;
}

RegistryChanged change_of(RegistryEntity entity, RegistryAction action, bool is_of_prompt,
                          std::string name, std::int64_t version) {
    RegistryChanged event;
    event.entity = entity;
    event.action = action;
    event.is_prompt = is_of_prompt;
    event.name = std::move(name);
    event.version = version;
    return event;
}

/// Reads the version back after a change of it, which it announces.
Result<Outcome> read_back(WriteContext& context, const VersionRow& row) {
    TUNE_TRY(version, load_version(context.connection, row.version_row, true));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row.registered_row));
    RegistryChanged event = change_of(RegistryEntity::kVersion, RegistryAction::kUpdated,
                                      is_of_prompt, version.name, version.version);
    event.description = version.description.value_or("");
    event.stage = stage_name(version.stage);
    context.events.push_back(std::move(event));
    return Outcome(std::move(version));
}

}  // namespace

Result<Outcome> apply(WriteContext& context, CreateModelVersion& command) {
    TUNE_TRY(source, validate_model_source(context.connection, command));
    // Not given is empty, as in protobuf.
    if (!source.run_id) source.run_id = "";
    const std::string announced_run_id = *source.run_id;
    TUNE_TRY_VOID(validate_registered_name(command.name));
    for (const Tag& tag : command.tags) TUNE_TRY_VOID(validate_version_tag(tag));
    TUNE_TRY(storage_location, resolve_storage(context, source));
    const std::string model_id = source.model_id.value_or("");
    std::optional<LoggedModelSource> logged_model;
    // As in MLflow, a model that lends its run is looked at before the registered model.
    if (!model_id.empty() && source.run_id->empty()) {
        TUNE_TRY(found, require_logged_model(context, model_id));
        source.run_id = found.source_run_id;
        logged_model = std::move(found);
    }
    TUNE_TRY(registered_row, find_registered_row(context.connection, command.name));
    if (!model_id.empty() && !logged_model) {
        TUNE_TRY(found, require_logged_model(context, model_id));
        logged_model = std::move(found);
    }
    TUNE_TRY(row, insert_version(context, registered_row, command, source, storage_location));
    std::vector<Tag> tags = last_of_each_key(command.tags);
    for (const Tag& tag : tags) TUNE_TRY_VOID(put_tag(context, row, tag));
    const bool is_of_prompt = is_prompt(command.tags);
    if (logged_model && !is_of_prompt)
        TUNE_TRY_VOID(note_version(context, *logged_model, model_id, command.name, row.version));
    RegistryChanged event = change_of(RegistryEntity::kVersion, RegistryAction::kCreated,
                                      is_of_prompt, command.name, row.version);
    event.description = command.description;
    event.source = source.source;
    event.run_id = announced_run_id;
    event.tags = std::move(tags);
    context.events.push_back(std::move(event));
    TUNE_TRY(version, load_version(context.connection, row.version_row, true));
    return Outcome(std::move(version));
}

Result<Outcome> apply(WriteContext& context, UpdateModelVersion& command) {
    TUNE_TRY(row, find_version(context.connection, command.name, command.version));
    TUNE_TRY(update, context.connection.prepare("UPDATE model_versions SET description = ?2, "
                                                "last_updated_time_ms = ?3 WHERE "
                                                "version_row = ?1"));
    update.bind(1, row.version_row);
    bind_optional(update, 2, command.description);
    update.bind(3, context.clock.now_ms());
    TUNE_TRY_VOID(update.run());
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, TransitionModelVersionStage& command) {
    TUNE_TRY(stage, parse_stage(command.stage));
    const bool is_active = stage == ModelStage::kStaging || stage == ModelStage::kProduction;
    if (command.archive_existing_versions && !is_active)
        return Error{Code::kInvalidParameterValue,
                     "Model version transition cannot archive existing model versions because '" +
                         command.stage +
                         "' is not an Active stage. Valid stages are ['Staging', 'Production']"};
    TUNE_TRY(row, find_version(context.connection, command.name, command.version));
    const std::int64_t now_ms = context.clock.now_ms();
    if (command.archive_existing_versions) {
        TUNE_TRY(archive,
                 context.connection.prepare("UPDATE model_versions SET stage = 3, "
                                            "last_updated_time_ms = ?4 WHERE registered_row = ?1 "
                                            "AND stage = ?2 AND version <> ?3"));
        archive.with(row.registered_row, static_cast<std::int64_t>(stage), row.version, now_ms);
        TUNE_TRY_VOID(archive.run());
    }
    TUNE_TRY(update, context.connection.prepare("UPDATE model_versions SET stage = ?2, "
                                                "last_updated_time_ms = ?3 WHERE "
                                                "version_row = ?1"));
    TUNE_TRY_VOID(update.with(row.version_row, static_cast<std::int64_t>(stage), now_ms).run());
    TUNE_TRY_VOID(touch_registered(context, row.registered_row, now_ms));
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, DeleteModelVersion& command) {
    TUNE_TRY_VOID(parse_version(command.version));
    TUNE_TRY(row, find_version(context.connection, command.name, command.version));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row.registered_row));
    const std::int64_t now_ms = context.clock.now_ms();
    TUNE_TRY(forget, context.connection.prepare("DELETE FROM registered_model_aliases WHERE "
                                                "registered_row = ? AND version = ?"));
    TUNE_TRY_VOID(forget.with(row.registered_row, row.version).run());
    // The tags stay, as in MLflow: a prompt's deleted versions still hide its name.
    TUNE_TRY(redact,
             context.connection.prepare(
                 "UPDATE model_versions SET stage = 4, visibility = 2, last_updated_time_ms = ?2, "
                 "description = NULL, user_id = NULL, source = 'REDACTED-SOURCE-PATH', "
                 "storage_location = '', run_id = 'REDACTED-RUN-ID', run_link = "
                 "'REDACTED-RUN-LINK', status_message = '' WHERE version_row = ?1"));
    TUNE_TRY_VOID(redact.with(row.version_row, now_ms).run());
    TUNE_TRY_VOID(touch_registered(context, row.registered_row, now_ms));
    context.events.push_back(change_of(RegistryEntity::kVersion, RegistryAction::kDeleted,
                                       is_of_prompt, command.name, row.version));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SetModelVersionTag& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    TUNE_TRY_VOID(parse_version(command.version));
    TUNE_TRY_VOID(validate_version_tag(command.tag));
    TUNE_TRY(row, find_version(context.connection, command.name, command.version));
    TUNE_TRY_VOID(put_tag(context, row, command.tag));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row.registered_row));
    RegistryChanged event = change_of(RegistryEntity::kVersionTag, RegistryAction::kSet,
                                      is_of_prompt, command.name, row.version);
    event.key = command.tag.key;
    event.value = command.tag.value;
    context.events.push_back(std::move(event));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteModelVersionTag& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    TUNE_TRY_VOID(parse_version(command.version));
    TUNE_TRY_VOID(validate_key(command.key, "key"));
    TUNE_TRY(row, find_version(context.connection, command.name, command.version));
    TUNE_TRY(old, find_version_tag(context, row.version_row, command.key));
    if (!old) return Outcome{};
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM model_version_tags WHERE "
                                               "version_row = ? AND key = ?"));
    TUNE_TRY_VOID(erase.with(row.version_row, command.key).run());
    if (command.key == kIsPromptTag)
        TUNE_TRY_VOID(count_prompt_versions(context, row.registered_row, -hides(old)));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row.registered_row));
    RegistryChanged event = change_of(RegistryEntity::kVersionTag, RegistryAction::kDeleted,
                                      is_of_prompt, command.name, row.version);
    event.key = command.key;
    context.events.push_back(std::move(event));
    return Outcome{};
}

}  // namespace tune::tracker
