// A backup is one snapshot plus the files as they are when they are copied; a file that vanishes
// meanwhile was deleted meanwhile. A restore prepares everything beside the old data, durable and
// checked; a rename of the database is the moment that counts, and before it the old data are
// whole.

#include "tracker/maintenance/backup.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/system/file.h"
#include "base/version.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/artifacts/rooted_dir.h"
#include "tracker/maintenance/backup_file.h"
#include "tracker/sqlite/connection.h"
#include "tracker/sqlite/copy.h"
#include "tracker/store/lock_file.h"
#include "tracker/store/migrations/schema.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;
constexpr std::size_t kCopyBytes = 256 << 10;
constexpr std::size_t kManifestBytesMax = 64 << 10;

/// A file or folder that is removed at the end, whatever happens.
class Scrap {
public:
    explicit Scrap(fs::path path) : path_(std::move(path)) {}
    ~Scrap() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    Scrap(const Scrap&) = delete;
    Scrap& operator=(const Scrap&) = delete;
    [[nodiscard]] const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

Result<void> report_progress(const Report& report, const char* phase, std::uint64_t done,
                             std::uint64_t total) {
    if (report({phase, static_cast<std::int64_t>(done), static_cast<std::int64_t>(total)}))
        return {};
    return job_stopped();
}

Result<std::int64_t> schema_of(const std::string& path) {
    TUNE_TRY(connection,
             sqlite::Connection::open(path, {.access = sqlite::Access::kReadImmutable}));
    TUNE_TRY(version, stored_schema_version(*connection));
    return std::int64_t{version};
}

/// Copies `size_bytes` of an open file into the entry that was begun for it.
Result<void> copy_in(BackupWriter& writer, int fd, std::uint64_t size_bytes,
                     const std::string& name, const Report& report, const char* phase) {
    std::string buffer(kCopyBytes, '\0');
    for (std::uint64_t at = 0; at < size_bytes;) {
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size_bytes - at));
        const ssize_t got = ::pread(fd, buffer.data(), wanted, static_cast<off_t>(at));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error(name, errno);
        if (got == 0)
            return Error{Code::kDataLoss, "'" + name + "' became shorter while it was read."};
        TUNE_TRY_VOID(writer.write({buffer.data(), static_cast<std::size_t>(got)}));
        at += static_cast<std::uint64_t>(got);
        TUNE_TRY_VOID(report_progress(report, phase, at, size_bytes));
    }
    return {};
}

/// All files under `folder`, one after the other. Memory: one listing per level.
Result<void> add_artifacts(BackupWriter& writer, const ArtifactStore& artifacts,
                           const std::string& folder, std::int64_t& count, const Report& report) {
    TUNE_TRY(entries, artifacts.list(folder));
    for (const ArtifactEntry& entry : entries) {
        const std::string path = folder.empty() ? entry.name : folder + "/" + entry.name;
        if (entry.is_directory) {
            TUNE_TRY_VOID(add_artifacts(writer, artifacts, path, count, report));
            continue;
        }
        Result<OpenArtifact> opened = artifacts.open_file(path);
        if (!opened && opened.error().code == Code::kResourceDoesNotExist) continue;  // deleted
        if (!opened) return opened.error();
        TUNE_TRY_VOID(writer.begin(std::string(kBackupArtifacts) + path, opened->size_bytes));
        TUNE_TRY_VOID(copy_in(writer, opened->file->get(), opened->size_bytes, path, report,
                              "artifact bytes"));
        TUNE_TRY_VOID(report_progress(report, "artifacts", static_cast<std::uint64_t>(++count), 0));
    }
    return {};
}

/// The checked copy of the database at `copy`; its schema.
Result<std::int64_t> snapshot_database(const fs::path& data, const fs::path& copy,
                                       const Report& report) {
    const fs::path source = data / "tune.db";
    std::error_code ignored;
    if (!fs::exists(source, ignored))
        return Error{Code::kResourceDoesNotExist,
                     "There is no database of tune in '" + data.string() + "'."};
    TUNE_TRY_VOID(sqlite::copy_database(source.string(), copy.string(),
                                        [&](std::int64_t done, std::int64_t total) {
                                            return report({"pages", done, total});
                                        }));
    TUNE_TRY_VOID(report_progress(report, "checking", 0, 0));
    TUNE_TRY_VOID(sqlite::check_database(copy.string()));
    return schema_of(copy.string());
}

}  // namespace

