// `budget` of study.yaml: what ends a study, and what a trial may use.
//
// A cost is counted in seconds, GPU seconds or a metric. The three share `max`, whose unit follows
// from the others; that is why `of` and `metric` are read before it. Only a cost by a metric has a
// bound per trial: times are cut off when they are used up.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "tuner/config/study_sections.h"
#include "tuner/config/study_words.h"
#include "tuner/options/fields.h"
#include "tuner/space/error_text.h"

namespace tune::tuner {
namespace {

/// What is counted: `of` or `metric`, of which one is given.
Result<void> read_counted(const Fields& fields, CostBudget& cost) {
    const Node* of = fields.find("of");
    TUNE_TRY_VOID(fields.text("metric", cost.metric, 250));
    if (fields.find("metric") != nullptr) {
        cost.of = CostBudget::Of::kMetric;
        const auto error = metric_name_error(cost.metric);
        if (error || of != nullptr)
            return error_at(fields.node().place, fields.path(),
                            error ? *error : "expected 'metric' or 'of', not both");
        return {};
    }
    if (of == nullptr || of->type != Node::Type::kString ||
        (of->text != "seconds" && of->text != "gpu_seconds"))
        return error_at(of != nullptr ? of->place : fields.node().place, fields.path(),
                        "expected {of: seconds, max: 10h}, {of: gpu_seconds, max: 100h} or "
                        "{metric: NAME, max: NUMBER}");
    cost.of = of->text == "seconds" ? CostBudget::Of::kSeconds : CostBudget::Of::kGpuSeconds;
    return {};
}

/// A duration, or a number in the metric's unit.
Result<void> read_cost_max(const Fields& fields, CostBudget& cost) {
    const Node* max = fields.find("max");
    if (max == nullptr) return error_at(fields.node().place, fields.path(), "'max' is missing");
    if (cost.of == CostBudget::Of::kMetric) {
        TUNE_TRY_VOID(fields.number("max", cost.max, 0, kNumberMax));
    } else {
        TUNE_TRY(max_ms, duration_of(*max, fields.path_of("max")));
        cost.max = static_cast<double>(max_ms) / 1000;
    }
    if (cost.max > 0) return {};
    return error_at(max->place, fields.path_of("max"), "expected a cost above 0");
}

Result<void> read_per_trial(const Fields& fields, CostBudget& cost) {
    const Node* per_trial = fields.find("per_trial");
    if (per_trial == nullptr) return {};
    if (cost.of != CostBudget::Of::kMetric)
        return error_at(per_trial->place, fields.path_of("per_trial"),
                        "times are cut off when they are used up; only the cost by a metric has "
                        "a bound for each trial");
    double bound = 0;
    TUNE_TRY_VOID(fields.number("per_trial", bound, 0, cost.max));
    if (bound <= 0)
        return error_at(per_trial->place, fields.path_of("per_trial"), "expected a cost above 0");
    cost.per_trial = bound;
    return {};
}

OptionTable cost_rows() {
    TableOf<CostBudget> table;
    table
        .custom("of",
                {.type = "seconds or gpu_seconds",
                 .schema = R"({"enum": ["seconds", "gpu_seconds"]})",
                 .api = "enum(seconds|gpu_seconds)",
                 .read = read_counted,
                 .write =
                     [](const CostBudget& cost, Json& json) {
                         if (cost.of == CostBudget::Of::kMetric) return;
                         const bool is_seconds = cost.of == CostBudget::Of::kSeconds;
                         json["of"] = is_seconds ? "seconds" : "gpu_seconds";
                     }},
                "the time of all attempts, including failed and lost ones; gpu_seconds multiplies "
                "it by gpus_per_trial")
        .defaults_to("none: give it or metric");
    table.custom(
        "metric",
        {.type = "text",
         .schema = R"({"type": "string", "minLength": 1, "maxLength": 250})",
         .api = "text",
         .read = [](const Fields&, CostBudget&) { return Result<void>(); },
         .write =
             [](const CostBudget& cost, Json& json) {
                 if (cost.of == CostBudget::Of::kMetric) json["metric"] = cost.metric;
             }},
        "instead of `of`: a trial costs the greatest value that it reports for this metric");
    table
        .custom("max",
                {.type = "duration, or a number in the metric's unit",
                 .schema = R"({"$ref": "#/definitions/duration"})",
                 .api = "number",
                 .read = read_cost_max,
                 .write = [](const CostBudget& cost, Json& json) { json["max"] = cost.max; },
                 .is_always_written = true},
                "most that all trials together may cost")
        .needed();
    table.custom("per_trial",
                 {.type = "number above 0",
                  .schema = R"({"type": "number", "exclusiveMinimum": 0})",
                  .api = "number",
                  .read = read_per_trial,
                  .write =
                      [](const CostBudget& cost, Json& json) {
                          if (cost.per_trial) json["per_trial"] = *cost.per_trial;
                      }},
                 "most that one trial may cost; a trial starts only if this much is left");
    return table;
}

Result<void> read_cost(const Fields& fields, BudgetConfig& budget) {
    const Node* node = fields.find("cost");
    if (node == nullptr) return {};
    TUNE_TRY(inner, Fields::open(*node, fields.path_of("cost"), cost_options().names()));
    CostBudget cost;
    TUNE_TRY_VOID(cost_options().read(inner, &cost));
    budget.cost = std::move(cost);
    return {};
}

OptionTable no_progress_rows() {
    TableOf<NoProgressBudget> table;
    table
        .integer("trials", &NoProgressBudget::trials, 1, static_cast<std::int64_t>(kTrialsMax),
                 "trials in a row that are no better")
        .needed();
    table.number("min_delta", &NoProgressBudget::min_delta, 0, kNumberMax,
                 "a smaller improvement does not count");
    return table;
}

Result<void> read_no_progress(const Fields& fields, BudgetConfig& budget) {
    const Node* node = fields.find("no_progress");
    if (node == nullptr) return {};
    const std::string path = fields.path_of("no_progress");
    NoProgressBudget read;
    if (node->type == Node::Type::kInt) {
        read.trials = node->integer < 0 ? 0 : static_cast<std::uint64_t>(node->integer);
    } else {
        TUNE_TRY(inner, Fields::open(*node, path, no_progress_options().names()));
        TUNE_TRY_VOID(no_progress_options().read(inner, &read));
    }
    if (read.trials < 1 || read.trials > kTrialsMax)
        return error_at(node->place, path,
                        "expected a number of trials, or {trials: 50, min_delta: 0.001}");
    budget.no_progress = read;
    return {};
}

Result<void> read_target(const Fields& fields, BudgetConfig& budget) {
    const Node* target = fields.find("target");
    if (target == nullptr) return {};
    TUNE_TRY(read, read_numbers(*target, fields.path_of("target")));
    budget.target = std::move(read);
    return {};
}

void write_target(const BudgetConfig& budget, Json& json) {
    if (budget.target.size() == 1)
        json["target"] = budget.target.front();
    else if (!budget.target.empty())
        json["target"] = budget.target;
}

void add_ends(TableOf<BudgetConfig>& table) {
    table
        .integer("trials", &BudgetConfig::trials, 1, static_cast<std::int64_t>(kTrialsMax),
                 "the study ends when this many trials have ended; it never starts more")
        .defaults_to("until stopped or out of time");
    table.duration("time", &BudgetConfig::time_ms, 1,
                   "the study ends this long after its first trial started");
    table.custom("cost",
                 {.type = "map",
                  .schema = R"({"$ref": "#/definitions/cost"})",
                  .api = "CostBudget",
                  .read = read_cost,
                  .write =
                      [](const BudgetConfig& budget, Json& json) {
                          if (budget.cost) cost_options().write(&*budget.cost, json["cost"]);
                      }},
                 "most that all trials together may cost");
    table.custom(
        "no_progress",
        {.type = "integer or map",
         .schema = R"({"anyOf": [
                      {"type": "integer", "minimum": 1, "maximum": )" +
                   std::to_string(kTrialsMax) + R"(}, {"$ref": "#/definitions/no_progress"}]})",
         .api = "NoProgressBudget",
         .read = read_no_progress,
         .write =
             [](const BudgetConfig& budget, Json& json) {
                 if (budget.no_progress)
                     no_progress_options().write(&*budget.no_progress, json["no_progress"]);
             }},
        "the study ends when this many trials in a row are no better");
    table.custom("target",
                 {.type = "number, or a list with one for each objective",
                  .schema = R"({"anyOf": [{"type": "number"}, {"type": "array",
                      "items": {"type": "number"}, "minItems": 1, "maxItems": 8}]})",
                  .api = "{json_schema: {anyOf: [{type: number}, {type: array, items: {type: "
                         "number}}]}}",
                  .read = read_target,
                  .write = write_target},
                 "the study ends when a complete trial is at least this good in each objective");
}

