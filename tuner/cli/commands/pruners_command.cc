// `tune pruners`: what each pruner would have saved and lost on a finished study.
//
// The recorded reports of all trials are replayed to each pruner in the order of their times
// (tuner/pruner). Histories are read in bulk. A bulk response has a limit of points and may cut off
// its last run; that run is asked for again, and read page by page when it fills a response alone.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text/counted.h"
#include "base/text/percent.h"
#include "tracker/client/client.h"
#include "tracker/store/store.h"
#include "tuner/chart/scale.h"
#include "tuner/cli/commands/study_view_commands.h"
#include "tuner/cli/options.h"
#include "tuner/cli/study_flags.h"
#include "tuner/cli/study_reading.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/wait_line.h"
#include "tuner/pruner/pruner_kind.h"
#include "tuner/pruner/replay/replay.h"

namespace tune::cli {
namespace {

/// What can be used without knowing the study, as each pruner says.
std::vector<std::string> usual_pruners() {
    std::vector<std::string> names;
    for (const tuner::KindBase* kind : tuner::pruner_kinds())
        for (const std::string_view words : static_cast<const tuner::PrunerKind*>(kind)->replays)
            names.emplace_back(words);
    return names;
}

using Reports = std::vector<tuner::RecordedReport>;

tuner::RecordedReport report_of(const Json& row) {
    return {.step = row.value("step", std::int64_t{0}),
            .value = tuner::number_of(row["value"]),
            .time_ms = row.value("timestamp", std::int64_t{0})};
}

/// The whole history of one run, for those that are longer than an answer about several.
Result<Reports> read_long_history(Backend& backend, const std::string& run_id,
                                  const std::string& metric) {
    Reports reports;
    std::string token;
    do {
        TUNE_TRY(page, backend.get("/api/2.0/mlflow/metrics/get-history?max_results=25000&run_id=" +
                                   percent_encode(run_id, false) +
                                   "&metric_key=" + percent_encode(metric, false) +
                                   "&page_token=" + percent_encode(token, false)));
        if (page.contains("metrics"))
            for (const Json& row : page["metrics"]) reports.push_back(report_of(row));
        token = text_of(page, "next_page_token");
    } while (!token.empty());
    return reports;
}

/// The histories of many runs: up to kBulkRunsMax of them an answer, which holds at most
/// kBulkResultsMax points, ordered by run. An answer that is full may have cut off its last run:
/// that one is asked for again, and alone when it fills an answer by itself.
Result<std::map<std::string, Reports>> read_histories(Backend& backend,
                                                      std::vector<std::string> run_ids,
                                                      const std::string& metric, WaitLine& line) {
    std::sort(run_ids.begin(), run_ids.end());
    std::map<std::string, Reports> histories;
    for (std::size_t at = 0; at < run_ids.size();) {
        line.at(at, run_ids.size());
        const std::size_t end = std::min(run_ids.size(), at + tracker::kBulkRunsMax);
        std::string path =
            "/api/2.0/mlflow/metrics/get-history-bulk?metric_key=" + percent_encode(metric, false);
        for (std::size_t i = at; i < end; ++i)
            path += "&run_id=" + percent_encode(run_ids[i], false);
        TUNE_TRY(answer, backend.get(path));
        const Json rows = answer.value("metrics", Json::array());
        for (const Json& row : rows) histories[text_of(row, "run_id")].push_back(report_of(row));
        const bool is_full = rows.size() >= static_cast<std::size_t>(tracker::kBulkResultsMax);
        if (!is_full) {
            at = end;
            continue;
        }
        const std::string last = text_of(rows.back(), "run_id");
        histories.erase(last);
        const auto place = std::find(run_ids.begin(), run_ids.end(), last);
        const auto next = static_cast<std::size_t>(place - run_ids.begin());
        if (next != at) {
            at = next;
            continue;
        }
        TUNE_TRY(whole, read_long_history(backend, last, metric));
        histories[last] = std::move(whole);
        at = next + 1;
    }
    return histories;
}

bool was_tried(const Json& trial) {
    const std::string state = text_of(trial, "state");
    return state != "queued" && state != "running" && trial["start_ms"].is_number() &&
           !text_of(trial, "run_id").empty();
}

Result<std::vector<tuner::RecordedTrial>> read_recorded(Backend& backend, const Json& study,
                                                        WaitLine& line) {
    std::vector<tuner::RecordedTrial> recorded;
    TUNE_TRY(trials, read_trials(backend, text_of(study, "name")));
    std::vector<std::string> run_ids;
    for (const Json& trial : trials)
        if (was_tried(trial)) run_ids.push_back(text_of(trial, "run_id"));
    line.say("reading what trials reported");
    TUNE_TRY(histories,
             read_histories(backend, std::move(run_ids), text_of(study["metric"], "name"), line));
    for (const Json& trial : trials) {
        if (!was_tried(trial)) continue;
        Reports& reports = histories[text_of(trial, "run_id")];
        std::stable_sort(reports.begin(), reports.end(),
                         [](const auto& a, const auto& b) { return a.time_ms < b.time_ms; });
        const std::string state = text_of(trial, "state");
        recorded.push_back({.number = trial.value("number", std::uint64_t{0}),
                            .end = state == "complete" ? tuner::Pruner::End::kComplete
                                   : state == "pruned" ? tuner::Pruner::End::kPruned
                                                       : tuner::Pruner::End::kGone,
                            .value = tuner::number_of(trial["value"]),
                            .start_ms = trial["start_ms"].get<std::int64_t>(),
                            .end_ms = trial["end_ms"].get<std::int64_t>(),
                            .reports = std::move(reports)});
    }
    return recorded;
}

double share(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

Json replay_json(const std::string& pruner, const tuner::PrunerReplay& replay) {
    return {{"pruner", pruner},
            {"pruned", replay.pruned},
            {"reports_saved", replay.reports_saved},
            {"reports_saved_share",
             share(static_cast<double>(replay.reports_saved), static_cast<double>(replay.reports))},
            {"time_saved_ms", replay.time_saved_ms},
            {"time_saved_share",
             share(static_cast<double>(replay.time_saved_ms), static_cast<double>(replay.time_ms))},
            {"best", replay.best ? Json(*replay.best) : Json()},
            {"best_value", replay.best ? json_number(replay.best_value) : Json()},
            {"best_rank", replay.best ? Json(replay.best_rank) : Json()}};
}

std::string saved_cell(double part, const std::string& text) {
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.0f %%", 100 * part);
    return text + " (" + percent + ")";
}

std::string replays_text(const Json& answer) {
    Table table;
    table.column("pruner");
    for (const char* name : {"pruned", "steps saved", "time saved", "best kept", "rank"})
        table.column(name, Table::Align::kRight);
    for (const Json& one : answer["pruners"]) {
        const Json& rank = one["best_rank"];
        const std::string rank_cell = rank.is_null() ? "-" : to_text(rank);
        table.row({text_of(one, "pruner"), to_text(one["pruned"]),
                   saved_cell(one["reports_saved_share"], to_text(one["reports_saved"])),
                   saved_cell(one["time_saved_share"], span_text(one["time_saved_ms"])),
                   number_cell(one["best_value"]),
                   styled(rank_cell, rank == 1 ? Tone::kGood : Tone::kWarn)});
    }
    std::string text = table.text() +
                       (answer["objectives"] == 1
                            ? std::string()
                            : "by " + printable(text_of(answer, "metric")) + ", the first of " +
                                  to_text(answer["objectives"]) + " objectives; ") +
                       "of " + counted(answer["trials"].get<std::int64_t>(), "trial") + ", " +
                       counted(answer["reports"].get<std::int64_t>(), "step") + " and " +
                       span_text(answer["time_ms"]) + " of trials; rank 1: the best trial of " +
                       "the study would have been kept\n";
    if (answer["pruned_before"] != 0)
        text += answer["pruned_before"] == 1
                    ? "1 trial was pruned when the study ran; its final value is unknown\n"
                    : to_text(answer["pruned_before"]) +
                          " trials were pruned when the study ran; their final values are "
                          "unknown\n";
    return text;
}

Result<int> replay(const PrunersCommand& options) {
    std::vector<std::string> names = options.pruners;
    if (names.empty()) names = usual_pruners();
    std::vector<tuner::PrunerConfig> configs;
    for (const std::string& name : names) {
        TUNE_TRY(config, pruner_from_flag(name));
        configs.push_back(std::move(config));
    }
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(name, named_or_only_study(*backend, options.study));
    TUNE_TRY(study, backend->get(study_path(name)));
    std::optional<WaitLine> line(std::in_place, "reading trials");
    TUNE_TRY(trials, read_recorded(*backend, study, *line));
    const tuner::Goal goal =
        text_of(study["metric"], "goal") == "max" ? tuner::Goal::kMaximize : tuner::Goal::kMinimize;
    const std::size_t objectives = study.contains("metrics") ? study["metrics"].size() : 1;
    Json answer = {{"study", name},
                   {"metric", text_of(study["metric"], "name")},
                   {"objectives", objectives},
                   {"pruners", Json::array()}};
    tuner::PrunerReplay last;
    for (std::size_t i = 0; i < configs.size(); ++i) {
        line->say("replaying " + names[i]);
        last = tuner::replay_pruner(configs[i], goal, name, trials);
        answer["pruners"].push_back(replay_json(names[i], last));
    }
    line.reset();
    answer["trials"] = last.trials;
    answer["reports"] = last.reports;
    answer["time_ms"] = last.time_ms;
    answer["pruned_before"] = std::count_if(
        trials.begin(), trials.end(),
        [](const tuner::RecordedTrial& trial) { return trial.end == tuner::Pruner::End::kPruned; });
    if (options.json)
        print_json(answer);
    else if (last.reports == 0)
        print("no trial of " + printable(name) +
              " reported an intermediate value, so there is nothing to prune by\n");
    else
        print(replays_text(answer));
    return study["counts"].value("complete", 0) > 0 ? kExitOk : kExitNoTrial;
}

}  // namespace

int run_pruners(const PrunersCommand& options) {
    const Result<int> code = replay(options);
    return code ? *code : fail(code.error(), options.json);
}

}  // namespace tune::cli
