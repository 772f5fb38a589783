// Registry tables gained workspaces and columns over MLflow's versions. A model's rows are those of
// the first workspace that has its name; a column that is missing reads as empty.

#include "tracker/transfer/mlflow_db/read_registry_rows.h"

#include <optional>

#include "tracker/transfer/stored_names.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

/// Reads the rows of one registered model.
class Reader {
public:
    Reader(sqlite::Connection& connection, const Columns& columns, const std::string& name,
           std::int64_t& changed_texts)
        : connection_(connection), columns_(columns), name_(name), changed_texts_(changed_texts) {}

    Result<SourceRegisteredModel> read();

private:
    using Fields = std::vector<std::string_view>;

    std::string text(const sqlite::Statement& row, int column) {
        return clean_text(row.text(column), changed_texts_);
    }
    std::optional<std::string> optional_text(const sqlite::Statement& row, int column) {
        if (row.is_null(column)) return std::nullopt;
        return text(row, column);
    }
    /// The rows of `table` for this name, in its first workspace.
    Result<sqlite::Statement> select(const char* table, const Fields& fields,
                                     const char* condition = "") {
        std::string sql = columns_.select(table, fields) + " WHERE name = ?1";
        if (columns_.has(table, "workspace"))
            sql +=
                " AND workspace = (SELECT min(workspace) FROM registered_models WHERE name = "
                "?1)";
        return connection_.prepare(sql + condition);
    }
    Result<void> read_tags(std::vector<Tag>& tags);
    Result<void> read_aliases(std::vector<ModelAlias>& aliases);
    Result<void> read_versions(const std::string& clean_name, std::vector<ModelVersion>& versions);
    Result<void> read_version_tags(ModelVersion& version);

    sqlite::Connection& connection_;
    const Columns& columns_;
    const std::string& name_;
    std::int64_t& changed_texts_;
};

Result<SourceRegisteredModel> Reader::read() {
    SourceRegisteredModel source;
    RegisteredModel& model = source.model;
    TUNE_TRY(rows,
             select("registered_models", {"creation_time", "last_updated_time", "description"}));
    TUNE_TRY(has_row, rows.with(name_).step());
    if (!has_row) return Error{Code::kDataLoss, "it has vanished during the import"};
    model.name = clean_text(name_, changed_texts_);
    model.creation_time_ms = rows.integer(0);
    model.last_updated_time_ms = rows.integer(1);
    model.description = text(rows, 2);
    TUNE_TRY_VOID(read_tags(model.tags));
    TUNE_TRY_VOID(read_aliases(model.aliases));
    TUNE_TRY_VOID(read_versions(model.name, source.versions));
    return source;
}

Result<void> Reader::read_tags(std::vector<Tag>& tags) {
    if (!columns_.has("registered_model_tags")) return {};
    TUNE_TRY(rows, select("registered_model_tags", {"key", "value"}));
    rows.with(name_);
    for (;;) {
        TUNE_TRY(has_row, rows.step());
        if (!has_row) return {};
        tags.push_back({text(rows, 0), text(rows, 1)});
    }
}

Result<void> Reader::read_aliases(std::vector<ModelAlias>& aliases) {
    if (!columns_.has("registered_model_aliases")) return {};
    TUNE_TRY(rows, select("registered_model_aliases", {"alias", "version"}));
    rows.with(name_);
    for (;;) {
        TUNE_TRY(has_row, rows.step());
        if (!has_row) return {};
        aliases.push_back({text(rows, 0), rows.integer(1)});
    }
}

Result<void> Reader::read_versions(const std::string& clean_name,
                                   std::vector<ModelVersion>& versions) {
    if (!columns_.has("model_versions", "version")) return {};
    TUNE_TRY(rows, select("model_versions",
                          {"version", "creation_time", "last_updated_time", "description",
                           "user_id", "current_stage", "source", "storage_location", "run_id",
                           "run_link", "status", "status_message"},
                          " ORDER BY version"));
    rows.with(name_);
    for (;;) {
        TUNE_TRY(has_row, rows.step());
        if (!has_row) return {};
        ModelVersion version;
        version.name = clean_name;
        version.version = rows.integer(0);
        version.creation_time_ms = rows.integer(1);
        version.last_updated_time_ms = rows.integer(2);
        version.description = optional_text(rows, 3);
        version.user_id = optional_text(rows, 4);
        TUNE_TRY(stage, stored_stage(rows.text(5)));
        version.stage = stage;
        version.source = text(rows, 6);
        version.storage_location = rows.is_null(7) ? version.source : text(rows, 7);
        version.run_id = optional_text(rows, 8);
        version.run_link = optional_text(rows, 9);
        version.status = stored_version_status(rows.text(10));
        version.status_message = text(rows, 11);
        TUNE_TRY_VOID(read_version_tags(version));
        versions.push_back(std::move(version));
    }
}

Result<void> Reader::read_version_tags(ModelVersion& version) {
    if (!columns_.has("model_version_tags", "version")) return {};
    TUNE_TRY(rows, select("model_version_tags", {"key", "value"}, " AND version = ?2"));
    rows.with(name_, version.version);
    for (;;) {
        TUNE_TRY(has_row, rows.step());
        if (!has_row) return {};
        version.tags.push_back({text(rows, 0), text(rows, 1)});
    }
}

}  // namespace

Result<std::vector<std::string>> list_registered_rows(sqlite::Connection& connection,
                                                      const Columns& columns) {
    std::vector<std::string> names;
    if (!columns.has("registered_models", "name")) return names;
    TUNE_TRY(select,
             connection.prepare("SELECT DISTINCT name FROM registered_models ORDER BY name"));
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return names;
        names.emplace_back(select.text(0));
    }
}

Result<SourceRegisteredModel> read_registered_rows(sqlite::Connection& connection,
                                                   const Columns& columns, const std::string& name,
                                                   std::int64_t& changed_texts) {
    return Reader(connection, columns, name, changed_texts).read();
}

}  // namespace tune::tracker
