// The canonical JSON of a study, and the last check before it runs.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/config/command_template.h"
#include "tuner/config/study_config.h"
#include "tuner/config/study_sections.h"
#include "tuner/space/node.h"

namespace tune::tuner {
namespace {

Error invalid_study(std::string_view path, std::string_view message) {
    return error_at({}, path, message);
}

/// One process runs many trials, so its command cannot have what is of one.
Result<void> check_pool_command(const StudyConfig& config) {
    const std::vector<std::string>& command = config.command;
    const std::vector<std::string> of_trial = {"{trial}", "{attempt}", "{run_id}", "{seed}"};
    for (const std::string& word : command) {
        const bool names_trial = std::any_of(
            of_trial.begin(), of_trial.end(),
            [&](const std::string& name) { return word.find(name) != std::string::npos; });
        if (names_trial || passes_parameters({word}, config.space))
            return invalid_study("command",
                                 "'" + word +
                                     "' is of one trial, and with resources.pool one process runs "
                                     "many: a pool reads trials and their parameters line by line "
                                     "(docs/pools.md). Take it out of the command");
    }
    return {};
}

}  // namespace

Json to_json(const StudyConfig& config) {
    Json json = Json::object();
    study_options().write(&config, json);
    return json;
}

Result<void> check_study(const StudyConfig& config, bool needs_command) {
    if (config.metric.name.empty())
        return invalid_study(
            "metric",
            "no metric is named; give -m val_loss:min, or metric: {name: val_loss, "
            "goal: min} in the study file");
    if (config.space.size() == 0)
        return invalid_study("space",
                             "there is nothing to tune; give at least one parameter, such as "
                             "lr=1e-5..1e-1:log");
    if (needs_command && config.command.empty())
        return invalid_study("command",
                             "there is no command to run; give it after --, such as "
                             "-- python train.py {args}");
    TUNE_TRY_VOID(check_metrics(config));
    if (!config.register_as.empty() && !config.more_metrics.empty())
        return invalid_study(
            "register",
            "a study with several objectives has no single best trial whose model "
            "could be registered; `mlflow.register_model` takes the one you choose");
    TUNE_TRY_VOID(check_command(config.command, config.space));
    if (config.resources.pool > 0) TUNE_TRY_VOID(check_pool_command(config));
    if (config.budget.trials && (*config.budget.trials == 0 || *config.budget.trials > kTrialsMax))
        return invalid_study("budget.trials",
                             "expected 1 to " + std::to_string(kTrialsMax) + " trials");
    if (config.budget.parallel && *config.budget.parallel < 1)
        return invalid_study("budget.parallel", "expected at least 1");
    if (config.budget.gpus_per_trial < 0 || config.budget.cpus_per_trial < 0)
        return invalid_study("budget", "expected gpus_per_trial >= 0 and cpus_per_trial >= 0");
    const ResourcesConfig& resources = config.resources;
    const bool is_twice = (resources.cpus > 0 && config.budget.cpus_per_trial > 0 &&
                           resources.cpus != config.budget.cpus_per_trial) ||
                          (resources.gpus > 0 && config.budget.gpus_per_trial > 0 &&
                           resources.gpus != config.budget.gpus_per_trial);
    if (is_twice)
        return invalid_study("resources",
                             "the budget's gpus_per_trial and cpus_per_trial say something else; "
                             "take them out of budget");
    const bool is_of_gpus =
        config.budget.cost && config.budget.cost->of == CostBudget::Of::kGpuSeconds;
    if (is_of_gpus && gpus_of_process(config) == 0)
        return invalid_study("budget.cost",
                             "a budget of gpu_seconds needs gpus_per_trial of 1 or more, or "
                             "resources with gpus");
    if (config.sampler.seed && *config.sampler.seed > kSeedMax)
        return invalid_study("sampler.seed", "expected a seed of at most 2^53 - 1");
    return {};
}

}  // namespace tune::tuner
