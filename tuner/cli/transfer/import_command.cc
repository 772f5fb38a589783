// tune import: another tracking store (mlflow.db, mlruns, a server, event files, Optuna) into a
// data folder.
//
// Done by this process, or by the server that holds the folder, which is found by the folder's
// lock. The source is opened first, so that a path that is no store makes no folder.

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tracker/client/local_servers.h"
#include "tracker/transfer/importer.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/local_server.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/transfer/import_job.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/cli/transfer/transfer_progress.h"
#include "tuner/cli/transfer/transfer_text.h"
#include "tuner/interop/optuna/optuna_db.h"

namespace tune::cli {
namespace {

/// Searches must end; reading a whole run back may take its time.
constexpr int kReadTimeout_ms = 3'600'000;

Result<tracker::TransferReport> import_here(const ImportCommand& options, tracker::Source& source,
                                            tracker::Store& store, TransferBar& bar,
                                            const std::function<bool()>& is_cancelled) {
    TUNE_TRY(artifacts,
             tracker::ArtifactStore::open(std::filesystem::path(options.data) / "artifacts"));
    ImportWatch watch;
    watch.on_progress = [&](const tracker::TransferProgress& progress) { bar.show(progress); };
    watch.is_cancelled = is_cancelled;
    return import_into(options, source, store, *artifacts, watch);
}

/// By this process, or by the server that holds the folder: {report, text, is_whole}.
Result<Json> import_anyhow(const ImportCommand& options) {
    Interrupts interrupts;
    const auto is_cancelled = [&interrupts] { return interrupts.has_signal(); };
    TransferBar bar("importing", is_terminal(STDERR_FILENO), options.quiet);
    // First: a source that is none makes no folder.
    TUNE_TRY(source, open_import_source(options));
    const auto store =
        tracker::Store::open({.directory = options.data, .read_timeout_ms = kReadTimeout_ms});
    if (store) {
        TUNE_TRY(report, import_here(options, *source, **store, bar, is_cancelled));
        return Json{{"report", report_json(report)},
                    {"text", report_text(report, "Imported", options.source, options.data)},
                    {"is_whole", report.is_whole()}};
    }
    TUNE_TRY(url, holder_for_import(store.error(), options.data));
    return import_by_server(options, url, is_cancelled);
}

/// What to do with a journal file of Optuna's, which holds several studies in a form of its own.
std::string journal_text(const std::string& source) {
    return "'" + source +
           "' is a journal file of Optuna; `tune import` reads Optuna's SQLite files. Copy the "
           "study "
           "into one with Python:\n"
           "  import optuna\n"
           "  from optuna.storages import JournalStorage\n"
           "  from optuna.storages.journal import JournalFileBackend\n"
           "  optuna.copy_study(from_study_name=\"NAME\", to_storage=\"sqlite:///study.db\",\n"
           "                    from_storage=JournalStorage(JournalFileBackend(\"" +
           source +
           "\")))\n"
           "and import that: tune import study.db";
}

/// With the folder that the named server serves, which takes the import over.
Result<ImportCommand> at_server(ImportCommand options) {
    if (options.server.empty()) return options;
    TUNE_TRY_VOID(check_server(options.server, kNamedServer_ms));
    const auto data = tracker::data_of_local_server(options.server);
    if (!data)
        return Error{Code::kInvalidParameterValue,
                     "the server at " + options.server +
                         " is not yours on this machine, and an import writes into its data "
                         "folder: run `tune import` where that folder is, with --data"};
    options.data = data->lexically_normal().string();
    return options;
}

}  // namespace

Error say_holder(Error error, const std::string& data) {
    if (error.code != Code::kResourceConflict) return error;
    error.message = "The data folder '" + data + "' is in use";
    if (const auto url = url_of_holder(data)) error.message += " by the server at " + *url;
    error.message += ". Stop it during the import, or import into another folder with --data. " +
                     std::exchange(error.context, {});
    return error;
}

int run_import(const ImportCommand& given) {
    const Result<ImportCommand> placed = at_server(given);
    if (!placed) return fail(placed.error(), given.json);
    const ImportCommand& options = *placed;
    const tuner::OptunaFile kind = tuner::optuna_file_kind(options.source);
    if (kind == tuner::OptunaFile::kJournal)
        return fail({Code::kInvalidParameterValue, journal_text(options.source)}, options.json);
    if (options.optuna || kind == tuner::OptunaFile::kDb) return run_import_optuna(options);
    const Result<Json> done = import_anyhow(options);
    if (!done) {
        const int code = fail(done.error(), options.json);
        return done.error().code == Code::kCancelled ? kExitInterrupted : code;
    }
    if (options.json)
        print_json((*done)["report"]);
    else
        print((*done)["text"].get<std::string>());
    return (*done)["is_whole"].get<bool>() ? kExitOk : kExitFailed;
}

}  // namespace tune::cli