Result<BackupReport> write_backup(const fs::path& data, const fs::path& file, bool with_artifacts,
                                  const Report& report) {
    TUNE_TRY(writer, BackupWriter::create(file));
    const Scrap copy(file.string() + ".db-" + random_hex(8));
    BackupReport sum{.file = file.string()};
    TUNE_TRY(schema, snapshot_database(data, copy.path(), report));
    sum.schema_version = schema;
    const UniqueFd database(::open(copy.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (!database) return disk_error(copy.path().string(), errno);
    const std::uint64_t database_bytes = fs::file_size(copy.path());
    const Json manifest = {{"format", kFormat},
                           {"tune_version", kVersion},
                           {"schema_version", schema},
                           {"created_ms", SystemClock().now_ms()},
                           {"database_bytes", database_bytes},
                           {"with_artifacts", with_artifacts}};
    TUNE_TRY_VOID(writer->add(kBackupManifest, to_text(manifest) + "\n"));
    TUNE_TRY_VOID(writer->begin(kBackupDatabase, database_bytes));
    TUNE_TRY_VOID(copy_in(*writer, database.get(), database_bytes, copy.path().string(), report,
                          "database bytes"));
    std::error_code ignored;
    if (with_artifacts && fs::exists(data / "artifacts", ignored)) {
        TUNE_TRY(artifacts, ArtifactStore::open(data / "artifacts"));
        TUNE_TRY_VOID(add_artifacts(*writer, *artifacts, "", sum.artifact_count, report));
    }
    TUNE_TRY(digest, writer->finish());
    sum.sha256 = std::move(digest);
    sum.size_bytes = writer->size_bytes();
    return sum;
}

// --- the way back --------------------------------------------------------------------------------

namespace {

/// Writes the entry that is being read to a new durable file.
Result<void> extract(BackupReader& reader, const fs::path& target, const Report& report) {
    const UniqueFd file(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file) return disk_error(target.string(), errno);
    for (;;) {
        TUNE_TRY(piece, reader.read());
        if (piece.empty()) break;
        if (!write_all(file.get(), piece)) return disk_error(target.string(), errno);
        TUNE_TRY_VOID(report_progress(report, "bytes", reader.position(), reader.size_bytes()));
    }
    if (::fsync(file.get()) != 0) return disk_error(target.string(), errno);
    return {};
}

Result<void> extract_artifact(BackupReader& reader, const ArtifactStore& artifacts,
                              std::string_view path, const Report& report) {
    TUNE_TRY(upload, artifacts.begin_upload(path));
    for (;;) {
        TUNE_TRY(piece, reader.read());
        if (piece.empty()) break;
        TUNE_TRY_VOID(upload->write(piece));
        TUNE_TRY_VOID(report_progress(report, "bytes", reader.position(), reader.size_bytes()));
    }
    return upload->commit();
}

Error not_ours(const BackupReader::Entry& entry) {
    return {Code::kInvalidParameterValue,
            "The backup holds '" + entry.name + "', which no backup of tune holds."};
}

Result<bool> read_manifest(BackupReader& reader) {
    TUNE_TRY(entry, reader.next());
    if (!entry || entry->name != kBackupManifest)
        return Error{Code::kInvalidParameterValue, "The file is not a backup of tune."};
    TUNE_TRY(text, reader.read_all(kManifestBytesMax));
    const Result<Json> manifest = parse_json(text);
    if (!manifest || !manifest->is_object() || !manifest->contains("format") ||
        !(*manifest)["format"].is_number_integer())
        return Error{Code::kInvalidParameterValue, "The file is not a backup of tune."};
    if ((*manifest)["format"].get<int>() != kFormat)
        return Error{Code::kInvalidParameterValue,
                     "The backup was written by a newer version of tune; use that version."};
    return manifest->value("with_artifacts", Json(false)) == Json(true);
}

Result<void> refuse_to_overwrite(const fs::path& data, bool with_artifacts, bool overwrite) {
    if (overwrite) return {};
    std::error_code ignored;
    std::string there;
    if (fs::exists(data / "tune.db", ignored)) there = "a database";
    if (with_artifacts && fs::exists(data / "artifacts", ignored) &&
        !fs::is_empty(data / "artifacts", ignored))
        there = there.empty() ? "artifacts" : "a database and artifacts";
    if (there.empty()) return {};
    return Error{Code::kResourceAlreadyExists,
                 "There are data in '" + data.string() + "' already (" + there +
                     "); restore into another folder, or overwrite them with --force."};
}

/// The log of the old database must not be taken for one of the new: it is emptied into the old
/// one, or, when that is damaged, removed.
Result<void> settle_old_log(const fs::path& data) {
    const fs::path old = data / "tune.db";
    std::error_code ignored;
    if (fs::exists(old, ignored)) {
        // The last connection that closes empties and removes the log.
        const auto connection = sqlite::Connection::open(old.string(), {});
        if (connection)
            static_cast<void>((*connection)->execute("PRAGMA wal_checkpoint(TRUNCATE)"));
    }
    for (const char* name : {"tune.db-wal", "tune.db-shm"}) {
        std::error_code error;
        fs::remove(data / name, error);
        if (error) return disk_error((data / name).string(), error.value());
    }
    return {};
}

Result<void> sync_folder(const fs::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd && ::fsync(fd.get()) == 0) return {};
    return disk_error(folder.string(), errno);
}

/// Puts `from` in the place of `to`; what was there is `from` then.
Result<void> exchange(const fs::path& from, const fs::path& to) {
    std::error_code ignored;
    const unsigned flags = fs::exists(to, ignored) ? RENAME_EXCHANGE : RENAME_NOREPLACE;
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return {};
    return disk_error(to.string(), errno);
}

/// Reads everything into `scratch`, checked and durable. The number of artifacts.
Result<std::int64_t> unpack(BackupReader& reader, const fs::path& scratch, bool with_artifacts,
                            const Report& report) {
    std::unique_ptr<ArtifactStore> artifacts;
    if (with_artifacts) {
        TUNE_TRY(opened, ArtifactStore::open(scratch / "artifacts"));
        artifacts = std::move(opened);
    }
    bool has_database = false;
    std::int64_t count = 0;
    for (;;) {
        TUNE_TRY(entry, reader.next());
        if (!entry) break;
        const std::string_view name = entry->name;
        if (name == kBackupDatabase && !has_database) {
            TUNE_TRY_VOID(extract(reader, scratch / "tune.db", report));
            has_database = true;
        } else if (artifacts && name.starts_with(kBackupArtifacts)) {
            TUNE_TRY_VOID(
                extract_artifact(reader, *artifacts, name.substr(kBackupArtifacts.size()), report));
            ++count;
        } else {
            return not_ours(*entry);
        }
    }
    if (!has_database) return Error{Code::kDataLoss, "The backup holds no database."};
    return count;
}

}  // namespace

Result<BackupReport> restore_backup(const fs::path& file, const fs::path& data, bool overwrite,
                                    const Report& report) {
    TUNE_TRY(reader, BackupReader::open(file));
    TUNE_TRY(with_artifacts, read_manifest(*reader));
    TUNE_TRY_VOID(refuse_to_overwrite(data, with_artifacts, overwrite));
    const Scrap scratch(data / ("restore-" + random_hex(8)));
    std::error_code error;
    fs::create_directories(scratch.path(), error);
    if (error) return disk_error(scratch.path().string(), error.value());
    TUNE_TRY(lock, LockFile::take(data / "tune.lock"));
    BackupReport sum{.file = file.string(), .size_bytes = reader->size_bytes()};
    TUNE_TRY(count, unpack(*reader, scratch.path(), with_artifacts, report));
    sum.artifact_count = count;
    const fs::path database = scratch.path() / "tune.db";
    TUNE_TRY_VOID(report_progress(report, "checking", 0, 0));
    TUNE_TRY_VOID(sqlite::check_database(database.string()));
    TUNE_TRY(schema, schema_of(database.string()));
    if (schema > schema_version())
        return Error{Code::kInvalidParameterValue,
                     "The backup was written by a newer version of tune (schema " +
                         std::to_string(schema) + ", this program knows up to " +
                         std::to_string(schema_version()) + "); use that version."};
    sum.schema_version = schema;
    TUNE_TRY_VOID(settle_old_log(data));
    if (with_artifacts) TUNE_TRY_VOID(exchange(scratch.path() / "artifacts", data / "artifacts"));
    if (::rename(database.c_str(), (data / "tune.db").c_str()) != 0)
        return disk_error((data / "tune.db").string(), errno);
    TUNE_TRY_VOID(sync_folder(data));
    return sum;
}

}  // namespace tune::tracker
