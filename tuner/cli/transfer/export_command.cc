// tune export: a data folder as an mlflow.db, a run or study for TensorBoard.

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "tracker/transfer/events/export_events.h"
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

int run_export_events(const ExportCommand& options) {
    const Result<tracker::ExportedEvents> done = tracker::export_events(
        {.data = options.data, .target = options.target, .run = options.tensorboard});
    if (!done) return fail(done.error(), options.json);
    if (options.json)
        print_json({{"runs", done->runs}, {"points", done->points}, {"folder", options.target}});
    else
        print("Exported " + counted(done->runs, "run") + " with " + counted(done->points, "point") +
              " to " + options.target + "\nLook at them: tensorboard --logdir " + options.target +
              "\n");
    return kExitOk;
}

}  // namespace

int run_export(const ExportCommand& options) {
    if (!options.optuna.empty()) return run_export_optuna(options);
    if (!options.tensorboard.empty()) return run_export_events(options);
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
