// The verbs about one study or all of them: ls, show, best, replay, pause, resume, stop, rename, rm
// and restore --study.
//
// Each reads or posts one route of the server that holds the data folder, or of a server within
// this process where none runs (Backend), and prints text or the route's JSON. `stop` of a study
// that is completed succeeds, because who stops it wants it to be over.

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/text/counted.h"
#include "base/text/time_text.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/options.h"
#include "tuner/cli/study_reading.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/cli/terminal/wait_line.h"

namespace tune::cli {
namespace {

std::string count_cell(const Json& study, const char* state) {
    return to_text(study["counts"].value(state, Json(0)));
}

/// "2026-01-31 12:34" in local time.
std::string date_cell(const Json& time_ms) {
    return local_text(time_ms.get<std::int64_t>(), "%Y-%m-%d %H:%M");
}

/// The best value; with several objectives how many trials are on the front.
std::string best_cell(const Json& study) {
    if (!has_best(study)) return "-";
    if (study["best"].is_object()) return number_cell(study["best"]["value"]);
    return counted(static_cast<std::int64_t>(study["best_trials"].size()), "trial");
}

std::string ls_text(const Json& studies, const std::string& where) {
    if (studies.empty()) return "no studies in " + where + "\n";
    Table table;
    table.column("study");
    table.column("state");
    for (const char* count : {"trials", "running", "complete", "pruned", "failed"})
        table.column(count, Table::Align::kRight);
    table.column("metric");
    table.column("best", Table::Align::kRight);
    table.column("created");
    for (const Json& study : studies) {
        const std::string state = status_text(study);
        table.row({printable(text_of(study, "name")), styled(state, tone_of_state(state)),
                   progress_text(study), count_cell(study, "running"),
                   count_cell(study, "complete"), count_cell(study, "pruned"),
                   count_cell(study, "failed"), metrics_text(study), best_cell(study),
                   date_cell(study["created_ms"])});
    }
    return table.text();
}

/// What to do about a study that does not go on by itself, where that is not plain; or empty.
std::string remedy_text(const Json& study) {
    const std::string status = status_text(study);
    const std::string name = shell_text({text_of(study, "name")});
    if (status == "interrupted")
        return study.value("command", Json::array()).empty()
                   ? "Nobody works on it: start its client again to continue.\n"
                   : "Nobody works on it: run its command again to continue.\n";
    if (status == "deleted")
        return "An MLflow client has deleted its experiment: `tune restore --study " + name +
               "` brings it back, `tune rm " + name + "` removes the study.\n";
    return {};
}

std::string head_text(const Json& study) {
    const std::string state = status_text(study);
    const std::string note = text_of(study, "note");
    const std::string waits_for = text_of(study, "waits_for");
    const auto running = study["counts"].value("running", std::int64_t{0});
    return printable(text_of(study, "name")) + " is " + styled(state, tone_of_state(state)) +
           (note.empty() ? "" : " (" + printable(note) + ")") + ": " + trials_text(study) +
           (ended_count(study) == 1 ? " has ended, " : " have ended, ") +
           count_cell(study, "running") + (running == 1 ? " is running\n" : " are running\n") +
           (waits_for.empty() ? "" : "It waits: " + printable(waits_for) + "\n") +
           remedy_text(study);
}

int print_study(const Result<Json>& study, bool as_json) {
    if (!study) return fail(study.error(), as_json);
    if (as_json)
        print_json(*study);
    else
        print(head_text(*study));
    return kExitOk;
}

Result<Json> all_trials(Backend& backend, const std::string& name) {
    const WaitLine line("reading trials");
    return read_trials(backend, name);
}

Result<Json> replay_report(Backend& backend, const std::string& name) {
    const WaitLine line("repeating every suggestion");
    return backend.get(study_path(name, "/replay"));
}

std::string no_best_text(const Json& study) {
    const bool is_infeasible =
        study.contains("constraints") && study["counts"].value("complete", 0) > 0;
    return "no trial of " + printable(text_of(study, "name")) +
           (is_infeasible ? " meets the constraints\n" : " is complete\n");
}

}  // namespace

int run_ls(const StudyCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> answer = (*backend)->get("/api/2.0/tune/studies");
    if (!answer) return fail(answer.error(), options.json);
    if (options.json)
        print_json(*answer);
    else
        print(ls_text((*answer)["studies"], (*backend)->where()));
    return kExitOk;
}

int run_show(const StudyCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<std::string> name = named_or_only_study(**backend, options.study);
    if (!name) return fail(name.error(), options.json);
    const Result<Json> study = (*backend)->get(study_path(*name));
    if (!study) return fail(study.error(), options.json);
    const Result<Json> trials = all_trials(**backend, *name);
    if (!trials) return fail(trials.error(), options.json);
    if (options.json) {
        print_json({{"study", *study}, {"trials", *trials}});
        return kExitOk;
    }
    print(head_text(*study) + (trials->empty() ? "" : trial_table(*trials, *study)) +
          (has_best(*study) ? best_text(*study) : no_best_text(*study)));
    return kExitOk;
}

int run_best(const StudyCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<std::string> name = named_or_only_study(**backend, options.study);
    if (!name) return fail(name.error(), options.json);
    const Result<Json> study = (*backend)->get(study_path(*name));
    if (!study) return fail(study.error(), options.json);
    if (options.json)
        print_json(best_json(*study));
    else
        print(has_best(*study) ? best_text(*study) : no_best_text(*study));
    return has_best(*study) ? kExitOk : kExitNoTrial;
}

int run_replay(const StudyCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> report = replay_report(**backend, options.study);
    if (!report) return fail(report.error(), options.json);
    const bool is_equal = (*report)["differing"] == 0;
    if (options.json) {
        print_json(*report);
        return is_equal ? kExitOk : kExitFailed;
    }
    const auto count = [&](const char* name) { return (*report)[name].get<std::int64_t>(); };
    const auto were = [&](const char* name) {
        return "; " + std::to_string(count(name)) + (count(name) == 1 ? " was " : " were ");
    };
    std::string text = printable(options.study) + ": " + counted(count("compared"), "suggestion") +
                       " repeated, " + std::to_string(count("differing")) +
                       (count("differing") == 1 ? " differs" : " differ");
    if (count("given") != 0) text += were("given") + "given";
    if (count("redrawn") != 0) text += were("redrawn") + "lost in a crash and drawn again";
    text += "\n";
    for (const Json& one : (*report)["differences"])
        text += "  trial " + to_text(one["number"]) + ", " + printable(text_of(one, "parameter")) +
                ": recorded " + to_text(one["recorded"]) + ", again " + to_text(one["replayed"]) +
                "\n";
    print(text);
    return is_equal ? kExitOk : kExitFailed;
}

int run_change(const StudyCommand& options, const char* verb) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    Result<Json> study =
        (*backend)->post(study_path(options.study, std::string("/") + verb), Json::object());
    // Who stops a study wants it to be over, and that it is.
    const bool may_be_over =
        !study && study.error().code == Code::kResourceConflict && std::string_view(verb) == "stop";
    if (may_be_over) {
        Result<Json> now = (*backend)->get(study_path(options.study));
        if (now && text_of(*now, "state") == "completed") study = std::move(now);
    }
    return print_study(study, options.json);
}

int run_rename(const StudyCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> study =
        (*backend)->post(study_path(options.study, "/rename"), {{"name", options.new_name}});
    return print_study(study, options.json);
}

int run_rm(const StudyCommand& options) {
    const auto backend = find_backend(options.server, options.data);
    if (!backend) return fail(backend.error(), options.json);
    const Result<Json> removed = (*backend)->remove(study_path(options.study));
    if (!removed) return fail(removed.error(), options.json);
    if (options.json)
        print_json(*removed);
    else
        print(printable(options.study) + " is removed; until `tune gc` takes its runs, " +
              "`tune restore --study " + shell_text({options.study}) + "` brings it back\n");
    return kExitOk;
}

int run_restore_study(const StudyCommand& options) {
    return run_change(options, "restore");
}

}  // namespace tune::cli
