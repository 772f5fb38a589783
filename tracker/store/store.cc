// Parts are declared in the order in which they depend on each other, so that destruction ends the
// threads before what they use. A read takes the mark of the metric columns before its transaction
// begins: the other order could pair a newer mark with an older snapshot and use values of a commit
// that the reader must not see.

#include "tracker/store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <utility>

#include "base/check.h"
#include "tracker/sqlite/transaction.h"
#include "tracker/store/lock_file.h"
#include "tracker/store/metrics/read_metrics.h"
#include "tracker/store/migrations/schema.h"
#include "tracker/store/reads/read_documents.h"
#include "tracker/store/reads/read_experiments.h"
#include "tracker/store/reads/read_logged_models.h"
#include "tracker/store/reads/read_pool.h"
#include "tracker/store/reads/runs/read_runs.h"
#include "tracker/store/stats.h"
#include "tracker/store/writer/checkpointer.h"
#include "tracker/store/writer/commit_thread.h"
#include "tracker/store/writer/observer_thread.h"
#include "tracker/store/writer/write_context.h"

namespace tune::tracker {
namespace {

constexpr int kWriterCacheKib = 8192;
constexpr int kCheckpointCacheKib = 256;

const SystemClock kSystemClock;

Result<void> make_directory(const std::filesystem::path& directory) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (!error) return {};
    return Error{Code::kPermissionDenied, "Cannot make the data directory '" + directory.string() +
                                              "' (" + error.message() +
                                              "); choose another one or change its permissions."};
}

/// The database holds secrets (signing keys of webhooks): its owner alone reads it. SQLite gives
/// the log and its index the mode of the database.
void make_private(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file >= 0) ::close(file);
    for (const char* suffix : {"", "-wal", "-shm"}) {
        // A file system without modes, or a file of somebody else: SQLite says what does not work.
        static_cast<void>(::chmod((path + suffix).c_str(), S_IRUSR | S_IWUSR));
    }
}

Result<void> make_default_experiment(sqlite::Connection& connection, const StoreOptions& options) {
    TUNE_TRY(select, connection.prepare("SELECT 1 FROM experiments WHERE experiment_id = 0"));
    TUNE_TRY(has_row, select.step());
    if (has_row) return {};
    select.reset();
    std::string location = options.artifact_root;
    if (!location.ends_with('/')) location += '/';
    location += '0';
    TUNE_TRY(insert, connection.prepare("INSERT INTO experiments (experiment_id, name, "
                                        "artifact_location, life, creation_time_ms, "
                                        "last_update_time_ms) VALUES (0, 'Default', ?1, 0, ?2, "
                                        "?2)"));
    return insert.with(location, options.clock->now_ms()).run();
}

Result<std::int64_t> read_position(sqlite::Connection& connection) {
    TUNE_TRY(select, connection.prepare("SELECT position FROM commit_position"));
    TUNE_TRY(has_row, select.step());
    if (!has_row)
        return Error{Code::kDataLoss, "'" + connection.path() + "' has no commit position."};
    return select.integer(0);
}

template <class T>
Result<T> require(Result<std::optional<T>> found, const Error& missing) {
    if (!found) return std::move(found).error();
    if (!*found) return missing;
    return std::move(**found);
}

}  // namespace

/// Members are destroyed from the last to the first: threads before what they use.
struct Store::Parts {
    Parts(StoreOptions store_options, std::unique_ptr<LockFile> lock_file,
          std::unique_ptr<sqlite::Connection> writer_connection,
          std::unique_ptr<sqlite::Connection> checkpoint_connection, std::int64_t position)
        : options(std::move(store_options)),
          lock(std::move(lock_file)),
          writer(std::move(writer_connection)),
          context(*writer, options, static_cast<std::uint64_t>(options.clock->now_ms())),
          checkpointer(std::move(checkpoint_connection)),
          readers(writer->path(), options.reader_threads, options.read_timeout_ms,
                  ReadManners::of_this_machine()),
          commits(context, observers, checkpointer, readers, position) {
        observers.start();
    }

    StoreOptions options;
    std::unique_ptr<LockFile> lock;
    std::unique_ptr<sqlite::Connection> writer;
    WriteContext context;
    Checkpointer checkpointer;
    ObserverThread observers;
    ReadPool readers;
    CommitThread commits;
};

Result<std::unique_ptr<Store>> Store::open(StoreOptions options) {
    if (options.clock == nullptr) options.clock = &kSystemClock;
    TUNE_TRY_VOID(make_directory(options.directory));
    TUNE_TRY(lock, LockFile::take(options.directory / "tune.lock"));
    const std::string path = (options.directory / "tune.db").string();
    make_private(path);
    sqlite::ConnectionOptions writing;
    writing.cache_kib = kWriterCacheKib;
    writing.database_bytes_max = options.database_bytes_max;
    TUNE_TRY(writer, sqlite::Connection::open(path, writing));
    TUNE_TRY_VOID(migrate(*writer, *options.clock));
    TUNE_TRY_VOID(make_default_experiment(*writer, options));
    TUNE_TRY(position, read_position(*writer));
    sqlite::ConnectionOptions copying;
    copying.cache_kib = kCheckpointCacheKib;
    TUNE_TRY(checkpoints, sqlite::Connection::open(path, copying));
    return std::unique_ptr<Store>(new Store(std::make_unique<Parts>(
        std::move(options), std::move(lock), std::move(writer), std::move(checkpoints), position)));
}

