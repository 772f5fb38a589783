// What a study measures: its objectives and the constraints on its results, with the -m flag.
//
// One metric and a list of them are the same to the rest of the program: metrics_of gives all of
// them, the first one first. Rules that span several sections (which sampler takes several
// objectives, that no pruner does) are checked in check_metrics, after file and flags are merged,
// because either may come from the command line.

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/counted.h"
#include "tuner/config/study_sections.h"
#include "tuner/config/study_words.h"
#include "tuner/options/fields.h"
#include "tuner/sampler/sampler_kind.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

constexpr double kFinite = std::numeric_limits<double>::max();
constexpr std::size_t kStepNameBytesMax = 100;

Result<void> read_goal(const Fields& fields, MetricConfig& metric) {
    const Node* goal = fields.find("goal");
    if (goal == nullptr) return {};
    const std::optional<Goal> parsed =
        goal->type == Node::Type::kString ? goal_from_name(goal->text) : std::nullopt;
    if (!parsed)
        return error_at(goal->place, fields.path_of("goal"),
                        "expected min or max, found " + describe(*goal));
    metric.goal = *parsed;
    return {};
}

Result<void> read_name(const Fields& fields, MetricConfig& metric) {
    TUNE_TRY_VOID(fields.text("name", metric.name, 250));
    const Node* name = fields.find("name");
    if (name == nullptr) return {};
    if (const auto error = metric_name_error(metric.name))
        return error_at(name->place, fields.path_of("name"), *error);
    return {};
}

Result<void> read_take(const Fields& fields, MetricConfig& metric) {
    const Node* take = fields.find("take");
    if (take == nullptr ||
        (take->type == Node::Type::kString && aggregation_from_name(take->text, metric)))
        return {};
    return error_at(
        take->place, fields.path_of("take"),
        "expected best, last or mean_last_N (N from 1 to 1000), found " + describe(*take));
}

constexpr const char* kNameSchema = R"({"type": "string", "minLength": 1, "maxLength": 250})";

OptionTable metric_rows() {
    TableOf<MetricConfig> table;
    table
        .custom(
            "name",
            {.type = "text",
             .schema = kNameSchema,
             .api = "text",
             .read = read_name,
             .write = [](const MetricConfig& metric, Json& json) { json["name"] = metric.name; },
             .is_always_written = true},
            "of the metric that trials report")
        .needed();
    table.custom("goal",
                 {.type = "min or max",
                  .schema = R"({"enum": ["min", "max", "minimize", "maximize"]})",
                  .api = "enum(min|max)",
                  .read = read_goal,
                  .write = [](const MetricConfig& metric,
                              Json& json) { json["goal"] = std::string(goal_name(metric.goal)); },
                  .is_always_written = true},
                 "which way is better");
    table.text("step", &MetricConfig::step, kStepNameBytesMax,
               "what a step is called (epoch); shown, not interpreted");
    table.custom(
        "take",
        {.type = "best, last or mean_last_N",
         .schema =
             R"({"type": "string", "pattern": "^(best|last|mean_last_([1-9][0-9]{0,2}|1000))$"})",
         .api = "text",
         .read = read_take,
         .write = [](const MetricConfig& metric,
                     Json& json) { json["take"] = aggregation_name(metric); },
         .is_always_written = true},
        "how the history of a trial becomes its value; N from 1 to 1000");
    return table;
}

Result<MetricConfig> read_objective(const Node& node, const std::string& path) {
    MetricConfig metric;
    if (node.type == Node::Type::kString) {
        Result<void> parsed = parse_metric_flag(node.text, metric);
        if (!parsed) return error_at(node.place, path, parsed.error().message);
        return metric;
    }
    TUNE_TRY(fields, Fields::open(node, path, metric_options().names()));
    TUNE_TRY_VOID(metric_options().read(fields, &metric));
    return metric;
}

Result<void> read_bounded_name(const Fields& fields, ConstraintConfig& constraint) {
    TUNE_TRY_VOID(read_name(fields, constraint.metric));
    if (!constraint.metric.name.empty()) return {};
    return error_at(fields.node().place, fields.path(),
                    "'name' is missing: the metric that is bounded");
}

Result<void> check_bounds(const Fields& fields, ConstraintConfig& constraint) {
    if (!constraint.min && !constraint.max)
        return error_at(fields.node().place, fields.path(),
                        "a constraint needs a bound: min, max or both, such as {name: " +
                            constraint.metric.name + ", max: 20}");
    if (constraint.min && constraint.max && *constraint.min > *constraint.max)
        return error_at(fields.node().place, fields.path(),
                        "min is above max: no trial could be feasible");
    const Node* take = fields.find("take");
    if (take == nullptr) return {};
    const bool is_known =
        take->type == Node::Type::kString && aggregation_from_name(take->text, constraint.metric);
    if (is_known && constraint.metric.aggregation != Aggregation::kBest) return {};
    return error_at(take->place, fields.path_of("take"),
                    "expected last or mean_last_N (N from 1 to 1000), found " + describe(*take));
}

