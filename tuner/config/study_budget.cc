// `budget` and `warm_start` of study.yaml: what ends a study, and what it begins with.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "tuner/config/fields.h"
#include "tuner/config/study_sections.h"
#include "tuner/config/study_words.h"
#include "tuner/space/wording.h"

namespace tune::tuner {
namespace {

constexpr double kNumberMax = std::numeric_limits<double>::max();
constexpr std::size_t kParamsBytesMax = 4u << 20;

Result<CostBudget> read_cost(const Node& node) {
    TUNE_TRY(fields, Fields::open(node, "budget.cost", {"of", "metric", "max", "per_trial"}));
    CostBudget cost;
    const Node* of = fields.find("of");
    TUNE_TRY_VOID(fields.text("metric", cost.metric, 250));
    if (fields.find("metric") != nullptr) {
        cost.of = CostBudget::Of::kMetric;
        const auto fault = metric_name_fault(cost.metric);
        if (fault || of != nullptr)
            return fault_at(node.place, "budget.cost",
                            fault ? *fault : "expected 'metric' or 'of', not both");
    } else if (of == nullptr || of->type != Node::Type::kString ||
               (of->text != "seconds" && of->text != "gpu_seconds")) {
        return fault_at(of != nullptr ? of->place : node.place, "budget.cost",
                        "expected {of: seconds, max: 10h}, {of: gpu_seconds, max: 100h} or "
                        "{metric: NAME, max: NUMBER}");
    } else {
        cost.of = of->text == "seconds" ? CostBudget::Of::kSeconds : CostBudget::Of::kGpuSeconds;
    }
    const Node* max = fields.find("max");
    if (max == nullptr) return fault_at(node.place, "budget.cost", "'max' is missing");
    if (cost.of == CostBudget::Of::kMetric) {
        TUNE_TRY_VOID(fields.number("max", cost.max, 0, kNumberMax));
    } else {
        TUNE_TRY(max_ms, duration_of(*max, fields.path_of("max")));
        cost.max = static_cast<double>(max_ms) / 1000;
    }
    if (cost.max <= 0)
        return fault_at(max->place, fields.path_of("max"), "expected a cost above 0");
    const Node* per_trial = fields.find("per_trial");
    if (per_trial == nullptr) return cost;
    if (cost.of != CostBudget::Of::kMetric)
        return fault_at(per_trial->place, fields.path_of("per_trial"),
                        "times are cut off when they are used up; only the cost by a metric has "
                        "a bound for each trial");
    double bound = 0;
    TUNE_TRY_VOID(fields.number("per_trial", bound, 0, cost.max));
    if (bound <= 0)
        return fault_at(per_trial->place, fields.path_of("per_trial"), "expected a cost above 0");
    cost.per_trial = bound;
    return cost;
}

/// One number, or a list of one an objective.
Result<std::vector<double>> read_numbers(const Node& node, const std::string& path) {
    const bool is_list = node.type == Node::Type::kList;
    std::vector<double> numbers;
    for (const Node& item : is_list ? std::span(node.items) : std::span(&node, 1)) {
        if (!item.is_number() || !std::isfinite(item.number))
            return fault_at(item.place, path,
                            "expected a number, or a list with one for each objective, found " +
                                describe(item));
        numbers.push_back(item.number);
    }
    if (numbers.empty() || numbers.size() > kObjectivesMax)
        return fault_at(node.place, path, "expected a number for each objective");
    return numbers;
}

Result<NoProgressBudget> read_no_progress(const Node& node) {
    NoProgressBudget budget;
    std::int64_t trials = 0;
    const auto highest = static_cast<std::int64_t>(kTrialsMax);
    if (node.type == Node::Type::kInt) {
        trials = node.integer;
    } else {
        TUNE_TRY(fields, Fields::open(node, "budget.no_progress", {"trials", "min_delta"}));
        TUNE_TRY_VOID(fields.integer("trials", trials, 1, highest));
        TUNE_TRY_VOID(fields.number("min_delta", budget.min_delta, 0, kNumberMax));
    }
    if (trials < 1 || trials > highest)
        return fault_at(node.place, "budget.no_progress",
                        "expected a number of trials, or {trials: 50, min_delta: 0.001}");
    budget.trials = static_cast<std::uint64_t>(trials);
    return budget;
}

Result<EarlierTrial> read_earlier(const Node& node) {
    TUNE_TRY(fields, Fields::open(node, "warm_start.trials", {"params", "value", "values"}));
    EarlierTrial trial;
    const Node* params = fields.find("params");
    if (params == nullptr || params->type != Node::Type::kMap)
        return fault_at(node.place, "warm_start.trials",
                        "expected {params: {NAME: VALUE, ...}, value: NUMBER}");
    trial.params_json = to_text(to_json(*params));
    if (trial.params_json.size() > kParamsBytesMax)
        return fault_at(node.place, "warm_start.trials", "the params are longer than 4 MB");
    const Node* value = fields.find("value");
    const Node* values = fields.find("values");
    if ((value == nullptr) == (values == nullptr))
        return fault_at(node.place, "warm_start.trials",
                        value == nullptr ? "'value' is missing (or 'values', a list)"
                                         : "expected 'value' or 'values', not both");
    if (value != nullptr) {
        TUNE_TRY_VOID(fields.number("value", trial.value, -kNumberMax, kNumberMax));
        return trial;
    }
    TUNE_TRY(numbers, read_numbers(*values, "warm_start.trials.values"));
    trial.value = numbers.front();
    trial.more_values.assign(numbers.begin() + 1, numbers.end());
    return trial;
}

Result<void> read_earlier_trials(const Node& node, WarmStartConfig& warm_start) {
    if (node.type != Node::Type::kList || node.items.size() > kWarmStartMax)
        return fault_at(node.place, "warm_start.trials",
                        "expected a list of at most " + std::to_string(kWarmStartMax) +
                            " trials {params: {...}, value: NUMBER}");
    for (const Node& item : node.items) {
        TUNE_TRY(trial, read_earlier(item));
        warm_start.trials.push_back(std::move(trial));
    }
    return {};
}

}  // namespace

Result<void> read_budget(const Node& node, StudyConfig& config) {
    TUNE_TRY(fields, Fields::open(node, "budget",
                                  {"trials", "time", "cost", "no_progress", "target", "parallel",
                                   "gpus_per_trial", "cpus_per_trial"}));
    BudgetConfig budget;
    if (fields.find("trials") != nullptr) {
        std::int64_t trials = 0;
        TUNE_TRY_VOID(fields.integer("trials", trials, 1, static_cast<std::int64_t>(kTrialsMax)));
        budget.trials = static_cast<std::uint64_t>(trials);
    }
    if (const Node* time = fields.find("time")) {
        std::int64_t time_ms = 0;
        TUNE_TRY_VOID(fields.duration("time", time_ms));
        if (time_ms <= 0) return fault_at(time->place, "budget.time", "expected a time above 0");
        budget.time_ms = time_ms;
    }
    if (const Node* cost = fields.find("cost")) {
        TUNE_TRY(read, read_cost(*cost));
        budget.cost = std::move(read);
    }
    if (const Node* no_progress = fields.find("no_progress")) {
        TUNE_TRY(read, read_no_progress(*no_progress));
        budget.no_progress = read;
    }
    if (const Node* target = fields.find("target")) {
        TUNE_TRY(read, read_numbers(*target, "budget.target"));
        budget.target = std::move(read);
    }
    if (fields.find("parallel") != nullptr) {
        int parallel = 1;
        TUNE_TRY_VOID(fields.integer("parallel", parallel, 1, 100'000));
        budget.parallel = parallel;
    }
    TUNE_TRY_VOID(fields.integer("gpus_per_trial", budget.gpus_per_trial, 0, 1024));
    TUNE_TRY_VOID(fields.integer("cpus_per_trial", budget.cpus_per_trial, 0, 4096));
    if (budget.cost && budget.cost->of == CostBudget::Of::kGpuSeconds && budget.gpus_per_trial == 0)
        return fault_at(node.place, "budget.cost",
                        "a budget of gpu_seconds needs gpus_per_trial of 1 or more");
    config.budget = std::move(budget);
    return {};
}

Result<void> read_warm_start(const Node& node, StudyConfig& config) {
    WarmStartConfig warm_start;
    if (node.type == Node::Type::kString) {
        TUNE_TRY_VOID(check_text(node, "warm_start", 200));
        warm_start.from = node.text;
    } else {
        TUNE_TRY(fields,
                 Fields::open(node, "warm_start", {"from", "top", "history", "trials", "said"}));
        TUNE_TRY_VOID(fields.text("from", warm_start.from, 200));
        TUNE_TRY_VOID(fields.integer("top", warm_start.top, 0, kWarmStartMax));
        TUNE_TRY_VOID(fields.integer("history", warm_start.history, 0, kWarmStartMax));
        if (const Node* trials = fields.find("trials"))
            TUNE_TRY_VOID(read_earlier_trials(*trials, warm_start));
        if (const Node* said = fields.find("said"); said && said->type == Node::Type::kList)
            for (const Node& item : said->items) warm_start.said.push_back(item.text);
    }
    if (warm_start.from.empty() && warm_start.trials.empty())
        return fault_at(node.place, "warm_start",
                        "expected {from: STUDY, top: 10}, or trials: a list of "
                        "{params: {...}, value: NUMBER}");
    config.warm_start = std::move(warm_start);
    return {};
}

Json to_json(const BudgetConfig& budget) {
    Json json = {{"gpus_per_trial", budget.gpus_per_trial},
                 {"cpus_per_trial", budget.cpus_per_trial}};
    if (budget.trials) json["trials"] = *budget.trials;
    if (budget.time_ms) json["time"] = duration_text(*budget.time_ms);
    if (budget.parallel) json["parallel"] = *budget.parallel;
    if (budget.cost) {
        Json& cost = json["cost"] = {{"max", budget.cost->max}};
        if (budget.cost->of == CostBudget::Of::kMetric)
            cost["metric"] = budget.cost->metric;
        else
            cost["of"] = budget.cost->of == CostBudget::Of::kSeconds ? "seconds" : "gpu_seconds";
        if (budget.cost->per_trial) cost["per_trial"] = *budget.cost->per_trial;
    }
    if (budget.no_progress)
        json["no_progress"] = {{"trials", budget.no_progress->trials},
                               {"min_delta", budget.no_progress->min_delta}};
    if (budget.target.size() == 1)
        json["target"] = budget.target.front();
    else if (!budget.target.empty())
        json["target"] = budget.target;
    return json;
}

Json to_json(const WarmStartConfig& warm_start) {
    Json json = {{"top", warm_start.top}, {"history", warm_start.history}};
    if (!warm_start.from.empty()) json["from"] = warm_start.from;
    for (const EarlierTrial& trial : warm_start.trials) {
        const Result<Json> params = parse_json(trial.params_json);
        Json item = {{"params", params ? *params : Json::object()}};
        if (trial.more_values.empty()) {
            item["value"] = trial.value;
        } else {
            item["values"] = trial.more_values;
            item["values"].insert(item["values"].begin(), trial.value);
        }
        json["trials"].push_back(std::move(item));
    }
    if (!warm_start.said.empty()) json["said"] = warm_start.said;
    return json;
}

}  // namespace tune::tuner
