// Rules arrive as JSON over REST and lie as documents in the store. One reader serves both, with
// limits on every number, so that a stored rule can never be one that the route would refuse.

#include "tracker/alerts/alert_rule.h"

#include <nlohmann/json.hpp>

namespace tune::tracker {
namespace {

constexpr std::int64_t kSilenceMax_s = 366LL * 24 * 3600;
constexpr std::int64_t kPointsMax = 1'000'000;

Error invalid(const std::string& field, const std::string& what, const Json& found) {
    return {Code::kInvalidParameterValue,
            "'" + field + "' of an alert must be " + what + ", not " + to_text(found) + "."};
}

const Json& field(const Json& json, const char* name) {
    static const Json kAbsent;
    const auto found = json.find(name);
    return found == json.end() ? kAbsent : *found;
}

Result<AlertKind> read_kind(const Json& json) {
    const Json& kind = field(json, "kind");
    for (const AlertKind one : {AlertKind::kNan, AlertKind::kPlateau, AlertKind::kSilence})
        if (kind == alert_kind_name(one)) return one;
    return invalid("kind", "nan, plateau or silence", kind);
}

Result<std::int64_t> read_count(const Json& json, const char* name, std::int64_t max) {
    const Json& value = field(json, name);
    if (value.is_number_integer() && value >= 1 && value <= max) return value.get<std::int64_t>();
    return invalid(name, "a whole number from 1 to " + std::to_string(max), value);
}

/// Fields that belong to another kind are mistakes, not to be passed over in silence.
Result<void> check_fields(const Json& json, AlertKind kind) {
    for (const auto& [name, value] : json.items()) {
        const bool is_common = name == "kind" || name == "experiment_id";
        const bool is_plateau =
            name == "metric" || name == "goal" || name == "min_delta" || name == "points";
        const bool is_known = is_common || (kind == AlertKind::kNan && name == "metric") ||
                              (kind == AlertKind::kPlateau && is_plateau) ||
                              (kind == AlertKind::kSilence && name == "seconds");
        if (!is_known)
            return Error{Code::kInvalidParameterValue, "An alert of kind " +
                                                           std::string(alert_kind_name(kind)) +
                                                           " has no field '" + name + "'."};
    }
    return {};
}

Result<void> read_plateau(const Json& json, AlertRule& rule) {
    if (rule.metric.empty())
        return invalid("metric", "the name of a metric", field(json, "metric"));
    const Json& goal = field(json, "goal");
    if (!goal.is_null() && goal != "min" && goal != "max")
        return invalid("goal", "min or max", goal);
    rule.is_minimized = goal != "max";
    const Json& min_delta = field(json, "min_delta");
    if (!min_delta.is_null()) {
        if (!min_delta.is_number() || !(min_delta.get<double>() >= 0))
            return invalid("min_delta", "a number of at least 0", min_delta);
        rule.min_delta = min_delta.get<double>();
    }
    TUNE_TRY(points, read_count(json, "points", kPointsMax));
    rule.points = points;
    return {};
}

}  // namespace

std::string_view alert_kind_name(AlertKind kind) {
    switch (kind) {
        case AlertKind::kNan: return "nan";
        case AlertKind::kPlateau: return "plateau";
        case AlertKind::kSilence: return "silence";
    }
    return {};
}

Result<AlertRule> alert_rule_from_json(const Json& json) {
    if (!json.is_object())
        return Error{Code::kInvalidParameterValue, "An alert must be a JSON object."};
    AlertRule rule;
    TUNE_TRY(kind, read_kind(json));
    rule.kind = kind;
    TUNE_TRY_VOID(check_fields(json, kind));
    const Json& experiment = field(json, "experiment_id");
    if (experiment.is_string()) {
        TUNE_TRY(id, parse_experiment_id(experiment.get_ref<const std::string&>()));
        rule.experiment_id = id;
    } else if (!experiment.is_null()) {
        return invalid("experiment_id", "an experiment's id as text", experiment);
    }
    const Json& metric = field(json, "metric");
    if (!metric.is_null() && !metric.is_string())
        return invalid("metric", "the name of a metric", metric);
    if (metric.is_string()) rule.metric = metric.get<std::string>();
    if (kind == AlertKind::kPlateau) TUNE_TRY_VOID(read_plateau(json, rule));
    if (kind == AlertKind::kSilence) {
        TUNE_TRY(seconds, read_count(json, "seconds", kSilenceMax_s));
        rule.silence_ms = seconds * 1000;
    }
    return rule;
}

Json alert_rule_to_json(const AlertRule& rule) {
    Json json = {{"alert_id", rule.alert_id},
                 {"kind", alert_kind_name(rule.kind)},
                 {"created", rule.created_ms}};
    if (rule.experiment_id) json["experiment_id"] = std::to_string(*rule.experiment_id);
    if (!rule.metric.empty()) json["metric"] = rule.metric;
    if (rule.kind == AlertKind::kPlateau) {
        json["goal"] = rule.is_minimized ? "min" : "max";
        json["min_delta"] = rule.min_delta;
        json["points"] = rule.points;
    }
    if (rule.kind == AlertKind::kSilence) json["seconds"] = rule.silence_ms / 1000;
    return json;
}

void PlateauState::add(const AlertRule& rule, const Metric& point) {
    const std::pair place{point.timestamp_ms, point.step};
    const bool is_newer = place > newest_;
    if (is_newer) newest_ = place;
    const bool is_better =
        !std::isnan(point.value) &&
        (std::isnan(best_) || (rule.is_minimized ? point.value < best_ - rule.min_delta
                                                 : point.value > best_ + rule.min_delta));
    if (is_better) {
        best_ = point.value;
        best_step_ = point.step;
        since_best_ = 0;
    } else if (is_newer) {
        ++since_best_;
    }
}

}  // namespace tune::tracker