OptionTable constraint_rows() {
    TableOf<ConstraintConfig> table;
    table
        .custom("name",
                {.type = "text",
                 .schema = kNameSchema,
                 .api = "text",
                 .read = read_bounded_name,
                 .write = [](const ConstraintConfig& constraint,
                             Json& json) { json["name"] = constraint.metric.name; },
                 .is_always_written = true},
                "of the metric that is bounded")
        .needed();
    table.number("min", &ConstraintConfig::min, -kFinite, kFinite, "lowest feasible value");
    table.number("max", &ConstraintConfig::max, -kFinite, kFinite, "highest feasible value");
    table
        .custom(
            "take",
            {.type = "last or mean_last_N",
             .schema =
                 R"({"type": "string", "pattern": "^(last|mean_last_([1-9][0-9]{0,2}|1000))$"})",
             .api = "text",
             .read = [](const Fields&, ConstraintConfig&) { return Result<void>(); },
             .write = [](const ConstraintConfig& constraint,
                         Json& json) { json["take"] = aggregation_name(constraint.metric); },
             .is_always_written = true},
            "how the history of a trial becomes the value; N from 1 to 1000")
        .defaults_to("last");
    table.check(check_bounds);
    return table;
}

Result<ConstraintConfig> read_constraint(const Node& node, const std::string& path) {
    TUNE_TRY(fields, Fields::open(node, path, constraint_options().names()));
    ConstraintConfig constraint;
    constraint.metric.aggregation = Aggregation::kLast;
    TUNE_TRY_VOID(constraint_options().read(fields, &constraint));
    return constraint;
}

std::string item_path(const char* key, std::size_t index) {
    return std::string(key) + "[" + std::to_string(index) + "]";
}

Error invalid_metric(std::string_view path, const std::string& message) {
    return error_at({}, path, message);
}

}  // namespace

const OptionTable& metric_options() {
    static const OptionTable kOptions = metric_rows();
    return kOptions;
}

const OptionTable& constraint_options() {
    static const OptionTable kOptions = constraint_rows();
    return kOptions;
}

Result<void> read_metric(const Node& node, StudyConfig& config) {
    config.more_metrics.clear();
    if (node.type != Node::Type::kList) {
        TUNE_TRY(metric, read_objective(node, "metric"));
        config.metric = std::move(metric);
        return {};
    }
    if (node.items.empty() || node.items.size() > kObjectivesMax)
        return error_at(node.place, "metric",
                        "expected 1 to " + std::to_string(kObjectivesMax) +
                            " objectives, found a list of " + std::to_string(node.items.size()));
    std::vector<MetricConfig> metrics;
    for (const Node& item : node.items) {
        const std::string path = item_path("metric", metrics.size());
        TUNE_TRY(metric, read_objective(item, path));
        if (metric.name.empty())
            return error_at(item.place, path, "'name' is missing: each objective needs one");
        for (const MetricConfig& other : metrics)
            if (other.name == metric.name)
                return error_at(item.place, path,
                                "the metric " + in_quotes(metric.name) + " is an objective twice");
        metrics.push_back(std::move(metric));
    }
    config.metric = std::move(metrics.front());
    config.more_metrics.assign(std::make_move_iterator(metrics.begin() + 1),
                               std::make_move_iterator(metrics.end()));
    return {};
}

Result<void> read_constraints(const Node& node, StudyConfig& config) {
    if (node.type != Node::Type::kList)
        return error_at(
            node.place, "constraints",
            "expected a list such as [{name: latency_ms, max: 20}], found " + describe(node));
    if (node.items.size() > kConstraintsMax)
        return error_at(
            node.place, "constraints",
            "at most " + std::to_string(kConstraintsMax) + " constraints are supported");
    config.constraints.clear();
    for (const Node& item : node.items) {
        const std::string path = item_path("constraints", config.constraints.size());
        TUNE_TRY(constraint, read_constraint(item, path));
        for (const ConstraintConfig& other : config.constraints)
            if (other.metric.name == constraint.metric.name)
                return error_at(item.place, path,
                                "the metric " + in_quotes(constraint.metric.name) +
                                    " is bounded twice; give min and max in one constraint");
        config.constraints.push_back(std::move(constraint));
    }
    return {};
}

std::vector<MetricConfig> metrics_of(const StudyConfig& config) {
    std::vector<MetricConfig> metrics = {config.metric};
    metrics.insert(metrics.end(), config.more_metrics.begin(), config.more_metrics.end());
    return metrics;
}

