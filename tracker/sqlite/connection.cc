// A cached statement is lent to one borrower at a time; a second borrower of the same SQL gets an
// uncached one. Returning a statement resets it and clears its bindings, so that it neither holds a
// snapshot open nor points to its borrower's text. Checkpoints are the owner's decision: the hook
// that counts the log's pages replaces SQLite's own.

#include "tracker/sqlite/connection.h"

#include <sqlite3.h>

#include <iterator>

#include "base/text/hex.h"
#include "tracker/sqlite/errors.h"
#include "tracker/sqlite/log_file.h"

namespace tune::tracker::sqlite {
namespace {

/// How often the text of one error may repeat the SQL.
constexpr std::size_t kErrorSqlBytesMax = 200;

int remember_wal_pages(void* pages, sqlite3*, const char*, int count) {
    *static_cast<int*>(pages) = count;
    return SQLITE_OK;
}

/// Once, before the first connection. SQLite counts its memory for nobody here, and each of its
/// allocations takes a lock of the whole process for that: the writer waited behind readers that
/// had lost their processor in it.
void leave_memory_uncounted() {
    static const int once = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    static_cast<void>(once);
}

std::string_view text_of(sqlite3_value* value) {
    const auto* data = reinterpret_cast<const char*>(sqlite3_value_text(value));
    return {data, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

void call_predicate(sqlite3_context* context, int, sqlite3_value** values) {
    if (sqlite3_value_type(values[0]) == SQLITE_NULL ||
        sqlite3_value_type(values[1]) == SQLITE_NULL)
        return sqlite3_result_null(context);
    const auto function = reinterpret_cast<Connection::TextPredicate>(sqlite3_user_data(context));
    const std::string_view left = text_of(values[0]);
    const std::string_view right = text_of(values[1]);
    sqlite3_result_int(context, function(left, right) ? 1 : 0);
}

/// `path` as a URI in which nothing of it can be taken for an option.
std::string immutable_uri(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        if (c == '?' || c == '#' || c == '%') {
            uri += '%';
            append_hex(uri, c);
        } else {
            uri += c;
        }
    }
    return uri + "?immutable=1";
}

}  // namespace

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path,
                                                     ConnectionOptions options) {
    leave_memory_uncounted();
    std::unique_ptr<Connection> connection(new Connection(path));
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const bool is_reader =
        options.access == Access::kReadOnly || options.access == Access::kReadImmutable;
    flags |= is_reader ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    std::string name = path;
    if (options.access == Access::kReadImmutable) {
        flags |= SQLITE_OPEN_URI;
        name = immutable_uri(path);
    }
    const char* const vfs = options.access == Access::kReadWriteCreate ? steady_log_vfs() : nullptr;
    const int code = sqlite3_open_v2(name.c_str(), &connection->database_, flags, vfs);
    if (code != SQLITE_OK) return connection->last_error(code);
    TUNE_TRY_VOID(connection->configure(options));
    return connection;
}

Result<void> Connection::configure(const ConnectionOptions& options) {
    sqlite3_busy_timeout(database_, options.busy_timeout_ms);
    // Damaged files and hostile schemas must not run code, and one statement must not eat the
    // stack.
    sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_wal_hook(database_, &remember_wal_pages, &wal_pages_);
    std::string script = "PRAGMA cache_size=-" + std::to_string(options.cache_kib) + ";";
    if (options.is_foreign)
        sqlite3_limit(database_, SQLITE_LIMIT_LENGTH, kForeignValueBytesMax);
    else
        script += "PRAGMA temp_store=MEMORY;";
    if (options.access == Access::kWriteOnce)
        script += "PRAGMA journal_mode=MEMORY;PRAGMA synchronous=OFF;";
    if (options.access == Access::kReadWriteCreate) {
        // A new file can be made smaller again page by page; only an empty one takes this setting.
        script += "PRAGMA auto_vacuum=INCREMENTAL;";
        // The hook above replaces SQLite's own checkpoints; the owner calls checkpoint().
        script += "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;";
        // Debian's SQLite overwrites freed pages with zeros, all of which would go through the log.
        // FAST does so only within pages that are written anyway; gc gives free pages back.
        script += "PRAGMA secure_delete=FAST;";
        if (options.database_bytes_max > 0) {
            const std::int64_t page_bytes = 4096;
            script +=
                "PRAGMA max_page_count=" + std::to_string(options.database_bytes_max / page_bytes) +
                ";";
        }
    }
    return execute(script);
}

Connection::~Connection() {
    for (const CachedStatement& cached : statements_) sqlite3_finalize(cached.statement);
    sqlite3_close_v2(database_);
}

Error Connection::last_error(int code) {
    ++failure_count_;
    const char* message = database_ == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(database_);
    return make_error(code, message, path_, {});
}

Result<sqlite3_stmt*> Connection::compile(std::string_view sql) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) {
        Error error = last_error(code);
        error.context = std::string(sql.substr(0, kErrorSqlBytesMax));
        return error;
    }
    return statement;
}

