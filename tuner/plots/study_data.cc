// From the JSON of the API to points and values. The space is read as a study description, so that
// plots see the same parameters as samplers do; values of parameters that it does not know are left
// out, and a missing value is NaN.

#include "tuner/plots/study_data.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tuner/config/study_config.h"

namespace tune::tuner {
namespace {

Json field(const Json& object, const char* name) {
    const auto at = object.find(name);
    return at == object.end() ? Json(nullptr) : *at;
}

std::string text_field(const Json& object, const char* name) {
    const Json value = field(object, name);
    return value.is_string() ? value.get<std::string>() : std::string();
}

double seconds_field(const Json& object, const char* name) {
    const Json value = field(object, name);
    return value.is_number() ? value.get<double>() / 1000 : 0;
}

PlotMetric metric_of(const Json& json) {
    return {.name = text_field(json, "name"), .is_max = text_field(json, "goal") == "max"};
}

std::vector<double> values_of(const Json& trial, std::size_t metrics) {
    std::vector<double> values;
    const Json all = field(trial, "values");
    if (all.is_array())
        for (const Json& value : all) values.push_back(number_of(value));
    else
        values.push_back(number_of(field(trial, "value")));
    values.resize(metrics, kNaN);
    return values;
}

Point point_of(const Json& params, const Space& space) {
    Point point = space.empty_point();
    if (!params.is_object()) return point;
    for (std::size_t i = 0; i < space.size(); ++i) {
        const auto at = params.find(space[i].name);
        if (at == params.end()) continue;
        if (const Result<double> internal = space[i].internal(*at)) point[i] = *internal;
    }
    return point;
}

PlotTrial trial_of(const Json& json, const StudyData& study) {
    PlotTrial trial{.number = json.value("number", std::uint64_t{0}),
                    .state = text_field(json, "state"),
                    .point = point_of(field(json, "params"), study.space),
                    .values = values_of(json, study.metrics.size()),
                    .start_s = seconds_field(json, "start_ms"),
                    .end_s = seconds_field(json, "end_ms"),
                    .worker = text_field(json, "worker")};
    if (const Json violation = field(json, "violation"); violation.is_number())
        trial.violation = violation.get<double>();
    if (const Json curve = field(json, "intermediate"); curve.is_array())
        for (const Json& point : curve)
            trial.curve.emplace_back(number_of(point.at(0)), number_of(point.at(1)));
    return trial;
}

}  // namespace

double number_of(const Json& value) {
    if (value.is_number()) return value.get<double>();
    if (value == "Infinity") return std::numeric_limits<double>::infinity();
    if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
    return kNaN;
}

double StudyData::loss(const PlotTrial& trial, std::size_t metric) const {
    const double value = trial.values[metric];
    return metrics[metric].is_max ? -value : value;
}

std::vector<const PlotTrial*> StudyData::complete(std::size_t metric) const {
    std::vector<const PlotTrial*> found;
    for (const PlotTrial& trial : trials)
        if (trial.is_complete() && std::isfinite(trial.values[metric])) found.push_back(&trial);
    return found;
}

Result<StudyData> study_data(const Json& study, const Json& trials) {
    Json description = Json::object();
    for (const char* name : {"space", "space_order", "metric"})
        if (study.contains(name)) description[name] = study[name];
    TUNE_TRY(config, study_config_from_json(description));
    StudyData data{.name = text_field(study, "name"), .space = config.space};
    if (const Json metrics = field(study, "metrics"); metrics.is_array())
        for (const Json& metric : metrics) data.metrics.push_back(metric_of(metric));
    if (data.metrics.empty()) data.metrics.push_back(metric_of(field(study, "metric")));
    for (const Json& trial : trials) data.trials.push_back(trial_of(trial, data));
    return data;
}

}  // namespace tune::tuner