OptionTable budget_rows() {
    TableOf<BudgetConfig> table;
    add_ends(table);
    table.integer("parallel", &BudgetConfig::parallel, 1, 100'000, "trials at a time")
        .defaults_to("as many as the agents have slots");
    table.integer("gpus_per_trial", &BudgetConfig::gpus_per_trial, 0, 1024,
                  "GPUs that a trial has to itself");
    table.integer("cpus_per_trial", &BudgetConfig::cpus_per_trial, 0, 4096,
                  "cores that a trial has to itself; 0: trials share the cores");
    return table;
}

}  // namespace

const OptionTable& cost_options() {
    static const OptionTable kOptions = cost_rows();
    return kOptions;
}

const OptionTable& no_progress_options() {
    static const OptionTable kOptions = no_progress_rows();
    return kOptions;
}

const OptionTable& budget_options() {
    static const OptionTable kOptions = budget_rows();
    return kOptions;
}

Result<void> read_budget(const Node& node, StudyConfig& config) {
    TUNE_TRY(fields, Fields::open(node, "budget", budget_options().names()));
    BudgetConfig budget;
    TUNE_TRY_VOID(budget_options().read(fields, &budget));
    config.budget = std::move(budget);
    return {};
}

Json to_json(const BudgetConfig& budget) {
    Json json = Json::object();
    budget_options().write(&budget, json);
    return json;
}

Result<std::vector<double>> read_numbers(const Node& node, const std::string& path) {
    const bool is_list = node.type == Node::Type::kList;
    std::vector<double> numbers;
    for (const Node& item : is_list ? std::span(node.items) : std::span(&node, 1)) {
        if (!item.is_number() || !std::isfinite(item.number))
            return error_at(item.place, path,
                            "expected a number, or a list with one for each objective, found " +
                                describe(item));
        numbers.push_back(item.number);
    }
    if (numbers.empty() || numbers.size() > kObjectivesMax)
        return error_at(node.place, path, "expected a number for each objective");
    return numbers;
}

}  // namespace tune::tuner