Result<Statement> Connection::prepare(std::string_view sql) {
    const auto known = by_sql_.find(sql);
    if (known != by_sql_.end() && !known->second->is_lent) {
        statements_.splice(statements_.begin(), statements_, known->second);
        known->second->is_lent = true;
        return Statement(*this, known->second->statement, true);
    }
    TUNE_TRY(statement, compile(sql));
    if (known != by_sql_.end()) return Statement(*this, statement, false);
    statements_.push_front({std::string(sql), statement, true});
    by_sql_.emplace(statements_.front().sql, statements_.begin());
    by_statement_.emplace(statement, statements_.begin());
    trim_cache();
    return Statement(*this, statement, true);
}

void Connection::trim_cache() {
    auto candidate = statements_.end();
    while (statements_.size() > kStatementCacheMax && candidate != statements_.begin()) {
        --candidate;
        if (candidate->is_lent) continue;
        by_sql_.erase(candidate->sql);
        by_statement_.erase(candidate->statement);
        sqlite3_finalize(candidate->statement);
        candidate = statements_.erase(candidate);
    }
}

void Connection::give_back(sqlite3_stmt* statement, bool is_cached) {
    if (!is_cached) {
        sqlite3_finalize(statement);
        return;
    }
    sqlite3_reset(statement);
    // Bound text belongs to the borrower; no dangling pointer may stay behind.
    sqlite3_clear_bindings(statement);
    by_statement_.at(statement)->is_lent = false;
}

Result<void> Connection::execute(const std::string& script) {
    const int code = sqlite3_exec(database_, script.c_str(), nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return last_error(code);
    return {};
}

Result<void> Connection::add_predicate(const char* name, TextPredicate function) {
    const int code = sqlite3_create_function_v2(
        database_, name, 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
        reinterpret_cast<void*>(function), &call_predicate, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return last_error(code);
    return {};
}

int Connection::check_deadline(void* connection) {
    const auto* self = static_cast<const Connection*>(connection);
    return self->clock_.monotonic_ms() >= self->deadline_ms_ ? 1 : 0;
}

void Connection::set_time_limit(int limit_ms) {
    constexpr int kStepsBetweenChecks = 10'000;  // of SQLite's virtual machine: about 0.1 ms
    deadline_ms_ = clock_.monotonic_ms() + limit_ms;
    sqlite3_progress_handler(database_, limit_ms > 0 ? kStepsBetweenChecks : 0,
                             limit_ms > 0 ? &Connection::check_deadline : nullptr, this);
}

std::int64_t Connection::last_insert_row() const {
    return sqlite3_last_insert_rowid(database_);
}

std::int64_t Connection::changed_rows() const {
    return sqlite3_changes64(database_);
}

bool Connection::is_in_transaction() const {
    return sqlite3_get_autocommit(database_) == 0;
}

Result<LogPages> Connection::checkpoint() {
    LogPages pages;
    const int code = sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_PASSIVE,
                                               &pages.in_log, &pages.copied);
    if (code == SQLITE_OK) return pages;
    if ((code & 0xff) == SQLITE_BUSY) return LogPages{};
    return last_error(code);
}

}  // namespace tune::tracker::sqlite
