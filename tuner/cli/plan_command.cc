// `tune plan`: what a study would do, before it runs.

#include <cmath>
#include <nlohmann/json.hpp>

#include "tuner/cli/options.h"
#include "tuner/cli/output.h"
#include "tuner/cli/study_flags.h"
#include "tuner/cli/study_text.h"
#include "tuner/cli/terminal.h"
#include "tuner/sampler/auto_choice.h"

namespace tune::cli {
namespace {

using tuner::PrunerConfig;
using tuner::PrunerType;
using tuner::StudyConfig;

struct Rung {
    std::int64_t step = 0;
    double trials = 0;  ///< that are expected to reach it
};

/// Points of the space, conditions aside; nothing if it is continuous or beyond 2^53.
std::optional<double> space_size(const tuner::Space& space) {
    double size = 1;
    for (const tuner::Parameter& parameter : space.parameters()) {
        if (parameter.count() == 0) return std::nullopt;
        size *= static_cast<double>(parameter.count());
    }
    return size < 9e15 ? std::optional(size) : std::nullopt;
}

/// ASHA's rungs with the trials that reach them when each rung keeps one of eta (Li et al. 2020).
/// Empty: not ASHA, or the first rung is found from the first complete trial.
std::vector<Rung> rungs_of(const StudyConfig& config) {
    std::vector<Rung> rungs;
    const PrunerConfig& pruner = config.pruner;
    if (pruner.type != PrunerType::kAsha || pruner.min == 0 || pruner.max == 0) return rungs;
    double trials = static_cast<double>(config.budget.trials.value_or(0));
    double step = static_cast<double>(pruner.min) * std::pow(pruner.eta, pruner.rate);
    for (; step < static_cast<double>(pruner.max); step *= pruner.eta) {
        rungs.push_back({static_cast<std::int64_t>(step), trials});
        trials /= pruner.eta;
    }
    rungs.push_back({pruner.max, trials});
    return rungs;
}

double expected_steps(const std::vector<Rung>& rungs) {
    double steps = 0;
    std::int64_t before = 0;
    for (const Rung& rung : rungs) {
        steps += rung.trials * static_cast<double>(rung.step - before);
        before = rung.step;
    }
    return steps;
}

Json plan_json(const StudyConfig& config) {
    Json rungs = Json::array();
    const std::vector<Rung> found = rungs_of(config);
    for (const Rung& rung : found)
        rungs.push_back({{"step", rung.step}, {"expected_trials", rung.trials}});
    const auto size = space_size(config.space);
    Json plan = {{"study", config.study},
                 {"trials", config.budget.trials ? Json(*config.budget.trials) : Json()},
                 {"parallel", config.budget.parallel ? Json(*config.budget.parallel) : Json()},
                 {"time_ms", config.budget.time_ms ? Json(*config.budget.time_ms) : Json()},
                 {"metric", to_json(config)["metric"]},
                 {"constraints", to_json(config.constraints)},
                 {"sampler", to_json(config.sampler)},
                 {"pruner", to_json(config.pruner)},
                 {"space", config.space.to_json()},
                 {"forbid", to_json(config).value("forbid", Json::array())},
                 {"derive", to_json(config).value("derive", Json::object())},
                 {"space_size", size ? Json(*size) : Json()},
                 {"rungs", std::move(rungs)},
                 {"command", config.command}};
    if (config.sampler.type == tuner::SamplerType::kAuto)
        plan["sampler_choice"] = tuner::choice_text(config);
    if (found.empty() || !config.budget.trials) return plan;
    plan["expected_steps"] = expected_steps(found);
    plan["steps_without_pruning"] =
        static_cast<double>(*config.budget.trials * static_cast<std::uint64_t>(config.pruner.max));
    return plan;
}

std::string rungs_text(const Json& plan) {
    if (plan["rungs"].empty()) {
        if (plan["pruner"].is_object() && plan["pruner"].value("type", "") == "asha")
            return "rungs:    found from the first complete trial (give min and max to see them)\n";
        return "";
    }
    Table table;
    table.column("rung at step", Table::Align::kRight);
    table.column("trials expected", Table::Align::kRight);
    for (const Json& rung : plan["rungs"])
        table.row({to_text(rung["step"]), number_cell(rung["expected_trials"])});
    std::string text = table.text();
    if (!plan.contains("expected_steps")) return text;
    const double expected = plan["expected_steps"];
    const double full = plan["steps_without_pruning"];
    char line[160];
    std::snprintf(line, sizeof line,
                  "expected: about %.0f steps in all instead of %.0f without pruning (%.0f %%)\n",
                  expected, full, 100 * expected / full);
    return text + line;
}

std::string plan_text(const StudyConfig& config, const Json& plan) {
    const auto& budget = config.budget;
    std::string text = "study:    " + config.study + "\n";
    text += "trials:   " + (budget.trials ? std::to_string(*budget.trials) : "until stopped") +
            (budget.parallel ? ", " + std::to_string(*budget.parallel) + " at a time" : "") +
            (budget.time_ms ? ", at most " + tuner::duration_text(*budget.time_ms) : "") + "\n";
    for (const tuner::MetricConfig& metric : tuner::metrics_of(config))
        text += "metric:   " + metric.name + " (" + std::string(tuner::goal_name(metric.goal)) +
                ", " + tuner::take_name(metric) + ")\n";
    for (const tuner::ConstraintConfig& constraint : config.constraints)
        text += "bound:    " + constraint.metric.name +
                (constraint.min ? " >= " + tuner::number_text(*constraint.min) : "") +
                (constraint.min && constraint.max ? "," : "") +
                (constraint.max ? " <= " + tuner::number_text(*constraint.max) : "") + "\n";
    text +=
        "sampler:  " + std::string(tuner::sampler_name(config.sampler.type)) +
        (plan.contains("sampler_choice") ? ": " + plan["sampler_choice"].get<std::string>() : "") +
        "\n";
    text += "pruner:   " + std::string(tuner::pruner_name(config.pruner.type)) + "\n";
    Table space;
    space.column("parameter");
    space.column("values");
    for (const tuner::Parameter& parameter : config.space.parameters())
        space.row({parameter.name, to_text(plan["space"][parameter.name])});
    for (const auto& [name, expression] : plan["derive"].items())
        space.row({name, "= " + expression.get<std::string>()});
    text += space.text();
    for (const Json& clause : plan["forbid"])
        text += "never:    " + clause.get<std::string>() + "\n";
    if (!plan["space_size"].is_null()) {
        const double size = plan["space_size"];
        text += "the space has " + number_cell(plan["space_size"]) + " points";
        if (budget.trials && static_cast<double>(*budget.trials) > size)
            text += "; with more trials than that some are tried twice";
        text += "\n";
    }
    text += rungs_text(plan);
    if (!config.command.empty()) text += "command:  " + shell_text(config.command) + "\n";
    return text;
}

}  // namespace

int run_plan(const PlanCommand& options) {
    const Result<StudyConfig> config = study_from_flags(options.study, false);
    if (!config) return fail(config.error(), options.json);
    const Json plan = plan_json(*config);
    if (options.json)
        print_json(plan);
    else
        print(plan_text(*config, plan));
    return kExitOk;
}

}  // namespace tune::cli
