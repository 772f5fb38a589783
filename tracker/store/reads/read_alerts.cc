#include "tracker/store/reads/read_alerts.h"

namespace tune::tracker {

Result<std::vector<RunningRun>> running_runs(sqlite::Connection& connection, std::int64_t limit) {
    constexpr std::string_view kSql =
        "SELECT r.run_id, r.experiment_id,"
        " (SELECT value FROM tags WHERE run_row = r.run_row AND key_id ="
        "   (SELECT key_id FROM keys WHERE name = 'mlflow.parentRunId')),"
        " EXISTS (SELECT 1 FROM tags WHERE run_row = r.run_row AND key_id ="
        "   (SELECT key_id FROM keys WHERE name = 'tune.trial')),"
        " EXISTS (SELECT 1 FROM tags WHERE run_row = r.run_row AND key_id ="
        "   (SELECT key_id FROM keys WHERE name = 'tune.kind'))"
        " FROM runs r WHERE r.status = ? AND r.life = 0 LIMIT ?";
    TUNE_TRY(select, connection.prepare(kSql));
    select.with(static_cast<std::int64_t>(RunStatus::kRunning), limit);
    std::vector<RunningRun> runs;
    for (;;) {
        TUNE_TRY(has_row, select.step());
        if (!has_row) return runs;
        runs.push_back({std::string(select.text(0)), select.integer(1), std::string(select.text(2)),
                        select.integer(3) != 0, select.integer(4) != 0});
    }
}

Result<std::optional<std::string>> find_run_tag(sqlite::Connection& connection,
                                                std::string_view run_id, std::string_view key) {
    TUNE_TRY(select,
             connection.prepare("SELECT t.value FROM runs r JOIN tags t ON t.run_row = r.run_row "
                                "JOIN keys k ON k.key_id = t.key_id WHERE r.run_id = ? AND "
                                "k.name = ?"));
    TUNE_TRY(has_row, select.with(run_id, key).step());
    if (!has_row) return std::optional<std::string>();
    return std::optional<std::string>(select.text(0));
}

}  // namespace tune::tracker
