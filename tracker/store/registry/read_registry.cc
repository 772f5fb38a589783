// The latest version per stage is not stored: it is the end of a range of an index on (model,
// stage, version), so no write has to maintain it. A deleted version keeps its row, under a stage
// that reads leave out.

#include "tracker/store/registry/read_registry.h"

#include <algorithm>
#include <array>

#include "base/text/text.h"
#include "tracker/store/registry/registry_validation.h"

namespace tune::tracker {
namespace {

constexpr std::array kListedStages = {ModelStage::kNone, ModelStage::kStaging,
                                      ModelStage::kProduction, ModelStage::kArchived};

std::optional<std::string> optional_text(const sqlite::Statement& row, int column) {
    if (row.is_null(column)) return std::nullopt;
    return std::string(row.text(column));
}

Result<void> load_tags(sqlite::Connection& connection, const char* sql, std::int64_t row,
                       std::vector<Tag>& tags) {
    TUNE_TRY(select, connection.prepare(sql));
    select.with(row);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        tags.push_back({std::string(select.text(0)), std::string(select.text(1))});
    }
}

Result<std::vector<ModelAlias>> load_aliases(sqlite::Connection& connection,
                                             std::int64_t registered_row) {
    TUNE_TRY(select, connection.prepare("SELECT alias, version FROM registered_model_aliases "
                                        "WHERE registered_row = ? ORDER BY alias"));
    select.with(registered_row);
    std::vector<ModelAlias> aliases;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return aliases;
        aliases.push_back({std::string(select.text(0)), select.integer(1)});
    }
}

struct LatestOfStage {
    ModelStage stage = ModelStage::kNone;
    std::int64_t version_row = 0;
    std::int64_t first_version = 0;
};

/// Each of the four look-ups is the end of a range of an index.
Result<std::vector<LatestOfStage>> latest_of_stages(sqlite::Connection& connection,
                                                    std::int64_t registered_row) {
    std::vector<LatestOfStage> latest;
    TUNE_TRY(select,
             connection.prepare(
                 "SELECT version_row, (SELECT min(version) FROM model_versions WHERE "
                 "registered_row = ?1 AND stage = ?2) FROM model_versions WHERE registered_row = "
                 "?1 AND stage = ?2 ORDER BY version DESC LIMIT 1"));
    for (const ModelStage stage : kListedStages) {
        select.reset();
        select.with(registered_row, static_cast<std::int64_t>(stage));
        TUNE_TRY(has_row, select.step());
        if (has_row) latest.push_back({stage, select.integer(0), select.integer(1)});
    }
    return latest;
}

Error no_version(std::string_view name, std::string_view version) {
    return {Code::kResourceDoesNotExist, "Model Version (name=" + std::string(name) +
                                             ", version=" + std::string(version) + ") not found"};
}

}  // namespace

Error no_registered_model(std::string_view name) {
    return {Code::kResourceDoesNotExist,
            "Registered Model with name=" + std::string(name) + " not found"};
}

Result<std::int64_t> find_registered_row(sqlite::Connection& connection, std::string_view name) {
    TUNE_TRY_VOID(validate_registered_name(name));
    TUNE_TRY(select,
             connection.prepare("SELECT registered_row FROM registered_models WHERE name = ?"));
    TUNE_TRY(has_row, select.with(name).step());
    if (!has_row) return no_registered_model(name);
    return select.integer(0);
}

Result<RegisteredModel> load_registered_model(sqlite::Connection& connection,
                                              std::int64_t registered_row, LatestOrder order) {
    TUNE_TRY(select, connection.prepare("SELECT name, description, creation_time_ms, "
                                        "last_updated_time_ms FROM registered_models WHERE "
                                        "registered_row = ?"));
    TUNE_TRY(has_row, select.with(registered_row).step());
    if (!has_row)
        return Error{Code::kDataLoss, "A registered model's row is missing in the database."};
    RegisteredModel model;
    model.name = select.text(0);
    model.description = select.text(1);
    model.creation_time_ms = select.integer(2);
    model.last_updated_time_ms = select.integer(3);
    TUNE_TRY_VOID(load_tags(connection,
                            "SELECT key, value FROM registered_model_tags WHERE registered_row = ? "
                            "ORDER BY key",
                            registered_row, model.tags));
    TUNE_TRY(aliases, load_aliases(connection, registered_row));
    model.aliases = std::move(aliases);
    TUNE_TRY(latest, latest_versions(connection, registered_row, order, false));
    model.latest_versions = std::move(latest);
    return model;
}

