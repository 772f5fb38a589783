// The `pruner` section of a study.

#include <nlohmann/json.hpp>

#include "tuner/config/fields.h"
#include "tuner/config/study_sections.h"
#include "tuner/space/wording.h"

namespace tune::tuner {
namespace {

constexpr std::int64_t kStepMax = std::int64_t{1} << 53;
constexpr int kCountMax = 1'000'000;

constexpr PrunerType kTypes[] = {
    PrunerType::kNone,      PrunerType::kMedian,    PrunerType::kPercentile,
    PrunerType::kAsha,      PrunerType::kHyperband, PrunerType::kRunningPercentile,
    PrunerType::kThreshold, PrunerType::kWilcoxon,  PrunerType::kPatience,
    PrunerType::kAny,       PrunerType::kAll};

std::vector<std::string> keys_of(PrunerType type) {
    switch (type) {
        case PrunerType::kNone: return {};
        case PrunerType::kMedian: return {"startup", "warmup", "interval", "min_trials"};
        case PrunerType::kPercentile:
            return {"percentile", "startup", "warmup", "interval", "min_trials"};
        case PrunerType::kRunningPercentile:
            return {"percentile", "min_trials", "warmup", "until", "interval", "keep_best"};
        case PrunerType::kAsha: return {"min", "max", "eta", "rate", "bootstrap"};
        case PrunerType::kHyperband: return {"min", "max", "eta", "bootstrap"};
        case PrunerType::kThreshold: return {"lower", "upper", "warmup", "interval"};
        case PrunerType::kWilcoxon: return {"p", "startup_steps"};
        case PrunerType::kPatience: return {"wait", "min_delta", "of"};
        case PrunerType::kAny:
        case PrunerType::kAll: return {"of"};
    }
    return {};
}

Result<void> read_common(const Fields& fields, PrunerConfig& pruner) {
    TUNE_TRY_VOID(fields.number("percentile", pruner.percentile, 0, 100));
    TUNE_TRY_VOID(fields.integer("startup", pruner.startup, 0, kCountMax));
    TUNE_TRY_VOID(fields.integer("warmup", pruner.warmup, 0, kStepMax));
    TUNE_TRY_VOID(fields.integer("interval", pruner.interval, 1, kStepMax));
    TUNE_TRY_VOID(fields.integer("until", pruner.until, 0, kStepMax));
    TUNE_TRY_VOID(fields.integer("keep_best", pruner.keep_best, 0, kCountMax));
    TUNE_TRY_VOID(fields.number("p", pruner.p, 0, 1));
    TUNE_TRY_VOID(fields.integer("startup_steps", pruner.startup_steps, 0, kCountMax));
    TUNE_TRY_VOID(fields.integer("wait", pruner.wait, 0, kCountMax));
    TUNE_TRY_VOID(fields.number("min_delta", pruner.min_delta, 0, 1e300));
    return fields.integer("min_trials", pruner.min_trials, 1, kCountMax);
}

/// An integer, or "auto" for 0.
Result<void> read_steps(const Fields& fields, std::string_view key, std::int64_t& out) {
    const Node* node = fields.find(key);
    if (node == nullptr) return {};
    if (node->type == Node::Type::kString && node->text == "auto") {
        out = 0;
        return {};
    }
    return fields.integer(key, out, 1, kStepMax);
}

Result<void> read_rungs(const Fields& fields, PrunerConfig& pruner) {
    const bool is_hyperband = pruner.type == PrunerType::kHyperband;
    if (is_hyperband) {
        pruner.eta = 3;
        pruner.min = 1;
        TUNE_TRY_VOID(fields.integer("min", pruner.min, 1, kStepMax));
        TUNE_TRY_VOID(read_steps(fields, "max", pruner.max));
    } else {
        TUNE_TRY_VOID(read_steps(fields, "min", pruner.min));
        TUNE_TRY_VOID(fields.integer("max", pruner.max, 1, kStepMax));
    }
    TUNE_TRY_VOID(fields.integer("eta", pruner.eta, 2, 1000));
    TUNE_TRY_VOID(fields.integer("rate", pruner.rate, 0, 50));
    TUNE_TRY_VOID(fields.integer("bootstrap", pruner.bootstrap, 0, kCountMax));
    if (pruner.bootstrap > 0 && (is_hyperband ? pruner.max : pruner.min) == 0)
        return fault_at(fields.node().place, fields.path(),
                        std::string("'bootstrap' needs a fixed '") +
                            (is_hyperband ? "max" : "min") + "', not auto");
    if (pruner.max != 0 && pruner.max <= pruner.min)
        return fault_at(fields.find("max")->place, fields.path_of("max"),
                        "max " + std::to_string(pruner.max) + " is not above min " +
                            std::to_string(pruner.min) + ", so there would be no rung");
    return {};
}

Result<void> read_limit(const Fields& fields, std::string_view key, std::optional<double>& out) {
    if (fields.find(key) == nullptr) return {};
    double value = 0;
    TUNE_TRY_VOID(fields.number(key, value, -1e300, 1e300));
    out = value;
    return {};
}

Result<void> read_threshold(const Fields& fields, PrunerConfig& pruner) {
    TUNE_TRY_VOID(read_limit(fields, "lower", pruner.lower));
    TUNE_TRY_VOID(read_limit(fields, "upper", pruner.upper));
    if (!pruner.lower && !pruner.upper)
        return fault_at(fields.node().place, fields.path(),
                        "give 'lower', 'upper' or both: values outside are pruned");
    if (pruner.lower && pruner.upper && *pruner.lower > *pruner.upper)
        return fault_at(fields.node().place, fields.path(), "'lower' is above 'upper'");
    return {};
}

Result<PrunerConfig> read_one(const Node& node, const std::string& path, int depth);

Result<void> read_parts(const Fields& fields, PrunerConfig& pruner, int depth) {
    const Node* of = fields.find("of");
    const bool is_wrapper = pruner.type == PrunerType::kPatience;
    if (of == nullptr) {
        if (is_wrapper) return {};
        return fault_at(fields.node().place, fields.path(),
                        "'of' is missing: a list of pruners, such as [median, {type: threshold, "
                        "upper: 10}]");
    }
    if (depth >= kPrunerDepthMax)
        return fault_at(
            of->place, fields.path_of("of"),
            "pruners are nested more than " + std::to_string(kPrunerDepthMax) + " deep");
    if (is_wrapper && of->type != Node::Type::kList) {
        TUNE_TRY(part, read_one(*of, fields.path_of("of"), depth + 1));
        pruner.of = {std::move(part)};
        return {};
    }
    const std::size_t parts_max = is_wrapper ? 1 : kPrunerPartsMax;
    if (of->type != Node::Type::kList || of->items.empty() || of->items.size() > parts_max)
        return fault_at(of->place, fields.path_of("of"),
                        is_wrapper
                            ? "expected one pruner"
                            : "expected a list of 1 to " + std::to_string(parts_max) + " pruners");
    for (std::size_t i = 0; i < of->items.size(); ++i) {
        TUNE_TRY(part, read_one(of->items[i], fields.path_of("of") + "[" + std::to_string(i) + "]",
                                depth + 1));
        pruner.of.push_back(std::move(part));
    }
    return {};
}

/// What a pruner cannot do without.
std::optional<std::string> missing_key(PrunerType type, const Node& node) {
    const bool has_map = node.type == Node::Type::kMap;
    const auto lacks = [&](std::string_view key) { return !has_map || node.find(key) == nullptr; };
    const bool is_percentile =
        type == PrunerType::kPercentile || type == PrunerType::kRunningPercentile;
    if (is_percentile && lacks("percentile"))
        return "'percentile' is missing: the share of trials to keep, 0 to 100";
    if (type == PrunerType::kPatience && lacks("wait"))
        return "'wait' is missing: the number of reports without improvement to put up with";
    return std::nullopt;
}

Result<PrunerConfig> read_one(const Node& node, const std::string& path, int depth) {
    std::vector<std::string> names;
    for (const PrunerType type : kTypes) names.emplace_back(pruner_name(type));
    TUNE_TRY(name, type_of(node, path, names));
    PrunerConfig pruner;
    for (const PrunerType type : kTypes)
        if (pruner_name(type) == name) pruner.type = type;
    if (const auto missing = missing_key(pruner.type, node))
        return fault_at(node.place, path, *missing);
    if (pruner.type == PrunerType::kRunningPercentile) pruner.min_trials = 5;
    Node short_form;
    short_form.type = Node::Type::kMap;
    short_form.place = node.place;
    std::vector<std::string> known = keys_of(pruner.type);
    known.insert(known.begin(), "type");
    TUNE_TRY(fields, Fields::open(node.type == Node::Type::kMap ? node : short_form, path, known));
    TUNE_TRY_VOID(read_common(fields, pruner));
    switch (pruner.type) {
        case PrunerType::kAsha:
        case PrunerType::kHyperband: TUNE_TRY_VOID(read_rungs(fields, pruner)); break;
        case PrunerType::kThreshold: TUNE_TRY_VOID(read_threshold(fields, pruner)); break;
        case PrunerType::kPatience:
        case PrunerType::kAny:
        case PrunerType::kAll: TUNE_TRY_VOID(read_parts(fields, pruner, depth)); break;
        default: break;
    }
    return pruner;
}

Json rungs_json(const PrunerConfig& pruner) {
    Json json = {{"eta", pruner.eta}, {"bootstrap", pruner.bootstrap}};
    if (pruner.type == PrunerType::kHyperband) {
        json["min"] = pruner.min;
        json["max"] = pruner.max == 0 ? Json("auto") : Json(pruner.max);
        return json;
    }
    json["min"] = pruner.min == 0 ? Json("auto") : Json(pruner.min);
    if (pruner.max != 0) json["max"] = pruner.max;
    json["rate"] = pruner.rate;
    return json;
}

}  // namespace

Result<void> read_pruner(const Node& node, StudyConfig& config) {
    TUNE_TRY(pruner, read_one(node, "pruner", 1));
    config.pruner = std::move(pruner);
    return {};
}

Json to_json(const PrunerConfig& pruner) {
    Json json = Json::object();
    for (const std::string& key : keys_of(pruner.type)) {
        if (key == "percentile") json[key] = pruner.percentile;
        if (key == "startup") json[key] = pruner.startup;
        if (key == "warmup") json[key] = pruner.warmup;
        if (key == "interval") json[key] = pruner.interval;
        if (key == "min_trials") json[key] = pruner.min_trials;
        if (key == "until" && pruner.until != 0) json[key] = pruner.until;
        if (key == "keep_best") json[key] = pruner.keep_best;
        if (key == "lower" && pruner.lower) json[key] = *pruner.lower;
        if (key == "upper" && pruner.upper) json[key] = *pruner.upper;
        if (key == "p") json[key] = pruner.p;
        if (key == "startup_steps") json[key] = pruner.startup_steps;
        if (key == "wait") json[key] = pruner.wait;
        if (key == "min_delta") json[key] = pruner.min_delta;
        if (key == "eta") json.update(rungs_json(pruner));
        if (key == "of" && !pruner.of.empty()) {
            Json parts = Json::array();
            for (const PrunerConfig& part : pruner.of) parts.push_back(to_json(part));
            json[key] = std::move(parts);
        }
    }
    json["type"] = std::string(pruner_name(pruner.type));
    return json;
}

}  // namespace tune::tuner
