#include "tracker/store/migrations/schema.h"

#include <array>
#include <string>

#include "tracker/sqlite/transaction.h"
#include "tracker/store/metrics/metric_extrema.h"
#include "tracker/store/metrics/metric_spans.h"

namespace tune::tracker {
namespace {

struct Migration {
    int version;
    const char* file_name;
    const char* sql;
};

constexpr Migration kMigrations[] = {
#include "migrations.inc"  // made by embed_migrations.cmake from migrations/*.sql
};

Result<bool> has_table(sqlite::Connection& connection, std::string_view name) {
    TUNE_TRY(select, connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' "
                                        "AND name = ?"));
    return select.with(name).step();
}

/// 0 for an empty database.
Result<int> read_version(sqlite::Connection& connection) {
    TUNE_TRY(is_ours, has_table(connection, "schema_version"));
    if (is_ours) {
        TUNE_TRY(select, connection.prepare("SELECT max(version) FROM schema_version"));
        TUNE_TRY(has_row, select.step());
        return has_row ? static_cast<int>(select.integer(0)) : 0;
    }
    TUNE_TRY(select, connection.prepare("SELECT name FROM sqlite_schema LIMIT 1"));
    TUNE_TRY(is_foreign, select.step());
    if (is_foreign)
        return Error{Code::kInvalidState,
                     "'" + connection.path() + "' is a database of another program (table '" +
                         std::string(select.text(0)) + "'); choose another data directory."};
    return 0;
}

Result<void> apply(sqlite::Connection& connection, const Migration& migration, const Clock& clock) {
    TUNE_TRY(transaction, sqlite::Transaction::begin_write(connection));
    TUNE_TRY_VOID(connection.execute(migration.sql));
    TUNE_TRY(insert, connection.prepare("INSERT INTO schema_version VALUES (?, ?)"));
    TUNE_TRY_VOID(insert.with(std::int64_t{migration.version}, clock.now_ms()).run());
    if (migration.version == 1) {
        TUNE_TRY_VOID(connection.execute("INSERT INTO commit_position VALUES (1, 0)"));
    }
    if (std::string_view(migration.file_name).ends_with("_metric_extrema.sql"))
        TUNE_TRY_VOID(fill_extrema(connection));
    if (std::string_view(migration.file_name).ends_with("_metric_spans.sql"))
        TUNE_TRY_VOID(fill_spans(connection));
    return transaction.commit();
}

}  // namespace

int schema_version() {
    return std::end(kMigrations)[-1].version;
}

Result<int> stored_schema_version(sqlite::Connection& connection) {
    return read_version(connection);
}

Result<void> migrate(sqlite::Connection& connection, const Clock& clock) {
    TUNE_TRY(version, read_version(connection));
    if (version > schema_version())
        return Error{Code::kInvalidState,
                     "'" + connection.path() + "' was written by a newer version of tune (schema " +
                         std::to_string(version) + ", this program knows up to " +
                         std::to_string(schema_version()) +
                         "); use that version, or another data directory."};
    for (const Migration& migration : kMigrations)
        if (migration.version > version) TUNE_TRY_VOID(apply(connection, migration, clock));
    return {};
}

}  // namespace tune::tracker