Store::Store(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Store::~Store() {
    stop();
}

void Store::submit(Command command, Completion completion) {
    parts_->commits.submit(std::move(command), std::move(completion));
}

void Store::submit(std::vector<Submission> submissions) {
    parts_->commits.submit(std::move(submissions));
}

Result<Outcome> Store::execute(Command command) {
    TUNE_CHECK(!parts_->commits.is_this_thread() && !parts_->observers.is_this_thread(),
               "Store::execute would wait for itself");
    std::promise<Result<Outcome>> promise;
    std::future<Result<Outcome>> answer = promise.get_future();
    submit(std::move(command),
           [&promise](Result<Outcome> outcome) { promise.set_value(std::move(outcome)); });
    return answer.get();
}

void Store::add_observer(CommitObserver* observer) {
    parts_->observers.add(observer);
}

void Store::set_outbox(Outbox* outbox) {
    parts_->commits.set_outbox(outbox);
}

StoreStatistics Store::statistics() const {
    StoreStatistics statistics;
    parts_->commits.describe(statistics);
    parts_->readers.describe(statistics);
    statistics.commits_waiting_for_observers = parts_->observers.waiting();
    const auto size_of = [](const std::string& path) -> std::uint64_t {
        std::error_code error;
        const std::uintmax_t bytes = std::filesystem::file_size(path, error);
        return error ? 0 : bytes;
    };
    statistics.database_bytes = size_of(parts_->writer->path());
    statistics.log_bytes = size_of(parts_->writer->path() + "-wal");
    return statistics;
}

void Store::wait_for_observers() {
    parts_->observers.wait();
}

void Store::stop() {
    parts_->commits.stop();
    parts_->observers.stop();
    parts_->readers.stop();
    parts_->checkpointer.stop();
}

Result<void> Store::with_snapshot(
    const std::function<Result<void>(const ReadSnapshot&)>& read) const {
    TUNE_TRY(lease, parts_->readers.lease());
    MetricColumns& columns = parts_->context.columns;
    const std::uint64_t mark = columns.now();  // before the transaction sees a commit
    TUNE_TRY(transaction, sqlite::Transaction::begin_read(lease.connection()));
    TUNE_TRY_VOID(read({lease.connection(), columns, mark}));
    return transaction.commit();
}

std::uint64_t Store::permission_epoch() const {
    return parts_->commits.permission_epoch();
}

bool Store::post_read(std::function<void()> job) {
    return parts_->readers.post(std::move(job));
}

Result<Experiment> Store::get_experiment(ExperimentId experiment_id) const {
    return require(snapshot([&](sqlite::Connection& connection) {
                       return find_experiment(connection, experiment_id);
                   }),
                   no_experiment(experiment_id));
}

Result<Experiment> Store::get_experiment_by_name(std::string_view name) const {
    return require(snapshot([&](sqlite::Connection& connection) {
                       return find_experiment_by_name(connection, name);
                   }),
                   {Code::kResourceDoesNotExist,
                    "Could not find experiment with name '" + std::string(name) + "'"});
}

Result<Page<Experiment>> Store::search_experiments(const SearchExperiments& query) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::search_experiments(connection, query);
    });
}

Result<std::vector<ExperimentStatistics>> Store::experiment_statistics() const {
    return snapshot(
        [&](sqlite::Connection& connection) { return tracker::experiment_statistics(connection); });
}

Result<Run> Store::get_run(std::string_view run_id) const {
    return snapshot([&](sqlite::Connection& connection) { return load_run(connection, run_id); });
}

Result<RunInfo> Store::get_run_info(std::string_view run_id) const {
    return require(
        snapshot([&](sqlite::Connection& connection) { return find_run_info(connection, run_id); }),
        no_run(run_id));
}

Result<Page<Run>> Store::search_runs(const SearchRuns& query) const {
    return snapshot([&](auto& snapshot) { return tracker::search_runs(snapshot, query); });
}

Result<std::vector<DatasetSummary>> Store::search_datasets(
    std::span<const ExperimentId> experiment_ids) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::search_datasets(connection, experiment_ids);
    });
}

Result<Page<Metric>> Store::metric_history(std::string_view run_id, std::string_view key,
                                           std::optional<std::int64_t> max_results,
                                           std::string_view page_token) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::metric_history(connection, run_id, key, max_results, page_token);
    });
}

Result<std::vector<RunHistory>> Store::metric_history_bulk(std::span<const std::string> run_ids,
                                                           std::string_view key,
                                                           std::int64_t max_results) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::metric_history_bulk(connection, run_ids, key, max_results);
    });
}

Result<std::vector<RunHistory>> Store::metric_history_bulk_interval(
    std::span<const std::string> run_ids, std::string_view key, std::optional<StepRange> range,
    std::int64_t max_results) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::metric_history_bulk_interval(connection, run_ids, key, range, max_results);
    });
}

Result<std::vector<Series>> Store::series(std::span<const std::string> run_ids,
                                          std::string_view key, std::int64_t bucket_count) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::series(connection, run_ids, key, bucket_count);
    });
}

Result<LoggedModel> Store::get_logged_model(std::string_view model_id) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::get_logged_model(connection, model_id);
    });
}

Result<Page<LoggedModel>> Store::search_logged_models(const SearchLoggedModels& query) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::search_logged_models(connection, query);
    });
}

Result<std::vector<Document>> Store::list_documents(std::string_view collection,
                                                    std::string_view key_prefix) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::list_documents(connection, collection, key_prefix);
    });
}

Result<std::optional<Document>> Store::get_document(std::string_view collection,
                                                    std::string_view key) const {
    return snapshot([&](sqlite::Connection& connection) {
        return tracker::get_document(connection, collection, key);
    });
}

std::int64_t Store::last_position() const {
    return parts_->commits.position();
}

}  // namespace tune::tracker
