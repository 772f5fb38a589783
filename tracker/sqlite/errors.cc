#include "tracker/sqlite/errors.h"

#include <sqlite3.h>

namespace tune::tracker::sqlite {

Error make_error(int sqlite_code, std::string_view sqlite_message, const std::string& path,
                 std::string_view what) {
    const std::string reason(sqlite_message);
    const std::string context(what);
    switch (sqlite_code & 0xff) {
        case SQLITE_FULL:
            return {Code::kTemporarilyUnavailable,
                    "The disk (or quota) that holds '" + path +
                        "' is full; nothing was changed. Free some space and try again.",
                    context};
        case SQLITE_IOERR:
            return {Code::kTemporarilyUnavailable,
                    "Reading or writing '" + path + "' failed (" + reason +
                        "); nothing was changed. Check the disk and try again.",
                    context};
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return {Code::kTemporarilyUnavailable,
                    "The database '" + path + "' is locked by another program; try again.",
                    context};
        case SQLITE_NOMEM:
            return {Code::kTemporarilyUnavailable,
                    "Out of memory while using '" + path + "'; try again later.", context};
        case SQLITE_READONLY:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
        case SQLITE_AUTH:
            return {Code::kPermissionDenied,
                    "Cannot open '" + path + "' for writing (" + reason +
                        "); check the permissions of the file and its directory.",
                    context};
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return {Code::kDataLoss,
                    "'" + path + "' is damaged or not a database (" + reason +
                        "); restore it from a copy.",
                    context};
        case SQLITE_INTERRUPT:
            return {Code::kDeadlineExceeded,
                    "The search took too long and was stopped; narrow it down.", context};
        case SQLITE_TOOBIG:
            return {Code::kInvalidParameterValue, "A value is too large to be stored.", context};
        default: return {Code::kInternalError, "SQLite: " + reason, context};
    }
}

}  // namespace tune::tracker::sqlite
