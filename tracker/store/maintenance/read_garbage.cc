// What may be removed for good. Every listing is keyset-paged by row, so that a collection that
// other writes interrupt neither skips nor repeats a row. Deleting and restoring change `life` and
// the time together, and each purge command checks both again on the writer thread: what is
// restored between the listing and the purge stays.

#include "tracker/store/maintenance/read_garbage.h"

#include <algorithm>
#include <cstdint>

#include "tracker/store/reads/read_experiments.h"
#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {
namespace {

/// "?3, ?4" for values bound from `first` on.
std::string placeholders(std::size_t count, std::size_t first) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
        text += (i == 0 ? "?" : ", ?") + std::to_string(first + i);
    return text;
}

Result<GarbagePage> read_page(sqlite::Statement& select) {
    GarbagePage page;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return page;
        page.next_row = select.integer(0);
        page.ids.emplace_back(select.text(1));
    }
}

std::string names(const std::vector<std::string>& ids) {
    std::string text;
    for (const std::string& id : ids) text += (text.empty() ? "" : ", ") + id;
    return text;
}

Result<void> check_runs(sqlite::Connection& connection, const GarbageChoice& choice) {
    std::vector<std::string> active;
    std::vector<std::string> young;
    for (const std::string& id : choice.run_ids) {
        TUNE_TRY(select, connection.prepare("SELECT life, coalesce(deleted_time_ms, ?2) FROM runs "
                                            "WHERE run_id = ?1"));
        TUNE_TRY(has_row, select.with(id, INT64_MAX).step());
        if (!has_row) return no_run(id);
        if (select.integer(0) == 0)
            active.push_back(id);
        else if (select.integer(1) > choice.deleted_until_ms)
            young.push_back(id);
    }
    if (!active.empty())
        return Error{Code::kInvalidParameterValue,
                     "Only deleted runs can be removed for good; these are not deleted: " +
                         names(active) + "."};
    if (!young.empty())
        return Error{Code::kInvalidParameterValue,
                     "These runs were deleted later than older_than allows: " + names(young) + "."};
    return {};
}

Result<void> check_experiments(sqlite::Connection& connection, const GarbageChoice& choice) {
    std::vector<std::string> active;
    std::vector<std::string> young;
    for (const ExperimentId id : choice.experiment_ids) {
        TUNE_TRY(experiment, find_experiment(connection, id));
        if (!experiment) return no_experiment(id);
        if (experiment->lifecycle_stage == LifecycleStage::kActive)
            active.push_back(std::to_string(id));
        else if (experiment->last_update_time_ms > choice.deleted_until_ms)
            young.push_back(std::to_string(id));
    }
    if (!active.empty())
        return Error{Code::kInvalidParameterValue,
                     "Only deleted experiments can be removed for good; these are not deleted: " +
                         names(active) + "."};
    if (!young.empty())
        return Error{
            Code::kInvalidParameterValue,
            "These experiments were deleted later than older_than allows: " + names(young) + "."};
    return {};
}

/// " AND (x IN (...) OR ...)" for what is named, nothing when nothing is; on runs (`by_run`) or on
/// models and experiments.
std::string named(const GarbageChoice& choice, bool by_run) {
    if (choice.run_ids.empty() && choice.experiment_ids.empty()) return "";
    std::string sql = " AND (0";
    if (by_run && !choice.run_ids.empty())
        sql += " OR x.run_id IN (" + placeholders(choice.run_ids.size(), 4) + ")";
    const std::size_t first = 4 + (by_run ? choice.run_ids.size() : 0);
    if (!choice.experiment_ids.empty())
        sql += " OR x.experiment_id IN (" + placeholders(choice.experiment_ids.size(), first) + ")";
    return sql + ")";
}

void bind_named(sqlite::Statement& select, const GarbageChoice& choice, bool by_run) {
    int index = 4;
    if (by_run)
        for (const std::string& id : choice.run_ids) select.bind(index++, std::string_view(id));
    for (const ExperimentId id : choice.experiment_ids) select.bind(index++, id);
}

/// Marks the ids of one table's rows with run_row in (after, until].
Result<void> mark(sqlite::Connection& connection, const char* sql, std::int64_t first,
                  std::int64_t last, std::vector<bool>& used) {
    TUNE_TRY(select, connection.prepare(sql));
    select.with(first, last);
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return {};
        const auto id = static_cast<std::size_t>(select.integer(0));
        if (id < used.size()) used[id] = true;
    }
}

Result<std::int64_t> number(sqlite::Connection& connection, const char* sql) {
    TUNE_TRY(select, connection.prepare(sql));
    TUNE_TRY(has_row, select.step());
    return has_row ? select.integer(0) : 0;
}

}  // namespace

Result<void> check_garbage(sqlite::Connection& connection, const GarbageChoice& choice) {
    TUNE_TRY_VOID(check_runs(connection, choice));
    return check_experiments(connection, choice);
}

Result<GarbagePage> garbage_runs(sqlite::Connection& connection, const GarbageChoice& choice,
                                 std::int64_t after_row, std::int64_t limit) {
    TUNE_TRY(select, connection.prepare("SELECT x.run_row, x.run_id FROM runs x WHERE x.life = 1 "
                                        "AND x.deleted_time_ms <= ?1 AND x.run_row > "
                                        "?2" +
                                        named(choice, true) + " ORDER BY x.run_row LIMIT ?3"));
    select.with(choice.deleted_until_ms, after_row, limit);
    bind_named(select, choice, true);
    return read_page(select);
}

