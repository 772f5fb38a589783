// Registered models of other stores (import_commands.h). A model replaces the one of its name as a
// whole, in one transaction: versions, tags and aliases are erased and written again, so an import
// that is repeated leaves what one would.

#include "tracker/store/registry/registry_validation.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

/// model_versions.visibility, as migrations/0003_registry.sql has it.
enum class Visibility : std::int64_t { kFound = 0, kOfPrompt = 1, kDeleted = 2 };

Result<void> erase_rows(WriteContext& context, const char* sql, std::int64_t row) {
    TUNE_TRY(statement, context.connection.prepare(sql));
    return statement.with(row).run();
}

Result<void> erase_registered(WriteContext& context, std::int64_t row) {
    for (const char* sql :
         {"DELETE FROM model_version_tags WHERE version_row IN (SELECT version_row FROM "
          "model_versions WHERE registered_row = ?)",
          "DELETE FROM model_versions WHERE registered_row = ?",
          "DELETE FROM registered_model_aliases WHERE registered_row = ?",
          "DELETE FROM registered_model_tags WHERE registered_row = ?",
          "DELETE FROM registered_models WHERE registered_row = ?"})
        TUNE_TRY_VOID(erase_rows(context, sql, row));
    return {};
}

Result<std::int64_t> insert_registered(WriteContext& context, const RegisteredModel& model,
                                       std::int64_t prompt_versions) {
    TUNE_TRY(insert, context.connection.prepare(
                         "INSERT INTO registered_models (name, description, creation_time_ms, "
                         "last_updated_time_ms, is_prompt, prompt_version_count) "
                         "VALUES (?, ?, ?, ?, ?, ?)"));
    insert.with(model.name, model.description, model.creation_time_ms, model.last_updated_time_ms,
                std::int64_t{is_prompt(model.tags)}, prompt_versions);
    TUNE_TRY_VOID(insert.run());
    const std::int64_t row = context.connection.last_insert_row();
    for (const Tag& tag : model.tags) {
        TUNE_TRY(put, context.connection.prepare("INSERT OR REPLACE INTO registered_model_tags "
                                                 "VALUES (?, ?, ?)"));
        TUNE_TRY_VOID(put.with(row, tag.key, tag.value).run());
    }
    for (const ModelAlias& alias : model.aliases) {
        TUNE_TRY(put, context.connection.prepare("INSERT OR REPLACE INTO registered_model_aliases "
                                                 "VALUES (?, ?, ?)"));
        TUNE_TRY_VOID(put.with(row, alias.alias, alias.version).run());
    }
    return row;
}

void bind_if_set(sqlite::Statement& statement, int index, const std::optional<std::string>& text) {
    if (text) statement.bind(index, *text);
}

Result<void> insert_version(WriteContext& context, std::int64_t registered_row,
                            const RegisteredModel& model, const ModelVersion& version,
                            Visibility visibility) {
    TUNE_TRY(insert,
             context.connection.prepare(
                 "INSERT INTO model_versions (registered_row, name, version, "
                 "creation_time_ms, last_updated_time_ms, description, user_id, stage, "
                 "source, storage_location, run_id, run_link, status, status_message, "
                 "visibility) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "
                 "?14, ?15)"));
    insert.with(registered_row, model.name, version.version, version.creation_time_ms,
                version.last_updated_time_ms);
    bind_if_set(insert, 6, version.description);
    bind_if_set(insert, 7, version.user_id);
    insert.bind(8, static_cast<std::int64_t>(version.stage));
    insert.bind(9, version.source);
    insert.bind(10, version.storage_location);
    bind_if_set(insert, 11, version.run_id);
    bind_if_set(insert, 12, version.run_link);
    insert.bind(13, static_cast<std::int64_t>(version.status));
    insert.bind(14, version.status_message);
    insert.bind(15, static_cast<std::int64_t>(visibility));
    TUNE_TRY_VOID(insert.run());
    const std::int64_t row = context.connection.last_insert_row();
    for (const Tag& tag : version.tags) {
        TUNE_TRY(put, context.connection.prepare("INSERT OR REPLACE INTO model_version_tags "
                                                 "VALUES (?, ?, ?)"));
        TUNE_TRY_VOID(put.with(row, tag.key, tag.value).run());
    }
    return {};
}

}  // namespace

Result<Outcome> apply(WriteContext& context, ImportRegisteredModel& command) {
    TUNE_TRY_VOID(validate_registered_name(command.model.name));
    TUNE_TRY(select, context.connection.prepare("SELECT registered_row FROM registered_models "
                                                "WHERE name = ?"));
    TUNE_TRY(is_known, select.with(command.model.name).step());
    const std::int64_t known = is_known ? select.integer(0) : 0;
    select.reset();
    if (is_known && !command.is_update)
        return Error{Code::kResourceAlreadyExists,
                     "Registered Model (name=" + command.model.name + ") already exists."};
    if (is_known) TUNE_TRY_VOID(erase_registered(context, known));
    std::int64_t prompt_versions = 0;
    for (const ModelVersion& version : command.versions)
        prompt_versions += is_prompt(version.tags) ? 1 : 0;
    TUNE_TRY(row, insert_registered(context, command.model, prompt_versions));
    for (const ModelVersion& version : command.versions) {
        Visibility visibility = prompt_versions > 0 ? Visibility::kOfPrompt : Visibility::kFound;
        if (version.stage == ModelStage::kDeleted) visibility = Visibility::kDeleted;
        TUNE_TRY_VOID(insert_version(context, row, command.model, version, visibility));
    }
    return Outcome{};
}

}  // namespace tune::tracker
