// Tables and sentences from the JSON of the REST API; nothing here knows how it was obtained. The
// command of a trial is filled in by the study's own template code, so that what is shown is what
// the agent ran.

#include "tuner/cli/terminal/study_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tuner/config/command_template.h"
#include "tuner/config/study_config.h"

namespace tune::cli {
namespace {

constexpr std::size_t kParamColumnsMax = 12;
constexpr std::size_t kReasonColumns = 90;

std::int64_t integer_of(const Json& object, const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_number() ? at->get<std::int64_t>() : 0;
}

Json value_of(const Json& object, const char* name) {
    const auto at = object.find(name);
    return at == object.end() ? Json(nullptr) : *at;
}

std::string param_cell(const Json& value) {
    if (value.is_number_float()) return number_cell(value);
    if (value.is_string()) return printable(value.get<std::string>());
    return printable(to_text(value));
}

std::string duration_cell(const Json& trial) {
    const bool has_ended = integer_of(trial, "start_ms") > 0 && integer_of(trial, "end_ms") > 0;
    return has_ended ? span_text(integer_of(trial, "ran_ms")) : "";
}

std::string params_lines(const Json& params) {
    std::size_t width = 0;
    for (const auto& [name, value] : params.items()) width = std::max(width, name.size());
    std::string text;
    for (const auto& [name, value] : params.items())
        text += "  " + printable(name) + std::string(width - name.size() + 2, ' ') +
                param_cell(value) + "\n";
    return text;
}

}  // namespace

std::string shell_word(const std::string& word) {
    static constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
    std::string out = "'";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

std::string text_of(const Json& object, const char* name) {
    const auto at = object.find(name);
    return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

Tone tone_of_state(std::string_view state) {
    if (state == "complete" || state == "completed") return Tone::kGood;
    if (state == "pruned" || state == "paused" || state == "interrupted") return Tone::kWarn;
    if (state == "failed" || state == "deleted") return Tone::kBad;
    if (state == "cancelled" || state == "queued" || state == "stopped") return Tone::kDim;
    return Tone::kPlain;
}

std::string status_text(const Json& study) {
    const std::string status = text_of(study, "status");
    return status.empty() ? text_of(study, "state") : status;
}

std::int64_t ended_count(const Json& study) {
    const Json counts = value_of(study, "counts");
    if (!counts.is_object()) return 0;
    std::int64_t ended = 0;
    for (const char* state : {"complete", "pruned", "failed", "cancelled"})
        ended += integer_of(counts, state);
    return ended - integer_of(study, "excused");
}

std::string progress_text(const Json& study) {
    const Json budget = value_of(study, "budget");
    std::string text = std::to_string(ended_count(study));
    if (budget.is_object() && budget.contains("trials") && budget["trials"].is_number())
        text += "/" + std::to_string(budget["trials"].get<std::int64_t>());
    return text;
}

std::string trials_text(const Json& study) {
    const std::string progress = progress_text(study);
    return progress + (progress == "1" || progress == "1/1" ? " trial" : " trials");
}

std::string params_text(const Json& params) {
    std::string text;
    if (!params.is_object()) return text;
    for (const auto& [name, value] : params.items())
        text += (text.empty() ? "" : " ") + printable(name) + "=" + param_cell(value);
    return text;
}

namespace {

bool has_several(const Json& study) {
    return study.contains("metrics");
}

/// "loss 0.25", "loss 0.25, latency_ms 12"; empty without a value.
std::string values_text(const Json& trial, const Json& study) {
    const Json value = value_of(trial, "value");
    if (value.is_null()) return {};
    if (!has_several(study) || !trial.contains("values"))
        return printable(text_of(study["metric"], "name")) + " " + number_cell(value);
    std::string text;
    for (std::size_t i = 0; i < study["metrics"].size(); ++i)
        text += (i == 0 ? "" : ", ") + printable(text_of(study["metrics"][i], "name")) + " " +
                number_cell(trial["values"].at(i));
    return text;
}

/// One column an objective, named where there are several, and one a constraint.
std::vector<std::string> value_columns(const Json& study) {
    std::vector<std::string> names;
    if (!has_several(study)) names.emplace_back("value");
    for (const Json& metric : value_of(study, "metrics")) names.push_back(text_of(metric, "name"));
    for (const Json& constraint : value_of(study, "constraints"))
        names.push_back(text_of(constraint, "name"));
    return names;
}

std::vector<std::string> value_cells(const Json& study, const Json& trial) {
    std::vector<std::string> cells;
    const Json values = value_of(trial, "values");
    if (!has_several(study)) cells.push_back(number_cell(value_of(trial, "value")));
    for (std::size_t i = 0; has_several(study) && i < study["metrics"].size(); ++i)
        cells.push_back(values.is_array() ? number_cell(values.at(i))
                        : i == 0          ? number_cell(value_of(trial, "value"))
                                          : "");
    const Json bounded = value_of(trial, "constraints");
    const bool is_infeasible = value_of(trial, "violation") > Json(0);
    for (const Json& constraint : value_of(study, "constraints")) {
        const std::string name = text_of(constraint, "name");
        const std::string cell =
            bounded.is_object() && bounded.contains(name) ? number_cell(bounded[name]) : "";
        cells.push_back(is_infeasible ? styled(cell, Tone::kBad) : cell);
    }
    return cells;
}

/// Whether the budget leaves a trial that is not there yet.
bool has_room(const Json& study) {
    const Json budget = value_of(study, "budget");
    return !budget.is_object() || !budget.contains("trials") ||
           integer_of(study, "trials") < integer_of(budget, "trials");
}

/// The trials that a best trial of population based training went through; empty for others.
std::string lineage_table(const Json& best) {
    const Json lineage = value_of(best, "lineage");
    if (!lineage.is_array()) return {};
    std::vector<std::string> names;
    for (const Json& trial : lineage)
        for (const auto& [name, value] : trial["params"].items())
            if (std::find(names.begin(), names.end(), name) == names.end() &&
                names.size() < kParamColumnsMax)
                names.push_back(name);
    Table table;
    for (const char* name : {"trial", "steps", "value"}) table.column(name, Table::Align::kRight);
    for (const std::string& name : names) table.column(printable(name), Table::Align::kRight);
    for (const Json& trial : lineage) {
        std::vector<std::string> row = {
            std::to_string(integer_of(trial, "number")),
            to_text(trial["steps"][0]) + ".." + to_text(trial["steps"][1]),
            number_cell(value_of(trial, "value"))};
        for (const std::string& name : names)
            row.push_back(trial["params"].contains(name) ? param_cell(trial["params"][name]) : "");
        table.row(std::move(row));
    }
    return "Training history:\n" + table.text();
}

}  // namespace

std::string trial_line(const Json& trial, const Json& study) {
    const std::string state = text_of(trial, "state");
    std::string line = "  #" + std::to_string(integer_of(trial, "number"));
    line.resize(std::max<std::size_t>(line.size() + 1, 8), ' ');
    std::string shown = state;
    shown.resize(std::max<std::size_t>(shown.size() + 1, 10), ' ');
    line += styled(shown, tone_of_state(state));
    line += values_text(trial, study);
    const Json best = value_of(study, "best");
    if (best.is_object() && integer_of(best, "number") == integer_of(trial, "number"))
        line += styled(" best", Tone::kBold);
    line += "  " + params_text(value_of(trial, "params"));
    if (const std::string time = duration_cell(trial); !time.empty())
        line += "  " + styled(time, Tone::kDim);
    if (const std::string reason = text_of(trial, "reason"); state != "complete" && !reason.empty())
        line += styled("  (" + clipped(printable(reason), kReasonColumns) + ")", Tone::kDim);
    return line;
}

std::string trial_table(const Json& trials, const Json& study) {
    std::vector<std::string> names;
    std::set<std::string> seen;
    for (const Json& trial : trials)
        if (const Json params = value_of(trial, "params"); params.is_object())
            for (const auto& [name, value] : params.items())
                if (seen.insert(name).second && names.size() < kParamColumnsMax)
                    names.push_back(name);
    Table table;
    table.column("trial", Table::Align::kRight);
    table.column("state");
    for (const std::string& name : value_columns(study))
        table.column(printable(name), Table::Align::kRight);
    for (const std::string& name : names) table.column(printable(name), Table::Align::kRight);
    table.column("time", Table::Align::kRight);
    table.column("reason");
    for (const Json& trial : trials) {
        const std::string state = text_of(trial, "state");
        std::vector<std::string> row = {std::to_string(integer_of(trial, "number")),
                                        styled(state, tone_of_state(state))};
        for (std::string& cell : value_cells(study, trial)) row.push_back(std::move(cell));
        const Json params = value_of(trial, "params");
        for (const std::string& name : names)
            row.push_back(params.is_object() && params.contains(name) ? param_cell(params[name])
                                                                      : "");
        row.push_back(duration_cell(trial));
        row.push_back(state == "complete" ? "" : clipped(printable(text_of(trial, "reason")), 60));
        table.row(std::move(row));
    }
    return table.text();
}

std::vector<std::string> trial_command(const Json& study, const Json& trial) {
    // The study's own JSON is a study description with more fields; take the fields of one.
    Json description = Json::object();
    for (const char* field : {"command", "space", "space_order", "derive", "metric"})
        if (study.contains(field) && !study[field].is_null()) description[field] = study[field];
    const Result<tuner::StudyConfig> config = tuner::study_config_from_json(description);
    if (!config || config->command.empty()) return {};
    const Result<tuner::Point> point = config->space.point_from_json(value_of(trial, "params"));
    if (!point) return {};
    return tuner::fill_command(config->command, config->space, *point,
                               {.study = text_of(study, "name"),
                                .trial = static_cast<std::uint64_t>(integer_of(trial, "number")),
                                .attempt = 1,
                                .run_id = text_of(trial, "run_id")});
}

std::string shell_text(const std::vector<std::string>& command) {
    std::string line;
    for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_word(word);
    return line;
}

std::string rerun_command(const Json& study, const Json& trial) {
    const std::vector<std::string> command = trial_command(study, trial);
    if (command.empty()) return {};
    // What no placeholder names, the command finds in its environment only.
    const Json& words = study["command"];
    const auto is_named = [&](const std::string& placeholder) {
        return std::any_of(words.begin(), words.end(), [&](const Json& word) {
            return word.get<std::string>().find(placeholder) != std::string::npos;
        });
    };
    const Json params = value_of(trial, "params");
    bool is_whole = is_named("{args}");
    if (!is_whole)
        is_whole =
            std::all_of(params.items().begin(), params.items().end(),
                        [&](const auto& param) { return is_named("{" + param.key() + "}"); });
    const std::string before = is_whole ? "" : "TUNE_PARAMS=" + shell_word(to_text(params)) + " ";
    return before + shell_text(command);
}

std::string metrics_text(const Json& study) {
    if (!has_several(study)) return printable(text_of(value_of(study, "metric"), "name"));
    std::string names;
    for (const Json& metric : study["metrics"])
        names += (names.empty() ? "" : ", ") + printable(text_of(metric, "name"));
    return names;
}

bool has_best(const Json& study) {
    return value_of(study, "best").is_object() || !value_of(study, "best_trials").empty();
}

std::string best_text(const Json& study) {
    if (has_several(study)) {
        Json front = study["best_trials"];
        for (Json& trial : front) trial["state"] = "complete";
        return "Best trials (none is better in every objective): " + std::to_string(front.size()) +
               "\n" + trial_table(front, study);
    }
    const Json trial = value_of(study, "best");
    std::string text =
        "Best trial: #" + std::to_string(integer_of(trial, "number")) + "  " +
        styled(text_of(study["metric"], "name") + " = " + number_cell(value_of(trial, "value")),
               Tone::kBold) +
        "\n" + params_lines(value_of(trial, "params")) + lineage_table(trial);
    // Its command continues a checkpoint, so it alone does not lead to this value.
    if (trial.contains("lineage")) return text;
    if (const std::string command = rerun_command(study, trial); !command.empty())
        text += "Run it again:\n  " + command + "\n";
    if (has_room(study))
        text += "Run it as a new trial: tune rerun " + shell_text({text_of(study, "name")}) + " " +
                std::to_string(integer_of(trial, "number")) + "\n";
    return text;
}

std::string registration_text(const Json& study) {
    const Json registered = value_of(study, "registered");
    if (!registered.is_object()) return {};
    const std::string name = printable(text_of(registered, "name"));
    if (registered.contains("error"))
        return "Not registered as " + name + ": " + printable(text_of(registered, "error")) + "\n";
    return "The model of trial " + std::to_string(integer_of(registered, "trial")) +
           " is registered as " + name + " version " +
           std::to_string(integer_of(registered, "version")) + "\n";
}

Json best_json(const Json& study) {
    Json best = value_of(study, has_several(study) ? "best_trials" : "best");
    if (best.is_object()) best["command"] = trial_command(study, best);
    if (best.is_array())
        for (Json& trial : best) trial["command"] = trial_command(study, trial);
    return best;
}

}  // namespace tune::cli
