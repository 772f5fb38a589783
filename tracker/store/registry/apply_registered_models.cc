// Models and prompts share one table of names in MLflow: a prompt is a model with the prompt tag.
// The column is_prompt repeats that tag for the index of searches; the commands that set or delete
// the tag write both in one transaction. Versions refer to their model by row, so a rename touches
// one row.

#include "base/text/python_text.h"
#include "base/text/text.h"
#include "tracker/store/commands/validation.h"
#include "tracker/store/permissions/apply_permissions.h"
#include "tracker/store/registry/apply_registry.h"
#include "tracker/store/registry/read_registry.h"
#include "tracker/store/registry/registry_validation.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

bool has_prompt_tag(const std::vector<Tag>& tags) {
    for (const Tag& tag : tags)
        if (tag.key == kIsPromptTag) return true;
    return false;
}

/// What the name of an existing model is taken by, against what was to be made.
Error name_is_taken(const std::string& name, bool is_old_prompt, bool is_new_prompt) {
    const auto kind = [](bool is_prompt_kind) {
        return std::string(is_prompt_kind ? "Prompt" : "Registered Model");
    };
    if (is_old_prompt == is_new_prompt)
        return {Code::kResourceAlreadyExists,
                kind(is_new_prompt) + " (name=" + name + ") already exists."};
    return {Code::kResourceAlreadyExists,
            "Tried to create a " + lower_ascii(kind(is_new_prompt)) + " with name " +
                python_repr(name) + ", but the name is already taken by a " +
                lower_ascii(kind(is_old_prompt)) +
                ". MLflow does not allow creating a model and a prompt with the same name."};
}

Result<Outcome> read_back(WriteContext& context, std::int64_t row) {
    TUNE_TRY(model, load_registered_model(context.connection, row, LatestOrder::kByFirstVersion));
    return Outcome(std::move(model));
}

/// Writes a tag and keeps is_prompt in step with it.
Result<void> put_registered_tag(WriteContext& context, std::int64_t row, const Tag& tag) {
    TUNE_TRY(put, context.connection.prepare("INSERT INTO registered_model_tags VALUES (?, ?, ?) "
                                             "ON CONFLICT DO UPDATE SET value = excluded.value"));
    TUNE_TRY_VOID(put.with(row, tag.key, tag.value).run());
    if (tag.key != kIsPromptTag) return {};
    context.permissions_changed = true;  // other grants are about it from now on
    TUNE_TRY(mark, context.connection.prepare("UPDATE registered_models SET is_prompt = ? "
                                              "WHERE registered_row = ?"));
    return mark.with(std::int64_t{tag.value == "true"}, row).run();
}

RegistryChanged change_of(RegistryEntity entity, RegistryAction action, bool is_of_prompt,
                          std::string name) {
    RegistryChanged event;
    event.entity = entity;
    event.action = action;
    event.is_prompt = is_of_prompt;
    event.name = std::move(name);
    return event;
}

}  // namespace

std::vector<Tag> last_of_each_key(const std::vector<Tag>& tags) {
    std::vector<Tag> unique;
    TextMap<std::size_t> places;
    for (const Tag& tag : tags) {
        const auto [place, is_new] = places.emplace(tag.key, unique.size());
        if (is_new) {
            unique.push_back(tag);
        } else {
            unique[place->second].value = tag.value;
        }
    }
    return unique;
}

Result<void> touch_registered(WriteContext& context, std::int64_t registered_row,
                              std::int64_t now_ms) {
    TUNE_TRY(update, context.connection.prepare("UPDATE registered_models SET "
                                                "last_updated_time_ms = ?2 WHERE "
                                                "registered_row = ?1"));
    return update.with(registered_row, now_ms).run();
}

Result<Outcome> apply(WriteContext& context, RegistryCommand& command) {
    return std::visit([&](auto& one) { return apply(context, one); },
                      static_cast<RegistryCommandVariant&>(command));
}

