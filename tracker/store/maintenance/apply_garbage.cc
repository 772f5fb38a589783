// Removing for good what was deleted, in steps that hold the writer for a few ms each.
//
// A run or logged model is hidden first: it gets an id that nobody knows and the experiment -1,
// where no read looks, in the transaction that notes its folder of artifacts. From then on it is
// gone for everybody and cannot be restored. Its row stays until all rows that refer to it are
// removed, so that no new run is given its number. What a crash leaves behind is hidden, and the
// next PurgeRows resumes there.

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/id.h"
#include "tracker/store/maintenance/read_garbage.h"
#include "tracker/store/permissions/apply_permissions.h"
#include "tracker/store/writer/apply.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kHiddenIdBytes = 16;
// Rows and pages between two looks at the clock: about 0.1 ms each.
constexpr std::int64_t kRowsBetweenLooks = 32;
constexpr std::int64_t kPagesBetweenLooks = 16;

struct Hideable {
    std::int64_t row = 0;
    std::string artifact_uri;
};

/// The folder that holds nothing but the artifacts at `uri`: .../<id>/artifacts is in .../<id>.
std::string folder_of(const std::string& uri, const std::string& id) {
    const std::string tail = "/" + id + "/artifacts";
    return uri.ends_with(tail) ? uri.substr(0, uri.size() - (tail.size() - id.size() - 1)) : uri;
}

Result<void> note_folder(WriteContext& context, const std::string& uri) {
    TUNE_TRY(insert, context.connection.prepare("INSERT INTO garbage_folders (artifact_uri) "
                                                "VALUES (?)"));
    return insert.with(uri).run();
}

/// The row of a hideable run or model; none when it is not (or no longer) to be removed.
Result<std::optional<Hideable>> find_hideable(WriteContext& context, const char* sql,
                                              const std::string& id,
                                              std::int64_t deleted_until_ms) {
    TUNE_TRY(select, context.connection.prepare(sql));
    TUNE_TRY(has_row, select.with(id, deleted_until_ms).step());
    if (!has_row) return std::optional<Hideable>();
    return std::optional<Hideable>({select.integer(0), std::string(select.text(1))});
}

/// Hides those of `ids` that `find_sql` finds. Their rows.
Result<std::vector<std::int64_t>> hide(WriteContext& context, const std::vector<std::string>& ids,
                                       std::int64_t deleted_until_ms, const char* find_sql,
                                       const char* hide_sql) {
    if (ids.size() > kPurgeIdsMax)
        return Error{Code::kInvalidParameterValue,
                     "At most " + std::to_string(kPurgeIdsMax) + " can be removed at once."};
    std::vector<std::int64_t> rows;
    for (const std::string& id : ids) {
        TUNE_TRY(found, find_hideable(context, find_sql, id, deleted_until_ms));
        if (!found) continue;
        TUNE_TRY_VOID(note_folder(context, folder_of(found->artifact_uri, id)));
        TUNE_TRY(update, context.connection.prepare(hide_sql));
        TUNE_TRY_VOID(update.with(found->row, random_hex(kHiddenIdBytes)).run());
        rows.push_back(found->row);
    }
    return rows;
}

/// A DELETE ... RETURNING one number; how many rows went, and the sum of the numbers.
Result<PurgeProgress> erase_rows(WriteContext& context, const char* sql, std::int64_t row,
                                 std::int64_t rows_max) {
    TUNE_TRY(erase, context.connection.prepare(sql));
    erase.with(row, rows_max);
    PurgeProgress progress;
    for (;;) {
        TUNE_TRY(has_row, erase.step());
        if (!has_row) return progress;
        ++progress.count;
        progress.metric_points += erase.integer(0);
    }
}

/// Removes rows of one hidden run or model, table by table; is_done when nothing refers to it any
/// more.
Result<PurgeProgress> erase_dependents(WriteContext& context, std::span<const char* const> tables,
                                       std::int64_t row, std::int64_t rows_max) {
    PurgeProgress sum;
    for (const char* sql : tables) {
        TUNE_TRY(part, erase_rows(context, sql, row, rows_max - sum.count));
        sum.count += part.count;
        sum.metric_points += part.metric_points;
        if (sum.count >= rows_max) return sum;
    }
    sum.is_done = true;
    return sum;
}

