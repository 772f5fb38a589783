// From Optuna's rows to a configuration and trials of ours.
//
// Optuna has no declared space: each trial brings the distributions that its code asked for. The
// space is therefore the union of all of them, each parameter as wide as its widest distribution.
// A parameter that some complete trials lack is conditional. Its condition is inferred: a choice
// whose values separate the trials with it from those without it, in every complete trial. Trials
// that ended early are no evidence, because their code may not have got that far. The user reads
// each inferred condition as a note. Where nothing explains a parameter it counts as always there,
// and the trials without it are left out, with a note.

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tuner/interop/optuna/distribution.h"
#include "tuner/interop/optuna/optuna_names.h"
#include "tuner/interop/optuna/optuna_study.h"

namespace tune::tuner {
namespace {

const std::string* attribute(const OptunaAttributes& attributes, std::string_view key) {
    for (const auto& [name, json] : attributes)
        if (name == key) return &json;
    return nullptr;
}

Result<std::vector<Parameter>> read_parameters(const OptunaStudy& study) {
    std::vector<Parameter> parameters;
    std::map<std::string, std::size_t> index;
    std::map<std::string, std::set<std::string>> seen;  // distributions are mostly the same text
    for (const OptunaTrial& trial : study.trials)
        for (const OptunaParam& param : trial.params) {
            if (!seen[param.name].insert(param.distribution_json).second) continue;
            TUNE_TRY(parameter, parameter_of(param.name, param.distribution_json));
            const auto [place, is_new] = index.try_emplace(param.name, parameters.size());
            if (is_new)
                parameters.push_back(std::move(parameter));
            else
                TUNE_TRY_VOID(widen(parameters[place->second], parameter));
        }
    if (parameters.empty())
        return Error{Code::kInvalidParameterValue,
                     "no trial of '" + study.name + "' has a parameter, so its space is not known"};
    return parameters;
}

/// One row a trial that has parameters: the value of each, or inactive.
std::vector<Point> rows_of(const OptunaStudy& study, const std::vector<Parameter>& parameters) {
    std::map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < parameters.size(); ++i) index[parameters[i].name] = i;
    std::vector<Point> rows;
    for (const OptunaTrial& trial : study.trials) {
        Point row(parameters.size(), kInactive);
        for (const OptunaParam& param : trial.params) row[index.at(param.name)] = param.value;
        // A trial that ended early may not have asked for all.
        if (trial.state == "COMPLETE") rows.push_back(std::move(row));
    }
    return rows;
}

/// The choices of `parent` that go with `child`, if the one explains the other in every trial.
std::optional<std::vector<double>> explaining(const std::vector<Point>& rows, std::size_t parent,
                                              std::size_t child) {
    std::set<double> with;
    std::set<double> without;
    for (const Point& row : rows) {
        const bool has_child = is_active(row[child]);
        if (!is_active(row[parent])) {
            if (has_child) return std::nullopt;
            continue;
        }
        (has_child ? with : without).insert(row[parent]);
    }
    for (const double value : with)
        if (without.contains(value)) return std::nullopt;
    if (with.empty()) return std::nullopt;
    return std::vector<double>(with.begin(), with.end());
}

void infer_conditions(std::vector<Parameter>& parameters, const std::vector<Point>& rows,
                      std::vector<std::string>& notes) {
    const auto is_always = [&](std::size_t i) {
        return std::all_of(rows.begin(), rows.end(),
                           [i](const Point& row) { return is_active(row[i]); });
    };
    const std::size_t count = parameters.size();
    std::vector<bool> is_known(count);  // when it exists: always, or its condition was found
    for (std::size_t i = 0; i < count; ++i) is_known[i] = is_always(i);
    const auto explain = [&](std::size_t child) {
        for (std::size_t parent = 0; parent < count; ++parent) {
            if (!is_known[parent] || parameters[parent].kind != Kind::kChoice) continue;
            const auto values = explaining(rows, parent, child);
            if (!values) continue;
            Condition condition;
            condition.parent = parent;
            condition.any_of = *values;
            parameters[child].when = {condition};
            std::string names;
            for (const double value : *values)
                names += (names.empty() ? "" : ", ") + parameters[parent].text(value);
            notes.push_back("'" + parameters[child].name + "' is taken to exist when " +
                            parameters[parent].name + " is " + names);
            return true;
        }
        return false;
    };
    // Round by round, for a parent may be conditional itself; one whose condition is known cannot
    // close a circle.
    for (bool is_more = true; is_more;) {
        std::vector<std::size_t> found;
        for (std::size_t child = 0; child < count; ++child)
            if (!is_known[child] && explain(child)) found.push_back(child);
        for (const std::size_t child : found) is_known[child] = true;
        is_more = !found.empty();
    }
}

Result<Space> read_space(const OptunaStudy& study, std::vector<std::string>& notes) {
    TUNE_TRY(parameters, read_parameters(study));
    infer_conditions(parameters, rows_of(study, parameters), notes);
    return Space::make(std::move(parameters));
}

std::string text_of_json(const std::string& json_text) {
    const Result<Json> json = parse_json(json_text);
    return json && json->is_string() ? json->get<std::string>() : json_text;
}

TrialState state_of(const OptunaTrial& trial) {
    if (trial.state == "COMPLETE") return TrialState::kComplete;
    if (trial.state == "PRUNED") return TrialState::kPruned;
    if (trial.state == "WAITING") return TrialState::kQueued;
    const std::string* ours = attribute(trial.user_attributes, "tune.state");
    const bool is_cancelled = trial.state == "RUNNING" || (ours && *ours == "\"cancelled\"");
    return is_cancelled ? TrialState::kCancelled : TrialState::kFailed;
}

Result<Point> point_of(const OptunaTrial& trial, const Space& space) {
    Point point = space.empty_point();
    if (trial.state == "WAITING") {
        const std::string* fixed = attribute(trial.system_attributes, "fixed_params");
        if (fixed == nullptr) return point;
        TUNE_TRY(params, parse_json(*fixed));
        return space.point_from_json(params);
    }
    for (const OptunaParam& param : trial.params) {
        const auto index = space.find(param.name);
        if (!index)
            return Error{Code::kInvalidParameterValue, "'" + param.name + "' is not in the space"};
        const Parameter& parameter = space[*index];
        const bool is_on_grid = parameter.step > 0 && parameter.contains(param.value);
        point[*index] = is_on_grid ? parameter.snap(param.value) : param.value;
    }
    TUNE_TRY_VOID(space.check(point));
    return point;
}

/// Names of the constraints that some trial has, in order of the first.
std::vector<std::string> constraint_names(const OptunaStudy& study) {
    std::vector<std::string> names;
    for (const OptunaTrial& trial : study.trials)
        for (const auto& [key, json] : trial.system_attributes) {
            constexpr std::string_view kPrefix = "constraints:";
            if (!key.starts_with(kPrefix)) continue;
            std::string name = key.substr(kPrefix.size());
            if (std::find(names.begin(), names.end(), name) == names.end())
                names.push_back(std::move(name));
        }
    return names;
}

/// What was measured of each constraint; empty when one is missing.
std::vector<double> constraints_of(const OptunaTrial& trial,
                                   const std::vector<std::string>& names) {
    std::vector<double> values;
    const std::string* ours = attribute(trial.system_attributes, "tune:constraints");
    const Result<Json> measured = parse_json(ours != nullptr ? *ours : "{}");
    for (const std::string& name : names) {
        const std::string* beyond = attribute(trial.system_attributes, "constraints:" + name);
        const Result<Json> theirs = parse_json(beyond != nullptr ? *beyond : "null");
        if (measured && measured->is_object() && measured->contains(name) &&
            (*measured)[name].is_number())
            values.push_back((*measured)[name].get<double>());
        else if (theirs && theirs->is_number())
            values.push_back(theirs->get<double>());
        else
            return {};
    }
    return values;
}

ImportedTrial import_trial(const OptunaTrial& trial, Point point) {
    ImportedTrial made;
    made.state = state_of(trial);
    made.point = std::move(point);
    if (made.state == TrialState::kComplete || made.state == TrialState::kPruned)
        made.values = trial.values;
    made.intermediate = trial.intermediate;
    made.start_ms = trial.start_ms;
    made.end_ms = trial.complete_ms != 0 ? trial.complete_ms : trial.start_ms;
    if (trial.state == "RUNNING") made.reason = "it was running in Optuna when it was imported";
    for (const auto& [key, json] : trial.user_attributes) {
        if (key == "tune.reason")
            made.reason = text_of_json(json);
        else if (!key.starts_with("tune."))
            made.tags.emplace_back(key, text_of_json(json));
    }
    made.tags.emplace_back("optuna.number", std::to_string(trial.number));
    return made;
}

/// What the study itself says of its metrics; Optuna knows only directions, and names if it was
/// told them.
Json metrics_of(const OptunaStudy& study) {
    Json names = Json::array();
    if (const std::string* json = attribute(study.system_attributes, "study:metric_names"))
        if (const Result<Json> read = parse_json(*json); read && read->is_array()) names = *read;
    Json metrics = Json::array();
    for (std::size_t i = 0; i < study.is_maximized.size(); ++i) {
        std::string name = study.is_maximized.size() == 1 ? "value" : "value_" + std::to_string(i);
        if (i < names.size() && names[i].is_string()) name = names[i].get<std::string>();
        metrics.push_back(
            {{"name", name}, {"goal", study.is_maximized[i] ? "max" : "min"}, {"take", "last"}});
    }
    return metrics.size() == 1 ? metrics[0] : metrics;
}

Result<StudyConfig> read_config(const OptunaStudy& study, std::vector<std::string>& notes) {
    StudyConfig config;
    if (const std::string* ours = attribute(study.system_attributes, "tune:study")) {
        TUNE_TRY(json, parse_json(*ours));
        TUNE_TRY(read, study_config_from_json(json));
        config = std::move(read);
    } else {
        Json described = {{"metric", metrics_of(study)}};
        for (const std::string& name : constraint_names(study))
            described["constraints"].push_back({{"name", name}, {"max", 0}, {"take", "last"}});
        TUNE_TRY(read, study_config_from_json(described));
        config = std::move(read);
        TUNE_TRY(space, read_space(study, notes));
        config.space = std::move(space);
    }
    config.study = study.name;
    std::replace(config.study.begin(), config.study.end(), '/', '-');
    return config;
}

}  // namespace