Result<Outcome> apply(WriteContext& context, CreateRegisteredModel& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    for (const Tag& tag : command.tags) TUNE_TRY_VOID(validate_registered_tag(tag));
    TUNE_TRY(select, context.connection.prepare("SELECT registered_row FROM registered_models "
                                                "WHERE name = ?"));
    TUNE_TRY(has_row, select.with(command.name).step());
    if (has_row) {
        TUNE_TRY(old, find_registered_tag(context.connection, select.integer(0), kIsPromptTag));
        return name_is_taken(command.name, old.has_value(), has_prompt_tag(command.tags));
    }
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO registered_models (name, description, "
                                                "creation_time_ms, last_updated_time_ms, "
                                                "is_prompt, prompt_version_count) VALUES (?1, ?2, "
                                                "?3, ?3, 0, 0)"));
    insert.with(command.name, command.description, context.clock.now_ms());
    TUNE_TRY_VOID(insert.run());
    const std::int64_t row = context.connection.last_insert_row();
    std::vector<Tag> tags = last_of_each_key(command.tags);
    for (const Tag& tag : tags) TUNE_TRY_VOID(put_registered_tag(context, row, tag));
    const ResourceType type =
        is_prompt(command.tags) ? ResourceType::kPrompt : ResourceType::kRegisteredModel;
    TUNE_TRY_VOID(grant_owner(context, command.owner_id, type, command.name));
    RegistryChanged event = change_of(RegistryEntity::kModel, RegistryAction::kCreated,
                                      is_prompt(command.tags), command.name);
    event.description = command.description;
    event.tags = std::move(tags);
    context.events.push_back(std::move(event));
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, RenameRegisteredModel& command) {
    if (command.new_name.find_first_not_of(" \t\n\v\f\r\x1c\x1d\x1e\x1f") == std::string::npos)
        return missing_value("new_name");
    TUNE_TRY_VOID(validate_registered_name(command.new_name));
    TUNE_TRY(row, find_registered_row(context.connection, command.name));
    TUNE_TRY(select, context.connection.prepare("SELECT 1 FROM registered_models WHERE name = ? "
                                                "AND registered_row <> ?"));
    TUNE_TRY(is_taken, select.with(command.new_name, row).step());
    if (is_taken)
        return Error{Code::kResourceAlreadyExists,
                     "Registered Model (name=" + command.new_name + ") already exists."};
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row));
    const std::int64_t now_ms = context.clock.now_ms();
    TUNE_TRY(rename, context.connection.prepare("UPDATE registered_models SET name = ?2, "
                                                "last_updated_time_ms = ?3 WHERE "
                                                "registered_row = ?1"));
    TUNE_TRY_VOID(rename.with(row, command.new_name, now_ms).run());
    TUNE_TRY(rename_versions,
             context.connection.prepare("UPDATE model_versions SET name = ?2, "
                                        "last_updated_time_ms = ?3 WHERE registered_row = ?1"));
    TUNE_TRY_VOID(rename_versions.with(row, command.new_name, now_ms).run());
    for (const ResourceType type : {ResourceType::kRegisteredModel, ResourceType::kPrompt})
        TUNE_TRY_VOID(rename_grants(context, type, command.name, command.new_name));
    RegistryChanged event =
        change_of(RegistryEntity::kModel, RegistryAction::kUpdated, is_of_prompt, command.new_name);
    event.old_name = command.name;
    context.events.push_back(std::move(event));
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, UpdateRegisteredModel& command) {
    TUNE_TRY(row, find_registered_row(context.connection, command.name));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row));
    TUNE_TRY(update, context.connection.prepare("UPDATE registered_models SET description = ?2, "
                                                "last_updated_time_ms = ?3 WHERE "
                                                "registered_row = ?1"));
    TUNE_TRY_VOID(update.with(row, command.description, context.clock.now_ms()).run());
    RegistryChanged event =
        change_of(RegistryEntity::kModel, RegistryAction::kUpdated, is_of_prompt, command.name);
    event.description = command.description;
    context.events.push_back(std::move(event));
    return read_back(context, row);
}

