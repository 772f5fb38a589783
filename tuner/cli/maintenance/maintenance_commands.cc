// `tune gc` asks the server (or opens the folder) and follows the job; `backup` and `restore` work
// on the folder themselves, since a backup may be taken while a server runs and a restore must not.
// All three show progress in one line and stop at Ctrl-C; nothing is printed to stdout before the
// result.

#include "tuner/cli/maintenance/maintenance_commands.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/text/counted.h"
#include "tracker/maintenance/backup.h"
#include "tracker/maintenance/maintenance.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/transfer/backup_download.h"
#include "tuner/cli/transfer/server_job.h"
#include "tuner/config/study_config.h"

namespace tune::cli {
namespace {

/// How far long work is, on stderr, once it takes longer than a second: one line that is redrawn on
/// a terminal, else a line every ten seconds.
class ProgressLine {
public:
    ~ProgressLine() { clear(); }

    void show(const std::string& phase, std::int64_t done, std::int64_t total) {
        const std::int64_t now_ms = clock_.monotonic_ms();
        if (now_ms < next_ms_) return;
        next_ms_ = now_ms + (is_live_ ? 100 : 10'000);
        std::string text = phase + " " + std::to_string(done);
        if (total > 0)
            text +=
                " of " + std::to_string(total) + " (" + std::to_string(done * 100 / total) + "%)";
        std::fprintf(stderr, is_live_ ? "\r\x1b[K%s" : "%s\n", text.c_str());
        is_shown_ = is_live_;
    }

    void clear() {
        if (is_shown_) std::fprintf(stderr, "\r\x1b[K");
        is_shown_ = false;
    }

private:
    SystemClock clock_;
    const bool is_live_ = is_terminal(STDERR_FILENO);
    bool is_shown_ = false;
    std::int64_t next_ms_ = clock_.monotonic_ms() + 1000;
};

/// "1.2 GB".
std::string bytes_text(double bytes) {
    const char* unit = "B";
    for (const char* larger : {"kB", "MB", "GB", "TB"}) {
        if (bytes < 1000) break;
        bytes /= 1000;
        unit = larger;
    }
    char text[40];
    std::snprintf(text, sizeof text, bytes < 10 && *unit != 'B' ? "%.1f %s" : "%.0f %s", bytes,
                  unit);
    return text;
}

std::string count_of(const Json& result, const char* name, std::string_view one,
                     std::string_view many = {}) {
    return counted(result.value(name, std::int64_t{0}), one, many);
}

std::string gc_text(const Json& result, bool dry_run, const std::string& where) {
    std::string text = dry_run ? "would remove " : "removed ";
    text += count_of(result, "runs", "run") + ", " + count_of(result, "experiments", "experiment") +
            ", " + count_of(result, "logged_models", "logged model") + ", " +
            count_of(result, "metric_points", "metric point");
    if (dry_run) return text + " from " + where + "\n";
    text += ", " + count_of(result, "datasets", "dataset") + ", " +
            count_of(result, "names", "name") + ", " +
            count_of(result, "artifact_folders", "artifact folder") + " from " + where + "\n";
    if (result.value("artifact_folders_elsewhere", 0) > 0)
        text += count_of(result, "artifact_folders_elsewhere", "artifact folder is",
                         "artifact folders are") +
                " stored elsewhere and not touched\n";
    if (result.value("artifact_folders_failed", 0) > 0)
        text += count_of(result, "artifact_folders_failed", "artifact folder") +
                " could not be removed; the next gc will retry\n";
    const double before = result.value("file_bytes_before", 0.0);
    const double after = result.value("file_bytes", 0.0);
    const double free_bytes = result.value("free_bytes", 0.0);
    text += "database: " + bytes_text(before) + " before, " + bytes_text(after) + " now";
    if (free_bytes > 0) text += ", " + bytes_text(free_bytes) + " of it free for later writes";
    return text + "\n";
}

Result<Json> gc_body(const GcCommand& options) {
    Json body = {{"dry_run", options.dry_run}};
    if (!options.run_ids.empty()) body["run_ids"] = options.run_ids;
    if (!options.experiment_ids.empty()) body["experiment_ids"] = options.experiment_ids;
    if (!options.older_than) return body;
    TUNE_TRY(older_than_ms, tuner::parse_duration_ms(*options.older_than));
    body["older_than_ms"] = older_than_ms;
    return body;
}

/// A report that draws the line and ends the work at Ctrl-C.
tracker::Report reporter(ProgressLine& line, Interrupts& interrupts) {
    return [&](const tracker::Progress& progress) {
        line.show(progress.phase, progress.done, progress.total);
        return !interrupts.has_signal();
    };
}

/// The server makes the backup, which is copied into the file and deleted there.
Result<tracker::BackupReport> fetch_backup(const BackupCommand& options, ProgressLine& line,
                                           const std::function<bool()>& is_cancelled,
                                           const tracker::Report& report) {
    std::error_code ignored;
    if (std::filesystem::exists(options.file, ignored))
        return Error{Code::kResourceAlreadyExists,
                     "'" + options.file + "' is there already; choose another name."};
    TUNE_TRY_VOID(check_server(*options.server, kNamedServer_ms));
    TUNE_TRY(backend, remote_backend(*options.server));
    TUNE_TRY(made,
             run_server_job(
                 *backend, "/api/2.0/tune/backups", {{"with_artifacts", options.with_artifacts}},
                 [&](const auto&... progress) { line.show(progress...); }, is_cancelled));
    tracker::BackupReport backup;
    backup.file = options.file;
    backup.size_bytes = made.value("size_bytes", std::uint64_t{0});
    backup.sha256 = made.value("sha256", "");
    backup.artifact_count = made.value("artifacts", std::int64_t{0});
    backup.schema_version = made.value("schema_version", std::int64_t{0});
    const auto show = [&](std::uint64_t bytes) {
        return report({.phase = "bytes",
                       .done = static_cast<std::int64_t>(bytes),
                       .total = static_cast<std::int64_t>(backup.size_bytes)});
    };
    TUNE_TRY_VOID(download_backup(*options.server, made.value("file", ""), backup.size_bytes,
                                  options.file, show));
    return backup;
}

/// Prints what a backup or restore has given; the exit code.
int finish(const Result<tracker::BackupReport>& report, bool is_interrupted, bool json,
           const std::string& text) {
    if (is_interrupted) {
        std::fprintf(stderr, "tune: interrupted; nothing has changed\n");
        return kExitInterrupted;
    }
    if (!report) return fail(report.error(), json);
    if (json)
        print(tracker::to_json_text(*report) + "\n");
    else
        print(text);
    return kExitOk;
}

}  // namespace

int run_gc(const GcCommand& options) {
    const Result<Json> body = gc_body(options);
    if (!body) return fail(body.error(), options.json);
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    ProgressLine line;
    const Result<Json> result = run_server_job(
        **backend, "/api/2.0/tune/gc", *body,
        [&](const auto&... progress) { line.show(progress...); }, [] { return false; });
    line.clear();
    if (!result) return fail(result.error(), options.json);
    if (options.json)
        print_json(*result);
    else
        print(gc_text(*result, options.dry_run, (*backend)->where()));
    return kExitOk;
}

int run_backup(const BackupCommand& options) {
    Interrupts interrupts;
    ProgressLine line;
    const tracker::Report progress = reporter(line, interrupts);
    const auto is_cancelled = [&interrupts] { return interrupts.has_signal(); };
    const Result<tracker::BackupReport> report =
        options.server
            ? fetch_backup(options, line, is_cancelled, progress)
            : tracker::write_backup(options.data, options.file, options.with_artifacts, progress);
    line.clear();
    std::string text;
    if (report)
        text = "wrote " + options.file + ": " +
               bytes_text(static_cast<double>(report->size_bytes)) + ", " +
               counted(static_cast<std::int64_t>(report->artifact_count), "artifact") +
               ", SHA-256 " + report->sha256 + "\n";
    return finish(report, interrupts.signal() != 0, options.json, text);
}

int run_restore(const RestoreCommand& options) {
    Interrupts interrupts;
    ProgressLine line;
    const Result<tracker::BackupReport> report = tracker::restore_backup(
        options.file, options.data, options.force, reporter(line, interrupts));
    line.clear();
    std::string text;
    if (report)
        text = "restored " + options.data + " from " + options.file + " with " +
               counted(static_cast<std::int64_t>(report->artifact_count), "artifact") + "\n";
    return finish(report, interrupts.signal() != 0, options.json, text);
}

}  // namespace tune::cli