Result<ImportedStudy> from_optuna(OptunaStudy study) {
    ImportedStudy made;
    if (study.is_maximized.empty())
        return Error{Code::kDataLoss, "the study '" + study.name + "' has no direction"};
    make_names_usable(study, made.notes);
    TUNE_TRY(config, read_config(study, made.notes));
    made.config = std::move(config);
    std::vector<std::string> names;  // of the constraints, in the configuration's order
    const Json described = to_json(made.config);
    for (const Json& constraint : described.value("constraints", Json::array()))
        names.push_back(constraint.at("name").get<std::string>());
    std::size_t left_out = 0;
    std::string first_error;
    std::size_t unmeasured = 0;
    for (const OptunaTrial& trial : study.trials) {
        Result<Point> point = point_of(trial, made.config.space);
        if (point) {
            made.trials.push_back(import_trial(trial, std::move(*point)));
            ImportedTrial& imported = made.trials.back();
            imported.constraints = constraints_of(trial, names);
            const bool is_whole = imported.constraints.size() == names.size();
            unmeasured += imported.state == TrialState::kComplete && !is_whole ? 1 : 0;
            continue;
        }
        if (left_out++ == 0)
            first_error = "trial " + std::to_string(trial.number) + ": " + point.error().message;
    }
    if (left_out > 0)
        made.notes.push_back((left_out == 1 ? "1 trial is left out, as its point does"
                                            : std::to_string(left_out) +
                                                  " trials are left out, as their points do") +
                             std::string(" not fit the space (") + first_error + ")");
    if (unmeasured > 0)
        made.notes.push_back(unmeasured == 1
                                 ? "1 complete trial lacks the value of a constraint and counts "
                                   "as failed"
                                 : std::to_string(unmeasured) +
                                       " complete trials lack the value of a constraint and "
                                       "count as failed");
    for (const auto& [key, json] : study.user_attributes)
        made.tags.emplace_back(key, text_of_json(json));
    return made;
}

}  // namespace tune::tuner
