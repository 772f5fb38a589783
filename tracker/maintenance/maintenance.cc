// One job at a time (JobRunner). Names of backups are made here and checked before a file is
// touched, so that a route cannot name anything else in the folder.

#include "tracker/maintenance/maintenance.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text/time_text.h"
#include "tracker/artifacts/rooted_dir.h"

namespace tune::tracker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "tune-";
constexpr std::string_view kSuffix = ".backup";

/// The names that start_backup() gives; nothing else in the folder is touched.
bool is_backup_name(std::string_view name) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
    return name.find_first_not_of("0123456789TZ-", kPrefix.size()) == name.size() - kSuffix.size();
}

std::string name_of_time(std::int64_t now_ms) {
    return std::string(kPrefix) + utc_text(now_ms, "%Y%m%dT%H%M%SZ") + "-" +
           std::to_string(now_ms % 1000) + std::string(kSuffix);
}

Error no_backup(const std::string& name) {
    return {Code::kResourceDoesNotExist, "There is no backup '" + name + "'."};
}

}  // namespace

std::string to_json_text(const GarbageReport& report) {
    return to_text(Json{{"runs", report.runs},
                        {"experiments", report.experiments},
                        {"logged_models", report.logged_models},
                        {"metric_points", report.metric_points},
                        {"datasets", report.datasets},
                        {"names", report.names},
                        {"recorded_answers", report.answers},
                        {"artifact_folders", report.folders},
                        {"artifact_folders_elsewhere", report.folders_elsewhere},
                        {"artifact_folders_failed", report.folders_failed},
                        {"file_bytes_before", report.file_bytes_before},
                        {"file_bytes", report.file_bytes},
                        {"free_bytes", report.free_bytes}});
}

std::string to_json_text(const BackupReport& report) {
    return to_text(Json{{"file", report.file},
                        {"size_bytes", report.size_bytes},
                        {"sha256", report.sha256},
                        {"artifacts", report.artifact_count},
                        {"schema_version", report.schema_version}});
}

Result<JobRunner::State> Maintenance::start_collection(GarbageChoice choice, bool is_dry_run) {
    return jobs_.start("garbage collection",
                       [this, choice = std::move(choice),
                        is_dry_run](const Report& report) -> Result<std::string> {
                           if (is_dry_run) {
                               TUNE_TRY(sum, count_garbage(store_, choice, report));
                               return to_json_text(sum);
                           }
                           TUNE_TRY(sum, collect_garbage(store_, artifacts_, choice, report));
                           if (after_collection_) TUNE_TRY_VOID(after_collection_());
                           return to_json_text(sum);
                       });
}

Result<JobRunner::State> Maintenance::start_backup(bool with_artifacts) {
    return jobs_.start("backup", [this, with_artifacts](const Report& report) {
        return backup(with_artifacts, report);
    });
}

Result<std::string> Maintenance::backup(bool with_artifacts, const Report& report) const {
    TUNE_TRY(there, backups());
    if (there.size() >= kBackupsMax)
        return Error{Code::kResourceExhausted,
                     "There are " + std::to_string(there.size()) + " backups in '" +
                         folder().string() +
                         "', which is the limit. Delete one of them first (DELETE "
                         "/api/2.0/tune/backups/NAME)."};
    std::error_code error;
    fs::create_directories(folder(), error);
    if (error) return disk_error(folder().string(), error.value());
    const std::string name = name_of_time(clock_.now_ms());
    TUNE_TRY(sum, write_backup(data_, folder() / name, with_artifacts, report));
    sum.file = name;
    return to_json_text(sum);
}

Result<std::vector<BackupFile>> Maintenance::backups() const {
    std::vector<BackupFile> found;
    std::error_code error;
    for (fs::directory_iterator at(folder(), error), end; !error && at != end;
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        struct stat about {};
        if (!is_backup_name(name) || ::lstat(at->path().c_str(), &about) != 0 ||
            !S_ISREG(about.st_mode))
            continue;
        found.push_back({name, static_cast<std::uint64_t>(about.st_size), about.st_mtime});
    }
    if (error && error.value() != ENOENT) return disk_error(folder().string(), error.value());
    std::sort(found.begin(), found.end(),
              [](const BackupFile& a, const BackupFile& b) { return a.name < b.name; });
    return found;
}

Result<OpenArtifact> Maintenance::open_backup(const std::string& name) const {
    if (!is_backup_name(name)) return no_backup(name);
    UniqueFd file(::open((folder() / name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat about {};
    if (!file || ::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))
        return no_backup(name);
    OpenArtifact opened;
    opened.file = std::make_shared<const UniqueFd>(std::move(file));
    opened.size_bytes = static_cast<std::uint64_t>(about.st_size);
    opened.modified_s = about.st_mtime;
    opened.etag = "\"" + name + "-" + std::to_string(about.st_size) + "\"";
    return opened;
}

Result<void> Maintenance::remove_backup(const std::string& name) const {
    if (!is_backup_name(name)) return no_backup(name);
    if (::unlink((folder() / name).c_str()) == 0) return {};
    if (errno == ENOENT) return no_backup(name);
    return disk_error((folder() / name).string(), errno);
}

}  // namespace tune::tracker
