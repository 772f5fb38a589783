// tune export: a data folder as an mlflow.db.

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tracker/transfer/exporter.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/cli/transfer/transfer_progress.h"
#include "tuner/cli/transfer/transfer_text.h"

namespace tune::cli {
namespace {

Result<tracker::TransferReport> export_to(const ExportCommand& options) {
    TUNE_TRY(mode, artifact_mode(options.artifacts));
    TransferBar bar("exporting", is_terminal(STDERR_FILENO), options.quiet);
    Interrupts interrupts;
    bool is_interrupted = false;
    tracker::ExportOptions exporting;
    exporting.data = options.data;
    exporting.target = options.target;
    exporting.artifacts = mode;
    exporting.local_uris = options.local_uris;
    exporting.on_progress = [&](const tracker::TransferProgress& progress) { bar.show(progress); };
    exporting.is_cancelled = [&] {
        is_interrupted = is_interrupted || interrupts.wait(0) == Interrupts::Event::kSignal;
        return is_interrupted;
    };
    return tracker::export_all(exporting);
}

}  // namespace

int run_export(const ExportCommand& options) {
    if (!options.optuna.empty()) return run_export_optuna(options);
    const Result<tracker::TransferReport> report = export_to(options);
    if (!report) {
        const int code = fail(report.error(), options.json);
        return report.error().code == Code::kCancelled ? kExitInterrupted : code;
    }
    const std::string file = tracker::export_file(options.target).string();
    if (options.json) {
        print_json(report_json(*report));
    } else {
        print(report_text(*report, "Exported", options.data, file));
        print("Serve it: cd " + tracker::export_file(options.target).parent_path().string() +
              " && mlflow server --backend-store-uri sqlite:///" +
              tracker::export_file(options.target).filename().string() + "\n");
    }
    return kExitOk;
}

}  // namespace tune::cli
