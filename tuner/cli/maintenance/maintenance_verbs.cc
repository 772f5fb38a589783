// What `tune gc`, `backup` and `restore` take on the command line.

#include "tuner/cli/maintenance/maintenance_verbs.h"

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "tuner/cli/options.h"

namespace tune::cli {
namespace {

void add_gc(CLI::App& app, MaintenanceArguments& parsed, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand(
        "gc", "remove deleted runs and experiments for good, also while a server runs");
    GcCommand& gc = parsed.gc;
    verb.add_option("--older-than", gc.older_than,
                    "only what was deleted at least this long ago (default: 30d; 0s with ids)");
    verb.add_option("--run-ids", gc.run_ids, "only these deleted runs")->delimiter(',');
    verb.add_option("--experiment-ids", gc.experiment_ids, "only these deleted experiments")
        ->delimiter(',');
    verb.add_flag("--dry-run", gc.dry_run, "only count what would be removed");
    verb.add_option("--server", gc.server,
                    "address of the server (default: the one that serves the folder)");
    verb.add_option("--data", gc.data, std::string("the folder (default: ") + kDefaultData + ")");
    verb.add_flag("--json", gc.json, "print JSON");
    verb.callback([&parsed, &chosen] { chosen = [&parsed] { return run_gc(parsed.gc); }; });
}

void add_backup(CLI::App& app, MaintenanceArguments& parsed, std::function<int()>& chosen) {
    CLI::App& verb =
        *app.add_subcommand("backup", "write the database to one file, also while a server runs");
    BackupCommand& backup = parsed.backup;
    verb.add_option("file", backup.file, "the file to create")->required();
    CLI::Option* data = verb.add_option("--data", backup.data, "the folder")->capture_default_str();
    verb.add_option("--server", backup.server, "address of a server; its backup is copied here")
        ->excludes(data);
    verb.add_flag("--with-artifacts", backup.with_artifacts, "include the artifacts");
    verb.add_flag("--json", backup.json, "print JSON");
    verb.callback([&parsed, &chosen] { chosen = [&parsed] { return run_backup(parsed.backup); }; });
}

void add_restore(CLI::App& app, MaintenanceArguments& parsed, std::function<int()>& chosen) {
    CLI::App& verb = *app.add_subcommand(
        "restore", "restore a backup into a folder, or a study that was removed");
    RestoreCommand& restore = parsed.restore;
    CLI::Option* file = verb.add_option("file", restore.file, "a file from `tune backup`");
    CLI::Option* study = verb.add_option(
        "--study", restore.study,
        "instead of a file: a study that `tune rm` removed, or whose experiment was deleted");
    file->excludes(study);
    verb.add_option("--server", restore.server, "with --study: address of the server")
        ->needs(study);
    CLI::Option* data =
        verb.add_option("--data", restore.data, "the folder")->capture_default_str();
    verb.add_flag("--force", restore.force, "overwrite existing data");
    verb.add_flag("--json", restore.json, "print JSON");
    verb.callback([&parsed, &chosen, file, study, data] {
        if (file->count() + study->count() == 0) throw CLI::RequiredError("file");
        chosen = [&parsed, study, data] {
            const RestoreCommand& wanted = parsed.restore;
            if (study->count() == 0) return run_restore(wanted);
            std::optional<std::string> folder;
            if (data->count() > 0) folder = wanted.data;
            return run_restore_study({.server = wanted.server,
                                      .data = folder,
                                      .study = *wanted.study,
                                      .json = wanted.json});
        };
    });
}

}  // namespace

void add_maintenance_verbs(CLI::App& app, MaintenanceArguments& arguments,
                           std::function<int()>& verb) {
    add_gc(app, arguments, verb);
    add_backup(app, arguments, verb);
    add_restore(app, arguments, verb);
}

}  // namespace tune::cli
