#pragma once
// Backups of a data directory in one file, while others read and write; and the way back.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"
#include "tracker/maintenance/job.h"

namespace tune::tracker {

struct BackupReport {
    std::string file = {};
    std::uint64_t size_bytes = 0;
    std::string sha256 = {};
    std::int64_t artifact_count = 0;
    std::int64_t schema_version = 0;
};

/// Writes a backup of `data` to the new file `file`: one snapshot of the database, so everything
/// that was answered before the call, and, with_artifacts, the files as they are when their turn
/// comes. A server may run on the folder, in this process or another one. The copy of the database
/// is checked before it counts. Needs room for the database twice. Blocks; memory: 2 MB. Errors:
/// kResourceDoesNotExist when there is no database, kResourceAlreadyExists, kCancelled,
/// kResourceExhausted (disk), kDataLoss when the database is damaged. Nothing remains then.
[[nodiscard]] Result<BackupReport> write_backup(const std::filesystem::path& data,
                                                const std::filesystem::path& file,
                                                bool with_artifacts, const Report& report);

/// Puts the backup `file` into `data`, made if missing. Everything is read, checked (digest, data
/// base, schema) and durable beside the old data before those change; then the artifacts are
/// exchanged (if the backup has any) and the database is renamed into place, which is the moment
/// that counts. Errors: kResourceConflict while a server runs there; kResourceAlreadyExists when
/// there are data and `overwrite` is not set; kInvalidParameterValue for what is no backup, or of a
/// newer version; kDataLoss for a damaged one. Until that moment the old data are untouched.
[[nodiscard]] Result<BackupReport> restore_backup(const std::filesystem::path& file,
                                                  const std::filesystem::path& data, bool overwrite,
                                                  const Report& report);

}  // namespace tune::tracker
