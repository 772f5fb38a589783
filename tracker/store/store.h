#pragma once
// The tracker's data: experiments, runs, metrics, params, tags, datasets, logged models and the
// documents of other libraries, in one SQLite file.
//
//   submit -> bounded queue -> writer thread: all waiting commands as one transaction -> fsync
//          -> completions -> observer thread (observers in commit order)
//   reads  -> any thread, on a pooled read connection (a snapshot of the last commit)

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "tracker/store/commands/commands.h"
#include "tracker/store/commands/events.h"
#include "tracker/store/reads/read_snapshot.h"
#include "tracker/store/types.h"

namespace tune::tracker {
class Outbox;
struct StoreStatistics;
}  // namespace tune::tracker

namespace tune::tracker {

/// Read jobs waiting for a reader thread. At 1 ms a search on 2 threads this is 0.5 s of backlog.
inline constexpr std::size_t kReadQueueMax = 1024;
/// Commits waiting for the observers; beyond it the writer waits for them.
inline constexpr std::size_t kObserverQueueMax = 256;
/// Bytes of commands waiting for the writer; besides kWriteQueueMax (base/limits.h), which alone
/// would let 8,192 full batches take 1 GB.
inline constexpr std::size_t kWriteQueueBytesMax = 64u << 20;
/// Commands in one Atomic. The largest caller writes a study of many trials in pieces of this size.
inline constexpr std::size_t kAtomicCommandsMax = 4096;
/// Runs in one bulk or series read (MLflow's limit for both bulk routes).
inline constexpr std::size_t kBulkRunsMax = 100;
/// Points of one metric_history_bulk answer (MLflow).
inline constexpr std::int64_t kBulkResultsMax = 25'000;
/// Rows per run in metric_history_bulk_interval (MLflow).
inline constexpr std::int64_t kBulkIntervalResultsMax = 2'500;
/// Buckets per run in `series`; no screen is wider.
inline constexpr std::int64_t kSeriesBucketsMax = 10'000;

struct StoreOptions {
    /// Made if missing. Holds tune.db (with -wal and -shm) and tune.lock.
    std::filesystem::path directory;
    /// Default system clock. Must outlive the store.
    const Clock* clock = nullptr;
    /// Where artifacts of experiments without an own location go.
    std::string artifact_root = "mlflow-artifacts:/";
    int reader_threads = 2;
    /// MLFLOW_TRUNCATE_LONG_VALUES of MLflow: long param and tag values are cut, not refused.
    bool truncate_long_values = true;
    /// A read that takes longer is stopped with kDeadlineExceeded.
    int read_timeout_ms = 30'000;
    /// Largest size of the database; 0 = what the disk holds. For quotas, and tests of a full
    /// disk.
    std::int64_t database_bytes_max = 0;
};

struct SearchExperiments {
    std::string filter = {};
    std::vector<std::string> order_by = {};
    ViewType view_type = ViewType::kActiveOnly;
    std::int64_t max_results = 1000;  // 1..kSearchResultsMax
    std::string page_token = {};
    std::optional<Viewer> visible_to = {};  ///< nothing: all
};

struct SearchRuns {
    std::vector<ExperimentId> experiment_ids = {};
    std::string filter = {};
    std::vector<std::string> order_by = {};
    ViewType view_type = ViewType::kActiveOnly;
    std::int64_t max_results = 1000;  // 1..kSearchResultsMax
    std::string page_token = {};
};

/// `name` is an attribute or "metrics.<key>"; dataset_* restrict which metric counts.
struct LoggedModelOrder {
    std::string field_name;
    bool is_ascending = true;
    std::string dataset_name = {};
    std::string dataset_digest = {};
};

/// Empty digest = any.
struct DatasetFilter {
    std::string dataset_name;
    std::string dataset_digest = {};
};

struct SearchLoggedModels {
    std::vector<ExperimentId> experiment_ids = {};
    std::string filter = {};
    std::vector<DatasetFilter> datasets = {};
    std::vector<LoggedModelOrder> order_by = {};
    std::int64_t max_results = 100;
    std::string page_token = {};
};

struct StepRange {
    std::int64_t first = 0;
    std::int64_t last = 0;  // included
};

/// Points of one run, in the order the read promises.
struct RunHistory {
    std::string run_id;
    std::vector<Metric> metrics;
};

/// A command and what is called with its outcome; see Store::submit.
struct Submission {
    Command command;
    std::function<void(Result<Outcome>)> completion;
};

/// Thread-safe. Owns one writer thread, one observer thread, one checkpoint thread, a pool of
/// reader threads and read connections. Memory is bounded: see docs/operating.md.
class Store {
public:
    /// Opens or creates the store; ready in a few ms. Errors, each naming the path and what to do:
    /// kPermissionDenied (directory not writable), kResourceConflict (another process has it open;
    /// names its pid), kInvalidState (written by a newer version, or not a store of ours),
    /// kTemporarilyUnavailable (disk full or input/output error).
    [[nodiscard]] static Result<std::unique_ptr<Store>> open(StoreOptions options);
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    // --- writes ---

