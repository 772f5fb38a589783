#pragma once
// What the writer thread carries from command to command: caches, changed metric heads, and the
// events of the transaction. Not thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tracker/sqlite/connection.h"
#include "tracker/store/commands/events.h"
#include "tracker/store/metrics/metric_columns.h"
#include "tracker/store/metrics/metric_log.h"
#include "tracker/store/metrics/metric_marks.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Names of metrics, params and tags whose id is remembered; about 100 bytes each.
inline constexpr std::size_t kKeyCacheMax = 32'768;
/// Names that may come into use while a sweep looks for unused ones; about 40 bytes each. Beyond it
/// the sweep ends without removing more.
inline constexpr std::size_t kWatchedKeysMax = 200'000;
/// Runs whose row is remembered; about 130 bytes each.
inline constexpr std::size_t kRunCacheMax = 32'768;

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
        return std::hash<std::string_view>{}(text);
    }
};

template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

/// Interned names. Forgets all of them when there are too many: they are read back one by one.
class KeyTable {
public:
    explicit KeyTable(sqlite::Connection& connection) : connection_(connection) {}
    /// The id of `name`, made if there is none.
    [[nodiscard]] Result<std::int64_t> id_of(std::string_view name);
    /// The id of `name`, or 0.
    [[nodiscard]] Result<std::int64_t> find(std::string_view name);
    void forget() { ids_.clear(); }

    /// From now on remembers every id that id_of() gives, until end_watch().
    void begin_watch();
    void end_watch();
    /// Whether id_of() gave this id since begin_watch(). Errors: kInvalidState when nobody watches,
    /// or when too many were used.
    [[nodiscard]] Result<bool> was_used(std::int64_t key_id) const;

private:
    void note_use(std::int64_t key_id);

    sqlite::Connection& connection_;
    TextMap<std::int64_t> ids_;
    bool is_watching_ = false;
    std::unordered_set<std::int64_t> used_;
};

struct RunRow {
    std::int64_t run_row = 0;
    ExperimentId experiment_id = 0;
    LifecycleStage life = LifecycleStage::kActive;
};

/// Rows of runs by id.
class RunTable {
public:
    explicit RunTable(sqlite::Connection& connection) : connection_(connection) {}
    /// Errors: kResourceDoesNotExist.
    [[nodiscard]] Result<RunRow> find(std::string_view run_id);
    /// Errors: kResourceDoesNotExist; kInvalidParameterValue when it is deleted.
    [[nodiscard]] Result<RunRow> find_active(std::string_view run_id);
    void forget(std::string_view run_id);
    void forget() { rows_.clear(); }

private:
    sqlite::Connection& connection_;
    TextMap<RunRow> rows_;
};

/// Rows for an event that are moved out of the command only after the commit.
struct DeferredMetrics {
    std::size_t event = 0;  // index of a MetricsLogged
    std::vector<Metric>* metrics = nullptr;
    std::vector<std::uint32_t> dropped = {};  // positions of duplicates
};

struct WriteContext {
    WriteContext(sqlite::Connection& writer, const StoreOptions& store_options,
                 std::uint64_t name_seed)
        : connection(writer),
          options(store_options),
          clock(*store_options.clock),
          keys(writer),
          runs(writer),
          metrics(writer),
          marks(writer),
          name_state(name_seed) {}

    /// Drops all that was remembered; after a rollback.
    void forget();
    /// Moves the metrics of the transaction into their events. After the commit, once.
    void finish_events();

    sqlite::Connection& connection;
    const StoreOptions& options;
    const Clock& clock;
    KeyTable keys;
    RunTable runs;
    MetricLog metrics;
    MetricMarks marks;
    MetricColumns columns;  // shared with the readers
    std::uint64_t name_state;
    std::vector<Event> events;
    std::vector<DeferredMetrics> deferred;
    bool permissions_changed = false;  ///< by the open transaction
};

}  // namespace tune::tracker