// Blocks come first: they are the bulk, and their points are counted by the row of the metric.
constexpr const char* kRunTables[] = {
    "DELETE FROM metric_blocks WHERE block_id IN (SELECT block_id FROM metric_blocks WHERE "
    "run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM metric_spans WHERE span_row IN (SELECT span_row FROM metric_spans WHERE "
    "run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM marked_points WHERE point_row IN (SELECT point_row FROM marked_points WHERE "
    "run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM metric_marks WHERE run_row = ?1 AND key_id IN (SELECT key_id FROM metric_marks "
    "WHERE run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM latest_metrics WHERE run_row = ?1 AND key_id IN (SELECT key_id FROM "
    "latest_metrics WHERE run_row = ?1 LIMIT ?2) RETURNING row_count",
    "DELETE FROM params WHERE run_row = ?1 AND key_id IN (SELECT key_id FROM params WHERE "
    "run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM suggested_params WHERE run_row = ?1 AND key_id IN (SELECT key_id FROM "
    "suggested_params WHERE run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM tags WHERE run_row = ?1 AND key_id IN (SELECT key_id FROM tags WHERE "
    "run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM input_tags WHERE (input_row, key) IN (SELECT t.input_row, t.key FROM "
    "dataset_inputs i JOIN input_tags t ON t.input_row = i.input_row WHERE i.run_row = ?1 "
    "LIMIT ?2) RETURNING 0",
    "DELETE FROM dataset_inputs WHERE input_row IN (SELECT input_row FROM dataset_inputs WHERE "
    "run_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM run_models WHERE run_row = ?1 AND (is_output, position) IN (SELECT is_output, "
    "position FROM run_models WHERE run_row = ?1 LIMIT ?2) RETURNING 0",
};

constexpr const char* kModelTables[] = {
    "DELETE FROM logged_model_metrics WHERE model_row = ?1 AND (key, timestamp_ms, step, run_id) "
    "IN (SELECT key, timestamp_ms, step, run_id FROM logged_model_metrics WHERE model_row = ?1 "
    "LIMIT ?2) RETURNING 0",
    "DELETE FROM logged_model_params WHERE model_row = ?1 AND key IN (SELECT key FROM "
    "logged_model_params WHERE model_row = ?1 LIMIT ?2) RETURNING 0",
    "DELETE FROM logged_model_tags WHERE model_row = ?1 AND key IN (SELECT key FROM "
    "logged_model_tags WHERE model_row = ?1 LIMIT ?2) RETURNING 0",
};

/// What is hidden in one of both tables.
struct HiddenKind {
    const char* next_sql;
    std::span<const char* const> dependents;
    const char* erase_sql;
};

constexpr HiddenKind kHiddenRuns = {"SELECT run_row FROM runs WHERE experiment_id = -1 LIMIT 1",
                                    kRunTables, "DELETE FROM runs WHERE run_row = ?"};
constexpr HiddenKind kHiddenModels = {
    "SELECT model_row FROM logged_models WHERE experiment_id = -1 LIMIT 1", kModelTables,
    "DELETE FROM logged_models WHERE model_row = ?"};

/// Removes rows of hidden ones until there are none or `rows_max` are gone; `erased` gets those
/// that went whole.
Result<PurgeProgress> erase_hidden(WriteContext& context, const HiddenKind& kind,
                                   std::int64_t rows_max,
                                   std::unordered_set<std::int64_t>& erased) {
    PurgeProgress sum;
    while (sum.count < rows_max) {
        std::int64_t row = 0;
        {
            TUNE_TRY(select, context.connection.prepare(kind.next_sql));
            TUNE_TRY(has_row, select.step());
            if (!has_row) {
                sum.is_done = true;
                return sum;
            }
            row = select.integer(0);
        }
        TUNE_TRY(part, erase_dependents(context, kind.dependents, row, rows_max - sum.count));
        sum.count += part.count;
        sum.metric_points += part.metric_points;
        if (!part.is_done) return sum;
        TUNE_TRY(erase, context.connection.prepare(kind.erase_sql));
        TUNE_TRY_VOID(erase.with(row).run());
        erased.insert(row);
        ++sum.count;
    }
    return sum;
}

Result<bool> is_empty(WriteContext& context, const char* sql, ExperimentId experiment_id) {
    TUNE_TRY(select, context.connection.prepare(sql));
    TUNE_TRY(has_row, select.with(experiment_id).step());
    return !has_row;
}

