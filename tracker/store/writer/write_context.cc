// Caches of the writer thread. They hold only what the database holds, or what this transaction
// will commit: forget() drops everything after a rollback, because a cached row or key of a
// transaction that never happened would be used by the next one.

#include "tracker/store/writer/write_context.h"

#include <utility>

#include "tracker/store/reads/runs/read_runs.h"

namespace tune::tracker {

Result<std::int64_t> KeyTable::find(std::string_view name) {
    if (const auto known = ids_.find(name); known != ids_.end()) return known->second;
    TUNE_TRY(select, connection_.prepare("SELECT key_id FROM keys WHERE name = ?"));
    TUNE_TRY(has_row, select.with(name).step());
    if (!has_row) return std::int64_t{0};
    const std::int64_t id = select.integer(0);
    if (ids_.size() >= kKeyCacheMax) ids_.clear();
    ids_.emplace(name, id);
    return id;
}

Result<std::int64_t> KeyTable::id_of(std::string_view name) {
    TUNE_TRY(known, find(name));
    if (known != 0) {
        if (is_watching_) note_use(known);
        return known;
    }
    TUNE_TRY(insert, connection_.prepare("INSERT INTO keys (name) VALUES (?)"));
    TUNE_TRY_VOID(insert.with(name).run());
    const std::int64_t id = connection_.last_insert_row();
    ids_.emplace(name, id);
    if (is_watching_) note_use(id);
    return id;
}

void KeyTable::note_use(std::int64_t key_id) {
    if (used_.size() >= kWatchedKeysMax) return end_watch();
    used_.insert(key_id);
}

void KeyTable::begin_watch() {
    is_watching_ = true;
    used_.clear();
}

void KeyTable::end_watch() {
    is_watching_ = false;
    used_ = {};
}

Result<bool> KeyTable::was_used(std::int64_t key_id) const {
    if (!is_watching_)
        return Error{Code::kInvalidState, "Nobody watches which names are used; begin again."};
    return used_.contains(key_id);
}

Result<RunRow> RunTable::find(std::string_view run_id) {
    if (const auto known = rows_.find(run_id); known != rows_.end()) return known->second;
    TUNE_TRY(select, connection_.prepare("SELECT run_row, experiment_id, life FROM runs "
                                         "WHERE run_id = ?"));
    TUNE_TRY(has_row, select.with(run_id).step());
    if (!has_row) return no_run(run_id);
    const RunRow row{select.integer(0), select.integer(1),
                     static_cast<LifecycleStage>(select.integer(2))};
    if (rows_.size() >= kRunCacheMax) rows_.clear();
    rows_.emplace(run_id, row);
    return row;
}

Result<RunRow> RunTable::find_active(std::string_view run_id) {
    TUNE_TRY(row, find(run_id));
    if (row.life == LifecycleStage::kActive) return row;
    return Error{Code::kInvalidParameterValue,
                 "The run " + std::string(run_id) +
                     " must be in the 'active' state. Current state is deleted."};
}

void RunTable::forget(std::string_view run_id) {
    if (const auto known = rows_.find(run_id); known != rows_.end()) rows_.erase(known);
}

void WriteContext::forget() {
    keys.forget();
    runs.forget();
    metrics.forget();
    marks.forget();
}

void WriteContext::finish_events() {
    for (DeferredMetrics& source : deferred) {
        auto& event = std::get<MetricsLogged>(events[source.event]);
        std::vector<Metric>& metrics_logged = *source.metrics;
        if (!source.dropped.empty()) {
            std::size_t kept = 0;
            std::size_t next_dropped = 0;
            for (std::size_t i = 0; i < metrics_logged.size(); ++i) {
                if (next_dropped < source.dropped.size() && source.dropped[next_dropped] == i) {
                    ++next_dropped;
                    continue;
                }
                if (kept != i) metrics_logged[kept] = std::move(metrics_logged[i]);
                ++kept;
            }
            metrics_logged.resize(kept);
        }
        event.metrics = std::move(metrics_logged);
    }
    deferred.clear();
}

}  // namespace tune::tracker