std::vector<double> violations_of(const std::vector<ConstraintConfig>& constraints,
                                  const std::vector<double>& values) {
    std::vector<double> found;
    for (std::size_t i = 0; i < constraints.size() && i < values.size(); ++i) {
        double beyond = 0;
        if (constraints[i].max) beyond += std::max(0.0, values[i] - *constraints[i].max);
        if (constraints[i].min) beyond += std::max(0.0, *constraints[i].min - values[i]);
        found.push_back(beyond);
    }
    return found;
}

double violation_of(const std::vector<ConstraintConfig>& constraints,
                    const std::vector<double>& values) {
    double sum = 0;
    for (const double beyond : violations_of(constraints, values)) sum += beyond;
    return sum;
}

Result<void> check_metrics(const StudyConfig& config) {
    const std::size_t objectives = 1 + config.more_metrics.size();
    if (objectives > 1 && !config.pruner.is_none())
        return invalid_metric(
            "pruner",
            "a pruner compares trials by one value, and this study has " +
                std::to_string(objectives) +
                " objectives; leave the pruner out (pruner: none), or make one objective a "
                "constraint");
    const std::size_t targets = config.budget.target.size();
    if (targets != 0 && targets != objectives)
        return invalid_metric("budget", "target has " + std::to_string(targets) +
                                            (targets == 1 ? " number" : " numbers") +
                                            " and this study " + std::to_string(objectives) +
                                            (objectives == 1 ? " objective" : " objectives") +
                                            "; give one number for each");
    if (config.warm_start && config.warm_start->history > 0 && !config.constraints.empty())
        return invalid_metric(
            "warm_start",
            "earlier trials say nothing of this study's constraints, so they are no history "
            "for its sampler; leave history out, their best points can be its first trials");
    if (config.warm_start)
        for (const EarlierTrial& trial : config.warm_start->trials)
            if (1 + trial.more_values.size() != objectives)
                return invalid_metric("warm_start",
                                      "an earlier trial has " +
                                          counted(1 + std::ssize(trial.more_values), "value") +
                                          " and this study " + counted(objectives, "objective"));
    const StudyShape shape{.objectives = objectives,
                           .has_constraints = !config.constraints.empty(),
                           .has_history = config.warm_start && config.warm_start->history > 0};
    const SamplerKind& kind = config.sampler.kind();
    if (kind.check_study != nullptr) TUNE_TRY_VOID(kind.check_study(config.sampler, shape));
    if (!kind.takes_more && (shape.objectives > 1 || shape.has_constraints))
        return invalid_metric("sampler",
                              "the sampler " + std::string(kind.name) +
                                  " takes one objective and no constraints; use auto, tpe, nsga2 "
                                  "or nsga3 here");
    return {};
}

Objectives objectives_of(const StudyConfig& config) {
    std::vector<Goal> goals;
    for (const MetricConfig& metric : metrics_of(config)) goals.push_back(metric.goal);
    return Objectives(std::move(goals), !config.constraints.empty());
}

std::string sampler_outlook(const StudyConfig& config) {
    const auto outlook = config.sampler.kind().outlook;
    if (outlook == nullptr) return {};
    return outlook(config.sampler, {.space = config.space,
                                    .objectives = objectives_of(config),
                                    .trials = config.budget.trials,
                                    .parallel = config.budget.parallel.value_or(1)});
}

Json to_json(const MetricConfig& metric) {
    Json json = Json::object();
    metric_options().write(&metric, json);
    return json;
}

Json to_json(const std::vector<ConstraintConfig>& constraints) {
    Json list = Json::array();
    for (const ConstraintConfig& constraint : constraints) {
        Json json = Json::object();
        constraint_options().write(&constraint, json);
        list.push_back(std::move(json));
    }
    return list;
}

Result<void> parse_metrics_flag(std::string_view text, StudyConfig& config) {
    std::vector<MetricConfig> metrics;
    const std::vector<MetricConfig> before = metrics_of(config);
    while (true) {
        const std::size_t comma = text.find(',');
        // What the file says besides name and goal is kept, place by place.
        MetricConfig metric =
            metrics.size() < before.size() ? before[metrics.size()] : MetricConfig{};
        TUNE_TRY_VOID(parse_metric_flag(text.substr(0, comma), metric));
        for (const MetricConfig& other : metrics)
            if (other.name == metric.name)
                return invalid_metric(
                    "metric", "the metric " + in_quotes(metric.name) + " is an objective twice");
        metrics.push_back(std::move(metric));
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    if (metrics.size() > kObjectivesMax)
        return invalid_metric(
            "metric", "at most " + std::to_string(kObjectivesMax) + " objectives are supported");
    config.metric = std::move(metrics.front());
    config.more_metrics.assign(std::make_move_iterator(metrics.begin() + 1),
                               std::make_move_iterator(metrics.end()));
    return {};
}

}  // namespace tune::tuner