/// Whether kPurgeTurn is used up.
class TimeBudget {
public:
    [[nodiscard]] bool is_over() const { return std::chrono::steady_clock::now() >= end_; }

private:
    std::chrono::steady_clock::time_point end_ = std::chrono::steady_clock::now() + kPurgeTurn;
};

Result<Outcome> none() {
    return Outcome(PurgeProgress{.is_done = true});
}

}  // namespace

Result<Outcome> apply(WriteContext& context, PurgeRuns& command) {
    // Points of this transaction must not be written for a run that is gone.
    TUNE_TRY_VOID(context.metrics.flush());
    TUNE_TRY(rows, hide(context, command.run_ids, command.deleted_until_ms,
                        "SELECT run_row, artifact_uri FROM runs WHERE run_id = ?1 AND life = 1 "
                        "AND deleted_time_ms <= ?2",
                        "UPDATE runs SET run_id = ?2, experiment_id = -1, life = 2 "
                        "WHERE run_row = ?1"));
    for (const std::string& id : command.run_ids) context.runs.forget(id);
    context.permissions_changed = true;  // another experiment may get a run of this id
    for (const std::int64_t row : rows) context.metrics.note_changed_run(row);
    return Outcome(PurgeProgress{.count = std::ssize(rows), .is_done = true});
}

Result<Outcome> apply(WriteContext& context, PurgeModels& command) {
    TUNE_TRY(rows, hide(context, command.model_ids, command.deleted_until_ms,
                        "SELECT m.model_row, m.artifact_uri FROM logged_models m LEFT JOIN "
                        "experiments e ON e.experiment_id = m.experiment_id WHERE m.model_id = ?1 "
                        "AND ((m.life = 1 AND m.last_updated_time_ms <= ?2) OR (e.life = 1 AND "
                        "e.last_update_time_ms <= ?2))",
                        "UPDATE logged_models SET model_id = ?2, experiment_id = -1, life = 2 "
                        "WHERE model_row = ?1"));
    context.permissions_changed = true;
    return Outcome(PurgeProgress{.count = std::ssize(rows), .is_done = true});
}

Result<Outcome> apply(WriteContext& context, PurgeExperiment& command) {
    const ExperimentId id = command.experiment_id;
    std::string location;
    {
        TUNE_TRY(select, context.connection.prepare(
                             "SELECT artifact_location FROM experiments WHERE experiment_id = ? "
                             "AND life = 1 AND last_update_time_ms <= ?"));
        TUNE_TRY(has_row, select.with(id, command.deleted_until_ms).step());
        if (!has_row) return none();
        location = select.text(0);
    }
    TUNE_TRY(no_runs, is_empty(context, "SELECT 1 FROM runs WHERE experiment_id = ? LIMIT 1", id));
    TUNE_TRY(no_models,
             is_empty(context, "SELECT 1 FROM logged_models WHERE experiment_id = ? LIMIT 1", id));
    if (!no_runs || !no_models) return none();
    // Of several experiments one may use another's folder; only that of its own number is its own.
    if (location.ends_with("/" + std::to_string(id))) TUNE_TRY_VOID(note_folder(context, location));
    for (const char* sql :
         {"DELETE FROM experiment_tags WHERE experiment_id = ?",
          "DELETE FROM datasets WHERE experiment_id = ?1 AND NOT EXISTS (SELECT 1 FROM "
          "dataset_inputs i WHERE i.dataset_row = datasets.dataset_row)",
          "DELETE FROM experiments WHERE experiment_id = ?"}) {
        TUNE_TRY(erase, context.connection.prepare(sql));
        TUNE_TRY_VOID(erase.with(id).run());
    }
    // The last experiment's number is given again.
    TUNE_TRY_VOID(drop_grants(context, ResourceType::kExperiment, std::to_string(id)));
    return Outcome(PurgeProgress{.count = 1, .is_done = true});
}

Result<Outcome> apply(WriteContext& context, PurgeRows& command) {
    TUNE_TRY_VOID(context.metrics.flush());
    std::unordered_set<std::int64_t> erased;
    TUNE_TRY(runs, erase_hidden(context, kHiddenRuns, command.rows_max, erased));
    context.metrics.forget_runs(erased);
    context.marks.forget();
    for (const std::int64_t row : erased) context.metrics.note_changed_run(row);
    if (!runs.is_done) return Outcome(runs);
    TUNE_TRY(models, erase_hidden(context, kHiddenModels, command.rows_max - runs.count, erased));
    runs.count += models.count;
    runs.is_done = models.is_done;
    return Outcome(runs);
}

