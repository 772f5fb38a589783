// `tune plan`: what a study would do, before it runs.
//
// Everything is computed from the study file: the number of points of a finite space, the trials
// that the budget leaves of them, the rungs of the pruner and how many trials reach each. The
// sizes are those of the code that runs the study (point_count, the kind's rungs), so plan and run
// agree. Where a number depends on results, such as rungs that the first complete trial sets, the
// text says so and gives none.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/text/counted.h"
#include "base/text/number_text.h"
#include "tuner/cli/backend.h"
#include "tuner/cli/commands/plan_agents.h"
#include "tuner/cli/options.h"
#include "tuner/cli/program_check.h"
#include "tuner/cli/study_flags.h"
#include "tuner/cli/terminal/objective_text.h"
#include "tuner/cli/terminal/output.h"
#include "tuner/cli/terminal/study_text.h"
#include "tuner/cli/terminal/terminal.h"
#include "tuner/pruner/pruner_kind.h"
#include "tuner/sampler/pbt/pbt_options.h"
#include "tuner/sampler/sampler.h"
#include "tuner/sampler/simple/finite_points.h"

namespace tune::cli {
namespace {

using tuner::Rung;
using tuner::StudyConfig;

/// More trials than this count as endless; keeps products within 2^53.
constexpr std::int64_t kTrialsPlannedMax = 1'000'000'000'000;

/// Points of a finite space.
struct SpaceSize {
    double points = 0;
    bool is_exact = false;  ///< else no more than so many: there are too many to try the rules on
};

/// Nothing if the space is continuous or has more than 2^53 points.
std::optional<SpaceSize> space_size(const tuner::Space& space) {
    SpaceSize size{1, space.rules() == nullptr};
    std::vector<std::vector<double>> levels;
    for (const tuner::Parameter& parameter : space.parameters()) {
        if (parameter.count() == 0) return std::nullopt;
        size.points *= static_cast<double>(parameter.count());
        size.is_exact = size.is_exact && parameter.when.empty();
        levels.push_back(tuner::levels_of(parameter, 0));
    }
    const bool are_listed =
        std::none_of(levels.begin(), levels.end(), [](const auto& one) { return one.empty(); });
    const auto points =
        size.is_exact || !are_listed ? std::nullopt : tuner::list_points(space, levels);
    if (points) size = {static_cast<double>(points->size()), true};
    return size.points < 9e15 ? std::optional(size) : std::nullopt;
}

/// The study with the trials that the space leaves of its budget.
StudyConfig bounded_by_space(const StudyConfig& config) {
    StudyConfig bounded = config;
    if (const auto points = tuner::point_count(config.space, config.sampler))
        bounded.budget.trials = std::min(config.budget.trials.value_or(*points), *points);
    return bounded;
}

/// The rungs of a pruner that has some; empty also where they are found from the first complete
/// trial.
std::vector<Rung> rungs_of(const StudyConfig& config) {
    const auto rungs = config.pruner.kind().rungs;
    if (rungs == nullptr) return {};
    return rungs(config.pruner, static_cast<double>(config.budget.trials.value_or(0)));
}

double expected_steps(const std::vector<Rung>& rungs) {
    double steps = 0;
    std::int64_t before = 0;
    for (std::size_t i = 0; i < rungs.size(); ++i) {
        if (i > 0 && rungs[i].bracket != rungs[i - 1].bracket) before = 0;
        steps += rungs[i].trials * static_cast<double>(rungs[i].step - before);
        before = rungs[i].step;
    }
    return steps;
}

/// Population based training, if every member goes through every interval: a member that copies one
/// that is ahead skips some. Without an end only the budget of trials says how many.
Json population_json(const StudyConfig& config) {
    const auto& pbt = config.sampler.get<tuner::PbtOptions>();
    const std::int64_t members = pbt.population;
    const std::int64_t first = steps_of(pbt, 0).to;
    const auto generations_to = [&](std::int64_t step) {
        return 1 + (std::max(step, first) - first + pbt.interval - 1) / pbt.interval;
    };
    std::optional<std::int64_t> trials;
    if (pbt.max != 0)
        trials = std::min(generations_to(pbt.max), kTrialsPlannedMax / members) * members;
    if (config.budget.trials) {
        const auto budget = static_cast<std::int64_t>(
            std::min<std::uint64_t>(*config.budget.trials, kTrialsPlannedMax));
        trials = std::min(trials.value_or(budget), budget);
    }
    Json plan = {{"members", members},      {"interval", pbt.interval},
                 {"first_interval", first}, {"steps", pbt.max != 0 ? Json(pbt.max) : Json()},
                 {"generations", Json()},   {"trials_max", Json()}};
    if (!trials) return plan;
    const std::int64_t generations = (*trials + members - 1) / members;
    // The last generation may be one of a part of the members.
    const std::int64_t in_last = *trials - (generations - 1) * members;
    const auto end_of = [&](std::int64_t generation) {
        const double end = static_cast<double>(first) +
                           static_cast<double>(pbt.interval) * static_cast<double>(generation);
        return pbt.max != 0 ? std::min(end, static_cast<double>(pbt.max)) : end;
    };
    const double before = generations > 1 ? end_of(generations - 2) : 0;
    const double steps = static_cast<double>(in_last) * end_of(generations - 1) +
                         static_cast<double>(members - in_last) * before;
    plan["generations"] = generations;
    plan["trials_max"] = *trials;
    plan["steps_max"] = steps;
    return plan;
}

/// Nobody waits for another, so the members keep all places busy; the time of a trial is that of an
/// interval.
void add_population_time(const StudyConfig& config, std::int64_t trial_ms, Json& plan) {
    const Json& population = plan["population"];
    if (population["trials_max"].is_null()) return;
    const auto trials = population["trials_max"].get<double>();
    const double places = std::min(std::max(config.budget.parallel.value_or(1), 1),
                                   config.sampler.get<tuner::PbtOptions>().population);
    const double intervals =
        population["steps_max"].get<double>() / population["interval"].get<double>();
    const double time_ms =
        std::ceil(trials / places) * (intervals / trials) * static_cast<double>(trial_ms);
    plan["expected_time_ms"] = static_cast<std::int64_t>(std::min(time_ms, 9e15));
}

/// What the study takes when a whole trial takes so long: pruned trials take their share of it.
void add_expected_time(const StudyConfig& config, std::int64_t trial_ms, Json& plan) {
    if (plan.contains("population")) return add_population_time(config, trial_ms, plan);
    if (!config.budget.trials) return;
    const double share =
        plan.contains("expected_steps")
            ? plan["expected_steps"].get<double>() / plan["steps_without_pruning"].get<double>()
            : 1;
    const double parallel = std::max(config.budget.parallel.value_or(1), 1);
    // Rounds of so many at a time; the last one may be short of trials.
    const double rounds = std::ceil(static_cast<double>(*config.budget.trials) / parallel);
    plan["expected_time_ms"] =
        static_cast<std::int64_t>(rounds * share * static_cast<double>(trial_ms));
}

/// What will go wrong, or probably is not meant so. The program may be missing here only: the study
/// may be one for agents on other machines.
Json warnings_of(const StudyConfig& config) {
    Json warnings = goal_warnings(config);
    if (config.command.empty()) return warnings;
    if (const Result<void> checked = check_program(config); !checked)
        warnings.push_back(checked.error().message + "; `tune run` would not start here");
    return warnings;
}

Json plan_json(const StudyConfig& config) {
    Json rungs = Json::array();
    const StudyConfig bounded = bounded_by_space(config);
    const std::vector<Rung> found = rungs_of(bounded);
    for (const Rung& rung : found) {
        rungs.push_back({{"step", rung.step}, {"expected_trials", rung.trials}});
        if (rung.bracket) rungs.back()["bracket"] = *rung.bracket;
    }
    const auto size = space_size(config.space);
    const auto points = tuner::point_count(config.space, config.sampler);
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
                 {"space_size", size ? Json(size->points) : Json()},
                 {"space_size_is_exact", size ? Json(size->is_exact) : Json()},
                 {"points_until_end", points ? Json(*points) : Json()},
                 {"rungs", std::move(rungs)},
                 {"command", config.command},
                 {"warnings", warnings_of(config)}};
    if (std::string outlook = tuner::sampler_outlook(config); !outlook.empty())
        plan["sampler_choice"] = std::move(outlook);
    if (config.sampler.get_if<tuner::PbtOptions>() != nullptr)
        plan["population"] = population_json(config);
    if (found.empty() || !bounded.budget.trials) return plan;
    plan["expected_steps"] = expected_steps(found);
    plan["steps_without_pruning"] =
        static_cast<double>(*bounded.budget.trials * static_cast<std::uint64_t>(found.back().step));
    return plan;
}

std::string population_text(const Json& population) {
    const auto number = [&](const char* name) { return to_text(population[name]); };
    const auto number_of = [&](const char* name, const char* what) {
        return counted(population[name].get<std::int64_t>(), what);
    };
    std::string text =
        "members:  " + number("members") + ", each " + number_of("interval", "step") + " at a time";
    if (population["first_interval"] != population["interval"])
        text += ", " + number("first_interval") + " the first time";
    if (population["generations"].is_null())
        return text + "; without an end: give the sampler's max, or a budget\n";
    text += ", " + number_of("generations", "generation");
    if (!population["steps"].is_null()) text += " to step " + number("steps");
    return text + "\nexpected: at most " + number_of("trials_max", "trial") +
           " (who copies one that is ahead skips an interval)\n";
}

std::string rungs_text(const StudyConfig& config, const Json& plan) {
    if (plan["rungs"].empty()) {
        if (config.pruner.kind().rungs != nullptr)
            return "rungs:    found from the first complete trial (give min and max to see them)\n";
        return "";
    }
    Table table;
    const bool has_brackets = plan["rungs"][0].contains("bracket");
    if (has_brackets) table.column("bracket", Table::Align::kRight);
    table.column("rung at step", Table::Align::kRight);
    table.column("trials expected", Table::Align::kRight);
    for (const Json& rung : plan["rungs"]) {
        std::vector<std::string> cells = {to_text(rung["step"]),
                                          number_cell(rung["expected_trials"])};
        if (has_brackets) cells.insert(cells.begin(), to_text(rung["bracket"]));
        table.row(std::move(cells));
    }
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

/// "200", "until stopped", "until every point has been tried, which are 8".
std::string planned_trials_text(const StudyConfig& config, const Json& plan) {
    const auto& trials = config.budget.trials;
    const Json& points = plan["points_until_end"];
    const bool ends_before =
        !points.is_null() && (!trials || points.get<std::uint64_t>() < *trials);
    if (!ends_before) return trials ? std::to_string(*trials) : "until stopped";
    return (trials ? std::to_string(*trials) + ", or " : std::string()) +
           (points == 1 ? "until the only point has been tried"
                        : "until every point has been tried, which are " + to_text(points));
}

/// " (min 1, max 90)": the options that are not at their defaults, as a study writes them.
std::string settings_text(const tuner::Chosen& chosen) {
    const tuner::OptionTable& table = chosen.options();
    const tuner::Chosen plain = chosen.with_defaults();
    Json settings = Json::object();
    Json defaults = Json::object();
    table.write(chosen.address(), settings);
    table.write(plain.address(), defaults);
    std::string text;
    for (const tuner::Option& option : table.rows()) {
        const Json value = settings.value(option.name, Json());
        if (value == defaults.value(option.name, Json())) continue;
        text += (text.empty() ? " (" : ", ") + option.name + " " +
                (value.is_string() ? value.get<std::string>() : to_text(value));
    }
    return text.empty() ? text : text + ")";
}

std::string plan_text(const StudyConfig& config, const Json& plan) {
    const auto& budget = config.budget;
    std::string text = "study:    " + config.study + "\n";
    text += "trials:   " + planned_trials_text(config, plan) +
            (budget.parallel ? ", " + std::to_string(*budget.parallel) + " at a time" : "") +
            (budget.time_ms ? ", at most " + tuner::duration_text(*budget.time_ms) : "") + "\n";
    for (const tuner::MetricConfig& metric : tuner::metrics_of(config))
        text += "metric:   " + metric.name + " (" + std::string(tuner::goal_name(metric.goal)) +
                ", " + tuner::aggregation_name(metric) + ")\n";
    for (const tuner::ConstraintConfig& constraint : config.constraints)
        text += "bound:    " + constraint.metric.name +
                (constraint.min ? " >= " + number_text(*constraint.min) : "") +
                (constraint.min && constraint.max ? "," : "") +
                (constraint.max ? " <= " + number_text(*constraint.max) : "") + "\n";
    text +=
        "sampler:  " + std::string(config.sampler.name()) + settings_text(config.sampler) +
        (plan.contains("sampler_choice") ? ": " + plan["sampler_choice"].get<std::string>() : "") +
        "\n";
    text += "pruner:   " + std::string(config.pruner.name()) + settings_text(config.pruner) + "\n";
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
        text += std::string("the space has ") +
                (plan["space_size_is_exact"].get<bool>() ? "" : "at most ") +
                number_cell(plan["space_size"]) + (size == 1 ? " point" : " points");
        const bool never_ends = plan["points_until_end"].is_null();
        if (never_ends && budget.trials && static_cast<double>(*budget.trials) > size)
            text += "; with more trials, some are tried twice";
        text += "\n";
    }
    if (plan.contains("population")) text += population_text(plan["population"]);
    text += rungs_text(config, plan);
    if (plan.contains("expected_time_ms")) {
        const auto time_ms = plan["expected_time_ms"].get<std::int64_t>();
        text += "time:     about " + tuner::duration_text(time_ms / 1000 * 1000) + ", " +
                std::to_string(budget.parallel.value_or(1)) + " at a time";
        if (budget.time_ms && *budget.time_ms < time_ms)
            text +=
                "; the budget of " + tuner::duration_text(*budget.time_ms) + " ends before that";
        text += "\n";
    }
    if (plan.contains("agents"))
        text +=
            "agents:   " + counted(plan["agents"].get<std::int64_t>(), "agent") + " registered\n";
    if (!config.command.empty()) text += "command:  " + shell_text(config.command) + "\n";
    for (const Json& warning : plan["warnings"])
        text += "warning:  " + warning.get<std::string>() + "\n";
    return text;
}

/// Asks the server whose agents are to run it.
Result<void> add_agents(const PlanCommand& options, const StudyConfig& config, Json& plan) {
    if (!options.server && !options.data) return {};
    TUNE_TRY(backend, find_backend(options.server, options.data));
    TUNE_TRY(queue, backend->get("/api/2.0/tune/queue"));
    TUNE_TRY(lacking, agents_lacking(queue, config));
    plan["agents"] = queue["agents"].size() + queue.value("agents_left_out", std::size_t{0});
    if (!lacking.empty())
        plan["warnings"].push_back(lacking + ": the study would wait (" + backend->where() + ")");
    return {};
}

}  // namespace

int run_plan(const PlanCommand& options) {
    const Result<StudyConfig> config = study_from_flags(options.study, false);
    if (!config) return fail(config.error(), options.json);
    Json plan = plan_json(*config);
    if (options.trial_time) {
        const Result<std::int64_t> trial_ms = tuner::parse_duration_ms(*options.trial_time);
        if (!trial_ms) return fail(trial_ms.error(), options.json);
        add_expected_time(bounded_by_space(*config), *trial_ms, plan);
    }
    if (const Result<void> asked = add_agents(options, *config, plan); !asked)
        return fail(asked.error(), options.json);
    if (options.json)
        print_json(plan);
    else
        print(plan_text(*config, plan));
    return kExitOk;
}

}  // namespace tune::cli