Result<GarbagePage> garbage_models(sqlite::Connection& connection, const GarbageChoice& choice,
                                   std::int64_t after_row, std::int64_t limit) {
    TUNE_TRY(select,
             connection.prepare("SELECT x.model_row, x.model_id FROM logged_models x LEFT JOIN "
                                "experiments e ON e.experiment_id = x.experiment_id WHERE "
                                "((x.life = 1 AND x.last_updated_time_ms <= ?1) OR (e.life = 1 AND "
                                "e.last_update_time_ms <= ?1)) AND x.model_row > ?2" +
                                named(choice, false) + " ORDER BY x.model_row LIMIT ?3"));
    select.with(choice.deleted_until_ms, after_row, limit);
    bind_named(select, choice, false);
    return read_page(select);
}

Result<std::vector<ExperimentId>> garbage_experiments(sqlite::Connection& connection,
                                                      const GarbageChoice& choice) {
    TUNE_TRY(select,
             connection.prepare("SELECT x.experiment_id FROM experiments x WHERE x.life = 1 AND "
                                "x.last_update_time_ms <= ?1 AND x.experiment_id > ?2" +
                                named(choice, false) + " ORDER BY x.experiment_id LIMIT ?3"));
    select.with(choice.deleted_until_ms, std::int64_t{0}, std::int64_t{-1});
    bind_named(select, choice, false);
    std::vector<ExperimentId> ids;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return ids;
        ids.push_back(select.integer(0));
    }
}

Result<std::int64_t> count_points(sqlite::Connection& connection,
                                  const std::vector<std::string>& run_ids) {
    TUNE_TRY(select, connection.prepare(
                         "SELECT coalesce(sum(m.row_count), 0) FROM runs r JOIN latest_metrics m "
                         "ON m.run_row = r.run_row WHERE r.run_id = ?"));
    std::int64_t points = 0;
    for (const std::string& id : run_ids) {
        TUNE_TRY_VOID(select.with(id).step());
        points += select.integer(0);
        select.reset();
    }
    return points;
}

Result<std::vector<std::int64_t>> garbage_blocks(sqlite::Connection& connection,
                                                 std::int64_t limit) {
    TUNE_TRY(select, connection.prepare("SELECT b.block_id FROM runs r CROSS JOIN metric_blocks b "
                                        "ON b.run_row = r.run_row WHERE r.experiment_id = -1 "
                                        "LIMIT ?"));
    select.with(limit);
    std::vector<std::int64_t> ids;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) break;
        ids.push_back(select.integer(0));
    }
    // Not by SQLite, which would keep some 40 bytes per number.
    std::sort(ids.begin(), ids.end());
    return ids;
}

Result<std::vector<GarbageFolder>> garbage_folders(sqlite::Connection& connection,
                                                   std::int64_t after_row, std::int64_t limit) {
    TUNE_TRY(select, connection.prepare("SELECT folder_row, artifact_uri FROM garbage_folders "
                                        "WHERE folder_row > ? ORDER BY folder_row LIMIT ?"));
    select.with(after_row, limit);
    std::vector<GarbageFolder> folders;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return folders;
        folders.push_back({select.integer(0), std::string(select.text(1))});
    }
}

Result<std::optional<std::int64_t>> mark_used_keys(sqlite::Connection& connection,
                                                   std::int64_t first_run_row,
                                                   std::int64_t rows_max, std::vector<bool>& used) {
    // A range of runs that holds about rows_max rows of metrics, the largest of the tables.
    std::int64_t last = 0;
    {
        TUNE_TRY(select, connection.prepare("SELECT max(run_row), count(*) FROM (SELECT run_row "
                                            "FROM latest_metrics WHERE run_row >= ?1 LIMIT ?2)"));
        TUNE_TRY_VOID(select.with(first_run_row, rows_max).step());
        last = select.integer(0);
        if (select.integer(1) < rows_max) last = INT64_MAX;
    }
    for (const char* sql : {"SELECT key_id FROM latest_metrics WHERE run_row BETWEEN ?1 AND ?2",
                            "SELECT key_id FROM params WHERE run_row BETWEEN ?1 AND ?2",
                            "SELECT key_id FROM suggested_params WHERE run_row BETWEEN ?1 AND ?2",
                            "SELECT key_id FROM metric_marks WHERE run_row BETWEEN ?1 AND ?2",
                            "SELECT key_id FROM tags WHERE run_row BETWEEN ?1 AND ?2"})
        TUNE_TRY_VOID(mark(connection, sql, first_run_row, last, used));
    if (last == INT64_MAX) return std::optional<std::int64_t>();
    return std::optional<std::int64_t>(last + 1);
}

Result<std::vector<std::int64_t>> unmarked_keys(sqlite::Connection& connection,
                                                const std::vector<bool>& used,
                                                std::int64_t after_key, std::int64_t limit) {
    TUNE_TRY(select, connection.prepare("SELECT key_id FROM keys WHERE key_id > ? AND key_id < ? "
                                        "ORDER BY key_id"));
    select.with(after_key, static_cast<std::int64_t>(used.size()));
    std::vector<std::int64_t> ids;
    while (static_cast<std::int64_t>(ids.size()) < limit) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return ids;
        if (!used[static_cast<std::size_t>(select.integer(0))]) ids.push_back(select.integer(0));
    }
    return ids;
}

Result<std::int64_t> last_key(sqlite::Connection& connection) {
    return number(connection, "SELECT coalesce(max(key_id), 0) FROM keys");
}

Result<FileUse> file_use(sqlite::Connection& connection) {
    TUNE_TRY(page_bytes, number(connection, "PRAGMA page_size"));
    TUNE_TRY(pages, number(connection, "PRAGMA page_count"));
    TUNE_TRY(free_pages, number(connection, "PRAGMA freelist_count"));
    TUNE_TRY(vacuum, number(connection, "PRAGMA auto_vacuum"));
    return FileUse{pages * page_bytes, free_pages * page_bytes, vacuum != 0};
}

}  // namespace tune::tracker