    using Completion = decltype(Submission::completion);

    /// Queues the command; never blocks. The completion is called exactly once: on the writer
    /// thread after the commit that holds the command is on disk (or after the command failed),
    /// where it must not block; or at once, on this thread, when the queue is full
    /// (kRequestLimitExceeded) or the store is stopping (kTemporarilyUnavailable). Commands of one
    /// thread are applied in order. A full disk or an input/output error is kResourceExhausted or
    /// kTemporarilyUnavailable: nothing was changed, and the store keeps working.
    void submit(Command command, Completion completion);

    /// As submit of each, in order. They share a commit, unless it grows too large or one of them
    /// fails; without room for all, the first of them are taken.
    void submit(std::vector<Submission> submissions);

    /// submit and wait. Never on a network, writer or observer thread.
    [[nodiscard]] Result<Outcome> execute(Command command);

    /// It hears of all commits from now on; `observer` outlives the store or its stop().
    void add_observer(CommitObserver* observer);

    /// At most one. REQUIRES: before the first command; `outbox` outlives the store or its stop().
    void set_outbox(Outbox* outbox);

    /// Waits until the observers have seen every commit answered so far. For tests and shut-down.
    void wait_for_observers();

    /// Completes what is queued, notifies the observers, ends all threads. Idempotent; reads still
    /// work.
    void stop();

    // --- reads: any thread, blocking (disk); network threads go through post_read ---

    /// Runs `job` on a reader thread. False, without running it, when kReadQueueMax jobs wait or
    /// the store is stopping.
    [[nodiscard]] bool post_read(std::function<void()> job);

    /// Runs `read`, a function from ReadSnapshot (or its sqlite::Connection&) to a Result, on a
    /// pooled connection. For the other headers of this folder (all SQL lies here).
    template <class Read>
    [[nodiscard]] auto snapshot(Read read) const -> std::invoke_result_t<Read, const ReadSnapshot&>;

    /// Deleted ones too. Errors: kResourceDoesNotExist "No Experiment with id=999 exists".
    [[nodiscard]] Result<Experiment> get_experiment(ExperimentId experiment_id) const;
    /// Deleted ones too. Errors: kResourceDoesNotExist "Could not find experiment with name 'x'".
    [[nodiscard]] Result<Experiment> get_experiment_by_name(std::string_view name) const;
    /// Filter and order_by: tracker/search. Errors: kInvalidParameterValue with MLflow's texts.
    [[nodiscard]] Result<Page<Experiment>> search_experiments(const SearchExperiments& query) const;
    /// One entry an active experiment. Cost: one pass over an index of the runs.
    [[nodiscard]] Result<std::vector<ExperimentStatistics>> experiment_statistics() const;

