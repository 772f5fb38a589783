#pragma once
// The only folder that names SQLite. Connections are used by one thread at a time; nothing here
// throws, and every failure is a Result with a sentence (errors.h).

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "tracker/sqlite/statement.h"

struct sqlite3;
struct sqlite3_stmt;

namespace tune::tracker::sqlite {

enum class Access {
    kReadWriteCreate,
    kReadOnly,
    /// For a file that nobody else has open: no locks, no -shm or -wal beside it, and a log that is
    /// there is not looked at.
    kReadImmutable,
    /// A new file for another program: rollback journal in memory and no fsync, so a crash leaves
    /// rubbish. The owner writes under a temporary name and syncs at the end.
    kWriteOnce,
};

/// The largest value that is read from a file of another program (a dataset's profile has at most
/// 16 MB in MLflow); a hostile file could otherwise hold a value of 1 GB.
inline constexpr int kForeignValueBytesMax = 64 << 20;

struct ConnectionOptions {
    Access access = Access::kReadWriteCreate;
    /// Page cache of this connection.
    int cache_kib = 2048;
    /// Largest size of the database file; 0 = no own limit. Only for the writer.
    std::int64_t database_bytes_max = 0;
    /// How long to wait for a lock of another connection.
    int busy_timeout_ms = 10'000;
    /// A file of another program: values over kForeignValueBytesMax are errors, and large sorts go
    /// to disk.
    bool is_foreign = false;
};

/// Prepared statements kept by a connection; the least recently used goes. The store's fixed
/// statements are about 80; searches add their own.
inline constexpr std::size_t kStatementCacheMax = 128;

/// What a checkpoint found in the write-ahead log, and how much of that is in the database now.
/// Both are 0 when another connection was at it.
struct LogPages {
    int in_log = 0;
    int copied = 0;
};

class Connection {
public:
    /// Opens `path` in WAL mode with synchronous=FULL: a commit that returned is on disk.
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::string& path,
                                                                  ConnectionOptions options);
    ~Connection();
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    /// A prepared statement for `sql` (one statement), from the cache when it is there and not in
    /// use. O(1) when cached; preparing costs some 10 us.
    [[nodiscard]] Result<Statement> prepare(std::string_view sql);

    /// Runs all statements of `script`.
    [[nodiscard]] Result<void> execute(const std::string& script);

    /// Adds the SQL function name(text, text) -> 0/1, NULL if either is NULL. `function` must be
    /// pure.
    using TextPredicate = bool (*)(std::string_view, std::string_view);
    [[nodiscard]] Result<void> add_predicate(const char* name, TextPredicate function);

    [[nodiscard]] std::int64_t last_insert_row() const;
    /// Rows changed by the last INSERT, UPDATE or DELETE.
    [[nodiscard]] std::int64_t changed_rows() const;
    /// True between BEGIN and COMMIT or ROLLBACK; SQLite may roll back by itself after an error.
    [[nodiscard]] bool is_in_transaction() const;

    /// Pages in the write-ahead log after the last commit of this connection.
    [[nodiscard]] int wal_pages() const { return wal_pages_; }
    /// Copies the log into the database as far as readers allow, without waiting for them.
    [[nodiscard]] Result<LogPages> checkpoint();

    /// Grows with every error of SQLite: distinguishes a refused command from a failed one.
    [[nodiscard]] std::int64_t failure_count() const { return failure_count_; }

    /// Statements are stopped (kDeadlineExceeded) this long after this call; 0 = never. For
    /// searches.
    void set_time_limit(int limit_ms);

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    friend class Statement;
    static int check_deadline(void* connection);

    struct CachedStatement {
        std::string sql;
        sqlite3_stmt* statement = nullptr;
        bool is_lent = false;
    };

    explicit Connection(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] Result<void> configure(const ConnectionOptions& options);
    [[nodiscard]] Error last_error(int code);
    [[nodiscard]] Result<sqlite3_stmt*> compile(std::string_view sql);
    void give_back(sqlite3_stmt* statement, bool is_cached);
    void trim_cache();

    std::string path_;
    sqlite3* database_ = nullptr;
    int wal_pages_ = 0;
    std::int64_t failure_count_ = 0;
    std::int64_t deadline_ms_ = 0;
    SystemClock clock_;  // only for the time limit, which is real time by nature
    std::list<CachedStatement> statements_;  // most recently used first
    std::unordered_map<std::string_view, std::list<CachedStatement>::iterator> by_sql_;
    std::unordered_map<sqlite3_stmt*, std::list<CachedStatement>::iterator> by_statement_;
};

}  // namespace tune::tracker::sqlite
