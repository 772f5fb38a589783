// A file system for SQLite that differs from the default one in write() of a log only: it grows the
// file ahead by zeros (log_file.h says why). That is safe because SQLite finds a log's end by
// checksum, and zeros have none; and because a failed extension is cut off again, so a full disk is
// reported by the write itself.

#include "tracker/sqlite/log_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>

namespace tune::tracker::sqlite {
namespace {

constexpr const char* kName = "tune";

/// SQLite allocates szOsFile bytes: this, and the default file system's file behind it.
struct LogFile {
    sqlite3_file head;
    sqlite3_int64 size_bytes;  // at least this much; only the writer's handle looks at it
};
static_assert(sizeof(LogFile) % alignof(sqlite3_int64) == 0);

LogFile* log_of(sqlite3_file* file) {
    return reinterpret_cast<LogFile*>(file);
}

sqlite3_file* real(sqlite3_file* file) {
    return reinterpret_cast<sqlite3_file*>(log_of(file) + 1);
}

int close(sqlite3_file* file) {
    return real(file)->pMethods->xClose(real(file));
}

int read(sqlite3_file* file, void* data, int count, sqlite3_int64 offset) {
    return real(file)->pMethods->xRead(real(file), data, count, offset);
}

/// Makes the file longer than `end` by zeros. What fails is undone: the write itself shall say so.
void extend(sqlite3_file* file, sqlite3_int64 end) {
    static constexpr std::array<char, kLogStepBytes / 4> kZeros{};
    sqlite3_file* const inner = real(file);
    sqlite3_int64 size = 0;
    if (inner->pMethods->xFileSize(inner, &size) != SQLITE_OK) return;
    const sqlite3_int64 wanted = (end / kLogStepBytes + 1) * kLogStepBytes;
    for (sqlite3_int64 at = size; at < wanted;) {
        const auto count = static_cast<int>(
            std::min<sqlite3_int64>(wanted - at, static_cast<sqlite3_int64>(kZeros.size())));
        if (inner->pMethods->xWrite(inner, kZeros.data(), count, at) != SQLITE_OK) {
            inner->pMethods->xTruncate(inner, size);
            return;
        }
        at += count;
    }
    log_of(file)->size_bytes = std::max(size, wanted);
}

int write(sqlite3_file* file, const void* data, int count, sqlite3_int64 offset) {
    if (offset + count > log_of(file)->size_bytes) extend(file, offset + count);
    return real(file)->pMethods->xWrite(real(file), data, count, offset);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
    log_of(file)->size_bytes = 0;
    return real(file)->pMethods->xTruncate(real(file), size);
}

int sync(sqlite3_file* file, int flags) {
    return real(file)->pMethods->xSync(real(file), flags);
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
    return real(file)->pMethods->xFileSize(real(file), size);
}

int lock(sqlite3_file* file, int level) {
    return real(file)->pMethods->xLock(real(file), level);
}

int unlock(sqlite3_file* file, int level) {
    return real(file)->pMethods->xUnlock(real(file), level);
}

int check_reserved_lock(sqlite3_file* file, int* is_locked) {
    return real(file)->pMethods->xCheckReservedLock(real(file), is_locked);
}

int file_control(sqlite3_file* file, int operation, void* argument) {
    return real(file)->pMethods->xFileControl(real(file), operation, argument);
}

int sector_size(sqlite3_file* file) {
    return real(file)->pMethods->xSectorSize(real(file));
}

int device_characteristics(sqlite3_file* file) {
    return real(file)->pMethods->xDeviceCharacteristics(real(file));
}

/// Version 1: shared memory and mapped pages belong to the database's own file.
constexpr sqlite3_io_methods make_methods() {
    sqlite3_io_methods methods{};
    methods.iVersion = 1;
    methods.xClose = &close;
    methods.xRead = &read;
    methods.xWrite = &write;
    methods.xTruncate = &truncate;
    methods.xSync = &sync;
    methods.xFileSize = &file_size;
    methods.xLock = &lock;
    methods.xUnlock = &unlock;
    methods.xCheckReservedLock = &check_reserved_lock;
    methods.xFileControl = &file_control;
    methods.xSectorSize = &sector_size;
    methods.xDeviceCharacteristics = &device_characteristics;
    return methods;
}
constexpr sqlite3_io_methods kLogMethods = make_methods();

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* flags_out) {
    auto* const original = static_cast<sqlite3_vfs*>(vfs->pAppData);
    if ((flags & SQLITE_OPEN_WAL) == 0)
        return original->xOpen(original, name, file, flags, flags_out);
    file->pMethods = nullptr;
    log_of(file)->size_bytes = 0;
    const int code = original->xOpen(original, name, real(file), flags, flags_out);
    if (real(file)->pMethods != nullptr) file->pMethods = &kLogMethods;
    return code;
}

template <auto Member, class... Arguments>
auto forward(sqlite3_vfs* vfs, Arguments... arguments) {
    auto* const original = static_cast<sqlite3_vfs*>(vfs->pAppData);
    return (original->*Member)(original, arguments...);
}

/// Everything of the default one but xOpen; its functions get itself, as they expect their own
/// pAppData.
sqlite3_vfs* make_vfs() {
    static sqlite3_vfs vfs{};
    sqlite3_vfs* const original = sqlite3_vfs_find(nullptr);
    if (original == nullptr) return nullptr;
    vfs.iVersion = 2;
    vfs.szOsFile = original->szOsFile + static_cast<int>(sizeof(LogFile));
    vfs.mxPathname = original->mxPathname;
    vfs.zName = kName;
    vfs.pAppData = original;
    vfs.xOpen = &open;
    vfs.xDelete = &forward<&sqlite3_vfs::xDelete, const char*, int>;
    vfs.xAccess = &forward<&sqlite3_vfs::xAccess, const char*, int, int*>;
    vfs.xFullPathname = &forward<&sqlite3_vfs::xFullPathname, const char*, int, char*>;
    vfs.xRandomness = &forward<&sqlite3_vfs::xRandomness, int, char*>;
    vfs.xSleep = &forward<&sqlite3_vfs::xSleep, int>;
    vfs.xCurrentTime = &forward<&sqlite3_vfs::xCurrentTime, double*>;
    vfs.xGetLastError = &forward<&sqlite3_vfs::xGetLastError, int, char*>;
    vfs.xCurrentTimeInt64 = &forward<&sqlite3_vfs::xCurrentTimeInt64, sqlite3_int64*>;
    return &vfs;
}

}  // namespace

const char* steady_log_vfs() {
    static const bool is_registered = [] {
        sqlite3_vfs* const vfs = make_vfs();
        return vfs != nullptr && sqlite3_vfs_register(vfs, 0) == SQLITE_OK;
    }();
    return is_registered ? kName : nullptr;
}

}  // namespace tune::tracker::sqlite