    /// Deleted ones too. Errors: kResourceDoesNotExist "Run with id=x not found".
    [[nodiscard]] Result<Run> get_run(std::string_view run_id) const;
    [[nodiscard]] Result<RunInfo> get_run_info(std::string_view run_id) const;
    [[nodiscard]] Result<Page<Run>> search_runs(const SearchRuns& query) const;
    /// Datasets of the runs' inputs, at most 1,000.
    [[nodiscard]] Result<std::vector<DatasetSummary>> search_datasets(
        std::span<const ExperimentId> experiment_ids) const;

    /// Points ordered by (timestamp, step, value). No `max_results`: all. An unknown run or key is
    /// an empty page. Errors: kInvalidParameterValue for max_results < 1 or a bad token.
    [[nodiscard]] Result<Page<Metric>> metric_history(std::string_view run_id, std::string_view key,
                                                      std::optional<std::int64_t> max_results = {},
                                                      std::string_view page_token = {}) const;
    /// Ordered by run id, then (timestamp, step, value); at most `max_results` points over all
    /// runs.
    [[nodiscard]] Result<std::vector<RunHistory>> metric_history_bulk(
        std::span<const std::string> run_ids, std::string_view key, std::int64_t max_results) const;
    /// At most `max_results` points per run, sampled by row as MLflow 3.17.2 does (equal buckets
    /// over (step, timestamp, value), first row of each, and the last row); ordered by (step,
    /// timestamp, value). `range` limits the steps.
    [[nodiscard]] Result<std::vector<RunHistory>> metric_history_bulk_interval(
        std::span<const std::string> run_ids, std::string_view key, std::optional<StepRange> range,
        std::int64_t max_results) const;
    /// Each run's history in at most `bucket_count` buckets, none empty, with exact extrema: one a
    /// point when there are no more points than buckets; else of equal width in steps, or in time
    /// when all points share one step. Runs without the metric are left out. Cost: O(blocks).
    [[nodiscard]] Result<std::vector<Series>> series(std::span<const std::string> run_ids,
                                                     std::string_view key,
                                                     std::int64_t bucket_count) const;

    /// Errors: kResourceDoesNotExist "Logged model with ID 'm-..' not found.", also when deleted.
    [[nodiscard]] Result<LoggedModel> get_logged_model(std::string_view model_id) const;
    [[nodiscard]] Result<Page<LoggedModel>> search_logged_models(
        const SearchLoggedModels& query) const;

    /// In key order, those whose key starts with `key_prefix`.
    [[nodiscard]] Result<std::vector<Document>> list_documents(
        std::string_view collection, std::string_view key_prefix = {}) const;
    [[nodiscard]] Result<std::optional<Document>> get_document(std::string_view collection,
                                                               std::string_view key) const;

    /// Another number after every commit that changed users or grants, or which experiment an id
    /// belongs to; before its command is answered. Read it before what it is to stand for.
    [[nodiscard]] std::uint64_t permission_epoch() const;

    /// Position of the last commit on disk.
    [[nodiscard]] std::int64_t last_position() const;

    /// See tracker/store/stats.h. Any thread; no disk access but two stat calls.
    [[nodiscard]] StoreStatistics statistics() const;

private:
    struct Parts;
    explicit Store(std::unique_ptr<Parts> parts);
    [[nodiscard]] Result<void> with_snapshot(
        const std::function<Result<void>(const ReadSnapshot&)>& read) const;
    std::unique_ptr<Parts> parts_;
};

template <class Read>
auto Store::snapshot(Read read) const -> std::invoke_result_t<Read, const ReadSnapshot&> {
    std::optional<std::invoke_result_t<Read, const ReadSnapshot&>> result;
    Result<void> done = with_snapshot([&](const ReadSnapshot& snapshot) -> Result<void> {
        result.emplace(read(snapshot));
        if (!*result) return result->error();
        return {};
    });
    if (!done) return std::move(done).error();
    return std::move(*result);
}

}  // namespace tune::tracker
