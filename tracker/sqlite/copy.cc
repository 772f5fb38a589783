#include "tracker/sqlite/copy.h"

#include <sqlite3.h>

#include <memory>

#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/errors.h"

namespace tune::tracker::sqlite {
namespace {

/// 1 MB between two looks at the progress.
constexpr int kPagesAtOnce = 256;
constexpr int kBusyTimeoutMs = 10'000;

struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Handle = std::unique_ptr<sqlite3, Close>;

Result<Handle> open(const std::string& path, int flags) {
    sqlite3* database = nullptr;
    const int code =
        sqlite3_open_v2(path.c_str(), &database, flags | SQLITE_OPEN_EXRESCODE, nullptr);
    Handle handle(database);
    if (code != SQLITE_OK) return make_error(code, sqlite3_errstr(code), path, {});
    sqlite3_busy_timeout(database, kBusyTimeoutMs);
    return handle;
}

Result<void> execute(const Handle& handle, const char* sql, const std::string& path) {
    const int code = sqlite3_exec(handle.get(), sql, nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return {};
    return make_error(code, sqlite3_errmsg(handle.get()), path, {});
}

Result<void> copy_pages(sqlite3_backup* backup, const Handle& target, const std::string& path,
                        const CopyProgress& progress) {
    for (;;) {
        const int code = sqlite3_backup_step(backup, kPagesAtOnce);
        const std::int64_t total = sqlite3_backup_pagecount(backup);
        const std::int64_t left = sqlite3_backup_remaining(backup);
        if (code == SQLITE_DONE) return {};
        if (code != SQLITE_OK && code != SQLITE_BUSY && code != SQLITE_LOCKED)
            return make_error(code, sqlite3_errmsg(target.get()), path, {});
        if (!progress(total - left, total))
            return Error{Code::kCancelled, "The copy was stopped before its end."};
    }
}

}  // namespace

Result<void> copy_database(const std::string& source, const std::string& target,
                           const CopyProgress& progress) {
    TUNE_TRY(from, open(source, SQLITE_OPEN_READONLY));
    // The read lock holds the snapshot: without it every commit would make the copy begin anew.
    TUNE_TRY_VOID(execute(from, "BEGIN; SELECT 1 FROM sqlite_schema", source));
    TUNE_TRY(to, open(target, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
    // The caller makes it durable; a copy that breaks off is thrown away.
    TUNE_TRY_VOID(execute(to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", target));
    sqlite3_backup* backup = sqlite3_backup_init(to.get(), "main", from.get(), "main");
    if (backup == nullptr)
        return make_error(sqlite3_errcode(to.get()), sqlite3_errmsg(to.get()), target, {});
    Result<void> copied = copy_pages(backup, to, target, progress);
    const int code = sqlite3_backup_finish(backup);
    if (copied && code != SQLITE_OK) return make_error(code, sqlite3_errmsg(to.get()), target, {});
    return copied;
}

Result<void> check_database(const std::string& path) {
    TUNE_TRY(connection, Connection::open(path, {.access = Access::kReadImmutable}));
    TUNE_TRY(select, connection->prepare("PRAGMA integrity_check(1)"));
    TUNE_TRY(has_row, select.step());
    if (has_row && select.text(0) == "ok") return {};
    return Error{Code::kDataLoss, "The database '" + path + "' is damaged: " +
                                      (has_row ? std::string(select.text(0)) : "no answer") + "."};
}

}  // namespace tune::tracker::sqlite
