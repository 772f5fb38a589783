// tune import: another tracking store into a data folder.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "tracker/transfer/importer.h"
#include "tracker/transfer/source/open_source.h"
#include "tuner/cli/local_server.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/cli/transfer/transfer_progress.h"
#include "tuner/cli/transfer/transfer_text.h"
#include "tuner/interop/optuna/optuna_db.h"

namespace tune::cli {
namespace {

/// Searches must end; reading a whole run back may take its time.
constexpr int kReadTimeout_ms = 3'600'000;

Result<tracker::TransferReport> import_into(const ImportCommand& options, tracker::Source& source,
                                            TransferBar& bar, Interrupts& interrupts) {
    TUNE_TRY(mode, artifact_mode(options.artifacts));
    Result<std::unique_ptr<tracker::Store>> store =
        tracker::Store::open({.directory = options.data, .read_timeout_ms = kReadTimeout_ms});
    if (!store) return say_holder(std::move(store).error(), options.data);
    const std::filesystem::path root = std::filesystem::path(options.data) / "artifacts";
    TUNE_TRY(artifacts, tracker::ArtifactStore::open(root));
    bool is_interrupted = false;
    tracker::ImportOptions importing;
    importing.artifacts = mode;
    importing.artifact_root = root;
    importing.on_progress = [&](const tracker::TransferProgress& progress) { bar.show(progress); };
    importing.is_cancelled = [&] {
        is_interrupted = is_interrupted || interrupts.wait(0) == Interrupts::Event::kSignal;
        return is_interrupted;
    };
    return tracker::import_all(source, **store, *artifacts, importing);
}

Result<tracker::TransferReport> import_from(const ImportCommand& options) {
    Interrupts interrupts;
    TransferBar bar("importing", is_terminal(STDERR_FILENO), options.quiet);
    tracker::SourceOptions opening;
    opening.name = options.source;
    for (const std::string& root : options.artifact_roots)
        opening.artifact_roots.emplace_back(root);
    TUNE_TRY(source, tracker::open_source(opening));
    return import_into(options, *source, bar, interrupts);
}

}  // namespace

namespace {

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

}  // namespace

Error say_holder(Error error, const std::string& data) {
    if (error.code != Code::kResourceConflict) return error;
    error.message = "The data folder '" + data + "' is in use";
    if (const auto url = url_of_holder(data)) error.message += " by the server at " + *url;
    error.message += ". Stop it during the import, or import into another folder with --data. " +
                     std::exchange(error.context, {});
    return error;
}

int run_import(const ImportCommand& options) {
    const tuner::OptunaFile kind = tuner::optuna_file_kind(options.source);
    if (kind == tuner::OptunaFile::kJournal)
        return fail({Code::kInvalidParameterValue, journal_text(options.source)}, options.json);
    if (options.optuna || kind == tuner::OptunaFile::kDb) return run_import_optuna(options);
    const Result<tracker::TransferReport> report = import_from(options);
    if (!report) {
        const int code = fail(report.error(), options.json);
        return report.error().code == Code::kCancelled ? kExitInterrupted : code;
    }
    if (options.json)
        print_json(report_json(*report));
    else
        print(report_text(*report, "Imported", options.source, options.data));
    return report->is_whole() ? kExitOk : kExitFailed;
}

}  // namespace tune::cli