Result<Outcome> apply(WriteContext& context, PurgeBlocks& command) {
    if (command.block_ids.size() > kPurgeBlocksMax)
        return Error{Code::kInvalidParameterValue, "At most " + std::to_string(kPurgeBlocksMax) +
                                                       " blocks can be removed at once."};
    // The number of a block that went may have been given to one of a run that lives.
    TUNE_TRY(erase,
             context.connection.prepare(
                 "DELETE FROM metric_blocks WHERE block_id = ? AND EXISTS (SELECT 1 FROM "
                 "runs r WHERE r.run_row = metric_blocks.run_row AND r.experiment_id = -1)"));
    const TimeBudget budget;
    PurgeProgress progress;
    for (const std::int64_t block_id : command.block_ids) {
        TUNE_TRY_VOID(erase.with(block_id).run());
        progress.count += context.connection.changed_rows();
        ++progress.next;
        if (progress.next % kRowsBetweenLooks == 0 && budget.is_over()) break;
    }
    progress.is_done = progress.next == std::ssize(command.block_ids);
    return Outcome(progress);
}

Result<Outcome> apply(WriteContext& context, ForgetFolders& command) {
    TUNE_TRY(erase, context.connection.prepare("DELETE FROM garbage_folders WHERE folder_row = ?"));
    for (const std::int64_t row : command.folder_rows) TUNE_TRY_VOID(erase.with(row).run());
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SweepDatasets& command) {
    PurgeProgress progress;
    {
        TUNE_TRY(select, context.connection.prepare(
                             "SELECT max(dataset_row), count(*) FROM (SELECT dataset_row FROM "
                             "datasets WHERE dataset_row > ? ORDER BY dataset_row LIMIT ?)"));
        TUNE_TRY_VOID(select.with(command.after_row, command.rows_max).step());
        progress.next = select.integer(0);
        progress.is_done = select.integer(1) < command.rows_max;
        if (select.integer(1) == 0) return Outcome(progress);
    }
    TUNE_TRY(erase, context.connection.prepare(
                        "DELETE FROM datasets WHERE dataset_row > ?1 AND dataset_row <= ?2 AND NOT "
                        "EXISTS (SELECT 1 FROM dataset_inputs i WHERE i.dataset_row = "
                        "datasets.dataset_row)"));
    TUNE_TRY_VOID(erase.with(command.after_row, progress.next).run());
    progress.count = context.connection.changed_rows();
    return Outcome(progress);
}

Result<Outcome> apply(WriteContext& context, BeginKeySweep&) {
    context.keys.begin_watch();
    return Outcome{};
}

Result<Outcome> apply(WriteContext& context, SweepKeys& command) {
    PurgeProgress progress{.is_done = command.is_last};
    for (const std::int64_t key_id : command.key_ids) {
        TUNE_TRY(is_used, context.keys.was_used(key_id));
        if (is_used) continue;
        TUNE_TRY(erase, context.connection.prepare("DELETE FROM keys WHERE key_id = ?"));
        TUNE_TRY_VOID(erase.with(key_id).run());
        progress.count += context.connection.changed_rows();
    }
    context.keys.forget();
    if (command.is_last) context.keys.end_watch();
    return Outcome(progress);
}

Result<Outcome> apply(WriteContext& context, ShrinkFile& command) {
    const auto free_pages = [&context]() -> Result<std::int64_t> {
        TUNE_TRY(select, context.connection.prepare("PRAGMA freelist_count"));
        TUNE_TRY_VOID(select.step());
        return select.integer(0);
    };
    TUNE_TRY(before, free_pages());
    const TimeBudget budget;
    for (std::int64_t rest = std::min(before, command.pages_max); rest > 0 && !budget.is_over();
         rest -= kPagesBetweenLooks)
        TUNE_TRY_VOID(
            context.connection.execute("PRAGMA incremental_vacuum(" +
                                       std::to_string(std::min(rest, kPagesBetweenLooks)) + ")"));
    TUNE_TRY(after, free_pages());
    return Outcome(
        PurgeProgress{.count = before - after, .is_done = after == before || after == 0});
}

}  // namespace tune::tracker
