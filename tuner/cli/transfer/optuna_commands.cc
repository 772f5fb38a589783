// tune export --optuna and tune import --optuna: a study as a SQLite file of Optuna's, and back.
//
// The list of trials has thinned-out series of long ones, so these are read whole from the metric
// history before they are exported. An import is done by this process, or by the server that holds
// the data folder; the file is opened first, so that one without a study makes no folder.

#include <map>
#include <nlohmann/json.hpp>

#include "base/text/counted.h"
#include "base/text/percent.h"
#include "tracker/client/client.h"
#include "tracker/store/store.h"
#include "tuner/api/routes.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/terminal/interrupts.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/wait_line.h"
#include "tuner/cli/transfer/import_job.h"
#include "tuner/cli/transfer/transfer_commands.h"
#include "tuner/interop/optuna/optuna_study.h"
#include "tuner/interop/optuna/optuna_writes.h"

namespace tune::cli {
namespace {

/// All reports of one trial; the list of trials holds a thinned-out series of long ones.
Result<Json> whole_series(Backend& backend, const std::string& run_id, const std::string& metric) {
    Json points = Json::array();
    std::string token;
    do {
        std::string path =
            "/api/2.0/mlflow/metrics/get-history?max_results=25000&run_id=" + run_id +
            "&metric_key=" + percent_encode(metric, false);
        if (!token.empty()) path += "&page_token=" + percent_encode(token, false);
        TUNE_TRY(page, backend.get(path));
        for (const Json& point : page.value("metrics", Json::array()))
            points.push_back({point.value("step", Json(0)), point["value"]});
        token = text_of(page, "next_page_token");
    } while (!token.empty());
    return points;
}

Result<Json> trials_of(Backend& backend, const std::string& study, const std::string& metric) {
    Json trials = Json::array();
    std::string token;
    do {
        TUNE_TRY(page,
                 backend.get(study_path(
                     study, "/trials?max_results=1000&fields=intermediate&page_token=" + token)));
        for (Json& trial : page["trials"]) {
            const bool is_thinned = trial["intermediate"].size() >= tuner::kIntermediatePoints;
            if (is_thinned) {
                TUNE_TRY(series, whole_series(backend, text_of(trial, "run_id"), metric));
                trial["intermediate"] = std::move(series);
            }
            trials.push_back(std::move(trial));
        }
        token = text_of(page, "next_page_token");
    } while (!token.empty());
    return trials;
}

Json tags_of(const Json& run) {
    Json tags = Json::object();
    for (const Json& tag : run["data"].value("tags", Json::array()))
        tags[tag["key"].get<std::string>()] = tag["value"];
    return tags;
}

/// Adds to the study and to its trials the tags of their runs.
Result<void> add_tags(Backend& backend, Json& study, Json& trials) {
    TUNE_TRY(own, backend.get("/api/2.0/mlflow/runs/get?run_id=" + text_of(study, "run_id")));
    study["tags"] = tags_of(own["run"]);
    std::map<std::string, Json> by_run;
    Json query = {{"experiment_ids", {text_of(study, "experiment_id")}},
                  {"filter", "tags.mlflow.parentRunId = '" + text_of(study, "run_id") + "'"},
                  {"max_results", 1000}};
    do {
        TUNE_TRY(page, backend.post("/api/2.0/mlflow/runs/search", query));
        for (const Json& run : page.value("runs", Json::array()))
            by_run[text_of(run["info"], "run_id")] = tags_of(run);
        query["page_token"] = text_of(page, "next_page_token");
    } while (query["page_token"] != "");
    for (Json& trial : trials)
        if (const auto found = by_run.find(text_of(trial, "run_id")); found != by_run.end())
            trial["tags"] = std::move(found->second);
    return {};
}

Result<std::size_t> export_study(const ExportCommand& options) {
    const WaitLine line("exporting " + printable(options.optuna));
    const bool default_data = options.data == kDefaultData;
    TUNE_TRY(backend, find_backend(options.server,
                                   default_data ? std::nullopt : std::optional(options.data)));
    TUNE_TRY(study, backend->get(study_path(options.optuna)));
    const Json& metric = study["metric"].is_array() ? study["metric"].at(0) : study["metric"];
    TUNE_TRY(trials, trials_of(*backend, options.optuna, text_of(metric, "name")));
    TUNE_TRY_VOID(add_tags(*backend, study, trials));
    TUNE_TRY(made, tuner::to_optuna(study, trials));
    TUNE_TRY_VOID(tuner::write_optuna_db(options.target, made));
    return made.trials.size();
}

/// By this process, or by the server that holds the folder.
Result<Json> import_optuna_anyhow(const ImportCommand& options) {
    Interrupts interrupts;
    const WaitLine line("importing");
    const auto is_cancelled = [&interrupts] { return interrupts.has_signal(); };
    // First: a file that holds no study makes no folder.
    TUNE_TRY(study, read_optuna_study(options));
    const auto store = tracker::Store::open({.directory = options.data});
    if (!store) {
        TUNE_TRY(url, holder_for_import(store.error(), options.data));
        ImportCommand by_server = options;
        by_server.optuna = true;
        by_server.quiet = true;  // this function's line is there already
        return import_by_server(by_server, url, is_cancelled);
    }
    TUNE_TRY_VOID(tuner::undo_imports(**store));
    Result<Json> imported = import_optuna_into(study, **store, nullptr, is_cancelled);
    (*store)->stop();
    return imported;
}

}  // namespace

Result<tuner::ImportedStudy> read_optuna_study(const ImportCommand& options) {
    TUNE_TRY(read, tuner::read_optuna_db(options.source, options.study));
    TUNE_TRY(study, tuner::from_optuna(std::move(read)));
    if (!options.as.empty()) study.config.study = options.as;
    return study;
}

Result<Json> import_optuna_into(const tuner::ImportedStudy& study, tracker::Store& store,
                                tuner::Studies* studies,
                                const std::function<bool()>& is_cancelled) {
    TUNE_TRY_VOID(tuner::store_imported(store, study, is_cancelled, studies));
    return Json{
        {"study", study.config.study}, {"trials", study.trials.size()}, {"notes", study.notes}};
}

int run_export_optuna(const ExportCommand& options) {
    const Result<std::size_t> trials = export_study(options);
    if (!trials) return fail(trials.error(), options.json);
    if (options.json)
        print_json({{"study", options.optuna}, {"file", options.target}, {"trials", *trials}});
    else
        print("Exported " + counted(static_cast<std::int64_t>(*trials), "trial") + " of " +
              printable(options.optuna) + " to " + options.target +
              "\nOpen it: optuna.load_study(study_name=\"" + printable(options.optuna) +
              "\", storage=\"sqlite:///" + options.target + "\")\n");
    return kExitOk;
}

int run_import_optuna(const ImportCommand& options) {
    const Result<Json> imported = import_optuna_anyhow(options);
    if (!imported) {
        const int code = fail(imported.error(), options.json);
        return imported.error().code == Code::kCancelled ? kExitInterrupted : code;
    }
    if (options.json) {
        print_json(*imported);
        return kExitOk;
    }
    const std::string study = text_of(*imported, "study");
    std::string text = "Imported " + counted((*imported)["trials"].get<std::int64_t>(), "trial") +
                       " as the study " + printable(study) + "\n";
    for (const Json& sentence : (*imported)["notes"])
        text += "  " + printable(sentence.get<std::string>()) + "\n";
    print(text + "Continue it: tune resume " + shell_word(study) + " --data " +
          shell_word(options.data) + "\n");
    return kExitOk;
}

}  // namespace tune::cli