Result<std::optional<std::string>> find_registered_tag(sqlite::Connection& connection,
                                                       std::int64_t registered_row,
                                                       std::string_view key) {
    TUNE_TRY(select, connection.prepare("SELECT value FROM registered_model_tags WHERE "
                                        "registered_row = ? AND key = ?"));
    TUNE_TRY(has_row, select.with(registered_row, key).step());
    if (!has_row) return std::optional<std::string>();
    return std::optional<std::string>(select.text(0));
}

Result<bool> is_prompt_row(sqlite::Connection& connection, std::int64_t registered_row) {
    TUNE_TRY(value, find_registered_tag(connection, registered_row, kIsPromptTag));
    return value.has_value() && lower_ascii(*value) == "true";
}

Result<std::optional<bool>> find_is_prompt(sqlite::Connection& connection, std::string_view name) {
    TUNE_TRY(select,
             connection.prepare("SELECT registered_row FROM registered_models WHERE name = ?"));
    TUNE_TRY(has_row, select.with(name).step());
    if (!has_row) return std::optional<bool>();
    TUNE_TRY(is_prompt, is_prompt_row(connection, select.integer(0)));
    return std::optional(is_prompt);
}

Result<VersionRow> find_version(sqlite::Connection& connection, std::string_view name,
                                std::string_view version) {
    TUNE_TRY_VOID(validate_registered_name(name));
    TUNE_TRY(number, parse_version(version));
    TUNE_TRY(select, connection.prepare(
                         "SELECT v.version_row, v.registered_row FROM registered_models r JOIN "
                         "model_versions v ON v.registered_row = r.registered_row WHERE r.name = ? "
                         "AND v.version = ? AND v.stage <> 4"));
    TUNE_TRY(has_row, select.with(name, number.number).step());
    if (!has_row) return no_version(name, number.text);
    return VersionRow{select.integer(0), select.integer(1), number.number};
}

Result<ModelVersion> load_version(sqlite::Connection& connection, std::int64_t version_row,
                                  bool with_aliases) {
    TUNE_TRY(select,
             connection.prepare("SELECT name, version, creation_time_ms, last_updated_time_ms, "
                                "description, user_id, stage, source, storage_location, run_id, "
                                "run_link, status, status_message, registered_row FROM "
                                "model_versions WHERE version_row = ?"));
    TUNE_TRY(has_row, select.with(version_row).step());
    if (!has_row)
        return Error{Code::kDataLoss, "A model version's row is missing in the database."};
    ModelVersion version;
    version.name = select.text(0);
    version.version = select.integer(1);
    version.creation_time_ms = select.integer(2);
    version.last_updated_time_ms = select.integer(3);
    version.description = optional_text(select, 4);
    version.user_id = optional_text(select, 5);
    version.stage = static_cast<ModelStage>(select.integer(6));
    version.source = select.text(7);
    version.storage_location = select.text(8);
    version.run_id = optional_text(select, 9);
    version.run_link = optional_text(select, 10);
    version.status = static_cast<ModelVersionStatus>(select.integer(11));
    version.status_message = select.text(12);
    TUNE_TRY_VOID(load_tags(connection,
                            "SELECT key, value FROM model_version_tags WHERE version_row = ? "
                            "ORDER BY key",
                            version_row, version.tags));
    if (!with_aliases) return version;
    TUNE_TRY(aliases, load_aliases(connection, select.integer(13)));
    for (ModelAlias& alias : aliases)
        if (alias.version == version.version) version.aliases.push_back(std::move(alias.alias));
    return version;
}

