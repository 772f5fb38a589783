// The canonical JSON of a study, and the last check before it runs.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/config/command_template.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_genetic.h"
#include "tuner/config/study_pbt.h"
#include "tuner/space/expression/rules.h"
#include "tuner/space/node.h"

namespace tune::tuner {

Json to_json(const MetricConfig& metric) {
    Json json = {{"name", metric.name},
                 {"goal", std::string(goal_name(metric.goal))},
                 {"take", take_name(metric)}};
    if (!metric.step.empty()) json["step"] = metric.step;
    return json;
}

Json to_json(const std::vector<ConstraintConfig>& constraints) {
    Json list = Json::array();
    for (const ConstraintConfig& constraint : constraints) {
        Json json = {{"name", constraint.metric.name}, {"take", take_name(constraint.metric)}};
        if (constraint.min) json["min"] = *constraint.min;
        if (constraint.max) json["max"] = *constraint.max;
        list.push_back(std::move(json));
    }
    return list;
}

Json to_json(const SamplerConfig& sampler) {
    Json json = {{"type", std::string(sampler_name(sampler.type))}};
    if (sampler.seed) json["seed"] = *sampler.seed;
    if (sampler.type == SamplerType::kTpe || sampler.type == SamplerType::kGp)
        json["startup"] = sampler.startup;
    if (sampler.type == SamplerType::kTpe) {
        json["candidates"] = sampler.candidates;
        json["preset"] = std::string(preset_name(sampler.preset));
        if (sampler.constraints != SamplerConfig().constraints)
            json["constraints"] = std::string(constraint_rule_name(sampler.constraints));
        if (sampler.window != SamplerConfig().window) json["window"] = sampler.window;
    }
    if (sampler.type == SamplerType::kGp || sampler.type == SamplerType::kAuto) {
        if (sampler.warp != Warp::kAuto) json["warp"] = sampler.warp == Warp::kOn ? "on" : "off";
        if (sampler.noise) json["noise"] = *sampler.noise;
    }
    write_genetic(sampler, json);
    if (sampler.type == SamplerType::kPbt) {
        write_pbt(sampler, json);
    } else if (sampler.type == SamplerType::kGrid) {
        if (sampler.points != 0) json["points"] = sampler.points;
    } else {
        json["duplicates"] = std::string(duplicates_name(sampler.duplicates));
    }
    return json;
}

namespace {

/// One metric as an object, several as a list.
Json metrics_json(const StudyConfig& config) {
    if (config.more_metrics.empty()) return to_json(config.metric);
    Json list = Json::array();
    for (const MetricConfig& metric : metrics_of(config)) list.push_back(to_json(metric));
    return list;
}

Json retry_json(const RetryConfig& retry) {
    Json on = Json::array();
    for (const RetryOn end : retry.on) on.push_back(std::string(retry_name(end)));
    return {{"max", retry.max}, {"on", std::move(on)}};
}

Json scrape_json(const std::vector<ScrapeConfig>& scrape) {
    Json list = Json::array();
    for (const ScrapeConfig& one : scrape) {
        Json json = {{"pattern", one.pattern}};
        if (!one.name.empty()) json["name"] = one.name;
        list.push_back(std::move(json));
    }
    return list;
}

/// What else is said of the space: `forbid`, `derive`, `initial`.
void add_rules(const Space& space, Json& json) {
    if (space.rules() != nullptr) {
        const RuleTexts& texts = space.rules()->texts();
        if (!texts.forbid.empty()) json["forbid"] = texts.forbid;
        for (const auto& [name, text] : texts.derive) json["derive"][name] = text;
    }
    for (const Point& point : space.initial()) {
        Json values = Json::object();
        for (std::size_t i = 0; i < space.size(); ++i)
            if (is_active(point[i])) values[space[i].name] = space[i].external(point[i]);
        json["initial"].push_back(std::move(values));
    }
}

Error bad_setting(std::string_view path, std::string_view message) {
    return fault_at({}, path, message);
}

}  // namespace

Json to_json(const StudyConfig& config) {
    Json json = {{"version", 1},
                 {"space", config.space.to_json()},
                 {"sampler", to_json(config.sampler)},
                 {"pruner", to_json(config.pruner)},
                 {"budget", to_json(config.budget)},
                 {"retry", retry_json(config.retry)},
                 {"grace", duration_text(config.grace_ms)}};
    if (!config.study.empty()) json["study"] = config.study;
    if (!config.command.empty()) json["command"] = config.command;
    if (!config.metric.name.empty()) json["metric"] = metrics_json(config);
    if (!config.constraints.empty()) json["constraints"] = to_json(config.constraints);
    if (!config.scrape.empty()) json["scrape"] = scrape_json(config.scrape);
    if (config.timeout_ms) json["timeout"] = duration_text(*config.timeout_ms);
    if (!config.env.empty()) json["env"] = config.env;
    if (!config.working_dir.empty()) json["working_dir"] = config.working_dir;
    if (config.warm_start) json["warm_start"] = to_json(*config.warm_start);
    add_rules(config.space, json);
    std::vector<std::string> names;
    for (const Parameter& parameter : config.space.parameters()) names.push_back(parameter.name);
    if (!std::is_sorted(names.begin(), names.end())) json["space_order"] = names;
    return json;
}

Result<void> check_study(const StudyConfig& config, bool needs_command) {
    if (config.metric.name.empty())
        return bad_setting("metric",
                           "no metric is named; give -m val_loss:min, or metric: {name: val_loss, "
                           "goal: min} in the study file");
    if (config.space.size() == 0)
        return bad_setting("space",
                           "there is nothing to tune; give at least one parameter, such as "
                           "lr=1e-5..1e-1:log");
    if (needs_command && config.command.empty())
        return bad_setting("command",
                           "there is no command to run; give it after --, such as "
                           "-- python train.py {args}");
    TUNE_TRY_VOID(check_metrics(config));
    TUNE_TRY_VOID(check_command(config.command, config.space));
    if (config.budget.trials && (*config.budget.trials == 0 || *config.budget.trials > kTrialsMax))
        return bad_setting("budget.trials",
                           "expected 1 to " + std::to_string(kTrialsMax) + " trials");
    if (config.budget.parallel && *config.budget.parallel < 1)
        return bad_setting("budget.parallel", "expected at least 1");
    if (config.budget.gpus_per_trial < 0 || config.budget.cpus_per_trial < 0)
        return bad_setting("budget", "expected gpus_per_trial >= 0 and cpus_per_trial >= 0");
    if (config.sampler.seed && *config.sampler.seed > kSeedMax)
        return bad_setting("sampler.seed", "expected a seed of at most 2^53 - 1");
    return {};
}

}  // namespace tune::tuner