Result<Outcome> apply(WriteContext& context, DeleteRegisteredModel& command) {
    TUNE_TRY(row, find_registered_row(context.connection, command.name));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row));
    for (const char* sql :
         {"DELETE FROM model_version_tags WHERE version_row IN (SELECT version_row FROM "
          "model_versions WHERE registered_row = ?)",
          "DELETE FROM model_versions WHERE registered_row = ?",
          "DELETE FROM registered_model_aliases WHERE registered_row = ?",
          "DELETE FROM registered_model_tags WHERE registered_row = ?",
          "DELETE FROM registered_models WHERE registered_row = ?"}) {
        TUNE_TRY(erase, context.connection.prepare(sql));
        TUNE_TRY_VOID(erase.with(row).run());
    }
    for (const ResourceType type : {ResourceType::kRegisteredModel, ResourceType::kPrompt})
        TUNE_TRY_VOID(drop_grants(context, type, command.name));
    context.events.push_back(
        change_of(RegistryEntity::kModel, RegistryAction::kDeleted, is_of_prompt, command.name));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SetRegisteredModelTag& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    TUNE_TRY_VOID(validate_registered_tag(command.tag));
    TUNE_TRY(row, find_registered_row(context.connection, command.name));
    TUNE_TRY_VOID(put_registered_tag(context, row, command.tag));
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row));
    RegistryChanged event =
        change_of(RegistryEntity::kModelTag, RegistryAction::kSet, is_of_prompt, command.name);
    event.key = command.tag.key;
    event.value = command.tag.value;
    context.events.push_back(std::move(event));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteRegisteredModelTag& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    TUNE_TRY_VOID(validate_key(command.key, "key"));
    TUNE_TRY(row, find_registered_row(context.connection, command.name));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM registered_model_tags WHERE "
                                               "registered_row = ? AND key = ?"));
    TUNE_TRY_VOID(erase.with(row, command.key).run());
    if (context.connection.changed_rows() == 0) return Outcome{};
    if (command.key == kIsPromptTag) {
        context.permissions_changed = true;
        TUNE_TRY(mark, context.connection.prepare("UPDATE registered_models SET is_prompt = 0 "
                                                  "WHERE registered_row = ?"));
        TUNE_TRY_VOID(mark.with(row).run());
    }
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row));
    RegistryChanged event =
        change_of(RegistryEntity::kModelTag, RegistryAction::kDeleted, is_of_prompt, command.name);
    event.key = command.key;
    context.events.push_back(std::move(event));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SetRegisteredModelAlias& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    TUNE_TRY_VOID(validate_alias(command.alias));
    TUNE_TRY_VOID(validate_alias_is_free(command.alias));
    TUNE_TRY(version, find_version(context.connection, command.name, command.version));
    TUNE_TRY(put,
             context.connection.prepare("INSERT INTO registered_model_aliases VALUES (?, ?, ?) "
                                        "ON CONFLICT DO UPDATE SET version = excluded.version"));
    TUNE_TRY_VOID(put.with(version.registered_row, command.alias, version.version).run());
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, version.registered_row));
    RegistryChanged event =
        change_of(RegistryEntity::kAlias, RegistryAction::kCreated, is_of_prompt, command.name);
    event.alias = command.alias;
    event.version = version.version;
    context.events.push_back(std::move(event));
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, DeleteRegisteredModelAlias& command) {
    TUNE_TRY_VOID(validate_registered_name(command.name));
    TUNE_TRY_VOID(validate_alias(command.alias));
    TUNE_TRY(row, find_registered_row(context.connection, command.name));
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM registered_model_aliases WHERE "
                                               "registered_row = ? AND alias = ?"));
    TUNE_TRY_VOID(erase.with(row, command.alias).run());
    if (context.connection.changed_rows() == 0) return Outcome{};
    TUNE_TRY(is_of_prompt, is_prompt_row(context.connection, row));
    RegistryChanged event =
        change_of(RegistryEntity::kAlias, RegistryAction::kDeleted, is_of_prompt, command.name);
    event.alias = command.alias;
    context.events.push_back(std::move(event));
    return Outcome{};
}

}  // namespace tune::tracker