Result<std::vector<ModelVersion>> latest_versions(sqlite::Connection& connection,
                                                  std::int64_t registered_row, LatestOrder order,
                                                  bool with_aliases) {
    TUNE_TRY(latest, latest_of_stages(connection, registered_row));
    std::sort(latest.begin(), latest.end(),
              [order](const LatestOfStage& a, const LatestOfStage& b) {
                  if (order == LatestOrder::kByStageName)
                      return stage_name(a.stage) < stage_name(b.stage);
                  return a.first_version < b.first_version;
              });
    std::vector<ModelVersion> versions;
    for (const LatestOfStage& one : latest) {
        TUNE_TRY(version, load_version(connection, one.version_row, with_aliases));
        versions.push_back(std::move(version));
    }
    return versions;
}

Result<std::vector<ModelVersion>> latest_versions_of_stages(sqlite::Connection& connection,
                                                            std::string_view name,
                                                            std::span<const std::string> stages) {
    TUNE_TRY(row, find_registered_row(connection, name));
    std::vector<ModelStage> wanted;
    for (const std::string& text : stages) {
        TUNE_TRY(stage, parse_stage(text));
        wanted.push_back(stage);
    }
    TUNE_TRY(versions, latest_versions(connection, row, LatestOrder::kByFirstVersion, true));
    std::erase_if(versions, [&](const ModelVersion& version) {
        return !wanted.empty() &&
               std::find(wanted.begin(), wanted.end(), version.stage) == wanted.end();
    });
    return versions;
}

Result<ModelVersion> version_by_alias(sqlite::Connection& connection, std::string_view name,
                                      std::string_view alias) {
    TUNE_TRY_VOID(validate_registered_name(name));
    TUNE_TRY_VOID(validate_alias(alias));
    TUNE_TRY(row, find_registered_row(connection, name));
    const bool is_latest = lower_ascii(alias) == "latest";
    TUNE_TRY(select, connection.prepare(
                         is_latest ? "SELECT version_row, ?2 FROM model_versions WHERE "
                                     "registered_row = ?1 AND stage <> 4 ORDER BY version DESC "
                                     "LIMIT 1"
                                   : "SELECT v.version_row FROM registered_model_aliases a JOIN "
                                     "model_versions v ON v.registered_row = a.registered_row AND "
                                     "v.version = a.version WHERE a.registered_row = ?1 AND "
                                     "a.alias = ?2"));
    TUNE_TRY(has_row, select.with(row, alias).step());
    if (has_row) return load_version(connection, select.integer(0), true);
    if (is_latest)
        return Error{Code::kResourceDoesNotExist,
                     "Latest version not found for model " + std::string(name) + "."};
    return Error{Code::kInvalidParameterValue,
                 "Registered model alias " + std::string(alias) + " not found."};
}

// --- the public face -----------------------------------------------------------------------------

Result<RegisteredModel> get_registered_model(const Store& store, std::string_view name) {
    return store.snapshot([&](sqlite::Connection& connection) -> Result<RegisteredModel> {
        TUNE_TRY(row, find_registered_row(connection, name));
        return load_registered_model(connection, row, LatestOrder::kByFirstVersion);
    });
}

Result<std::vector<ModelVersion>> get_latest_versions(const Store& store, std::string_view name,
                                                      std::span<const std::string> stages) {
    return store.snapshot([&](sqlite::Connection& connection) {
        return latest_versions_of_stages(connection, name, stages);
    });
}

Result<ModelVersion> get_model_version(const Store& store, std::string_view name,
                                       std::string_view version) {
    return store.snapshot([&](sqlite::Connection& connection) -> Result<ModelVersion> {
        TUNE_TRY(row, find_version(connection, name, version));
        return load_version(connection, row.version_row, true);
    });
}

Result<ModelVersion> get_model_version_by_alias(const Store& store, std::string_view name,
                                                std::string_view alias) {
    return store.snapshot(
        [&](sqlite::Connection& connection) { return version_by_alias(connection, name, alias); });
}

Result<std::string> get_download_uri(const Store& store, std::string_view name,
                                     std::string_view version) {
    return store.snapshot([&](sqlite::Connection& connection) -> Result<std::string> {
        TUNE_TRY(row, find_version(connection, name, version));
        TUNE_TRY(found, load_version(connection, row.version_row, false));
        return std::move(found.storage_location);
    });
}

}  // namespace tune::tracker
