#include "tuner/study/registry/broker/lease_terms.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tuner/config/command_template.h"
#include "tuner/study/journal/journal.h"
#include "tuner/study/trial/lineage.h"

namespace tune::tuner {
namespace {

/// What the command of population based training needs to know.
void add_origin(const Study& study, const Trial& trial, Lease& lease) {
    const std::optional<Steps> steps = steps_of(study, trial);
    if (!steps) return;
    lease.env.push_back({"TUNE_STEP_FROM", std::to_string(steps->from)});
    lease.env.push_back({"TUNE_STEP_TO", std::to_string(steps->to)});
    if (!trial.origin->parent) return;
    lease.env.push_back({"TUNE_PARENT", std::to_string(*trial.origin->parent)});
    lease.resume_from = trial_key(study.identity(), *trial.origin->parent);
    if (const Trial* parent = study.trials().find(*trial.origin->parent))
        lease.resume_run_id = parent->run_id;
}

}  // namespace

Member make_member(const Agent& agent, const LeaseRequest& request, Part part) {
    return {.agent_id = agent.facts.agent_id,
            .host = agent.facts.host,
            .request_id = request.request_id,
            .part = std::move(part),
            .node = {agent.facts.address.empty() ? agent.facts.host : agent.facts.address,
                     request.port},
            .expires_ms = kNotHandedOut_ms};
}

Lease make_lease(const Study& study, const Trial& trial, const Member& member) {
    const StudyConfig& config = study.config();
    Lease lease;
    lease.study = study.name();
    lease.number = static_cast<std::int64_t>(trial.number);
    lease.attempt = trial.attempt;
    lease.run_id = trial.run_id;
    lease.experiment_id = std::to_string(study.identity().experiment_id);
    lease.params_json = to_text(config.space.to_json(trial.point));
    lease.seed = study.definition().trial_seed(trial.number);
    lease.command = fill_command(config.command, config.space, trial.point,
                                 {.study = study.name(),
                                  .trial = trial.number,
                                  .attempt = trial.attempt,
                                  .run_id = trial.run_id,
                                  .seed = lease.seed});
    for (const auto& [name, value] : config.env) lease.env.push_back({name, value});
    lease.working_dir = config.working_dir;
    lease.checkpoint_dir = trial_key(study.identity(), trial.number);
    lease.checkpoints = config.checkpoints;
    lease.is_continued = trial.origin.has_value();
    add_origin(study, trial, lease);
    lease.grace_ms = config.grace_ms;
    lease.timeout_ms = config.timeout_ms.value_or(0);
    lease.metric = config.metric.name;
    for (const ScrapeConfig& scrape : config.scrape)
        lease.scrape.push_back({scrape.name, scrape.pattern});
    lease.log_rules = config.log_rules;
    lease.cpus_per_trial = member.part.cores;
    lease.gpus_per_trial = static_cast<double>(member.part.gpus.size());
    lease.devices = member.part.gpus;
    lease.memory_bytes = member.part.memory_bytes;
    if (!member.part.pool.empty())
        lease.pool = PoolPlace{.name = member.part.pool, .size = member.part.pool_size};
    const Holder& holder = trial.progress->holder;
    if (!holder.is_gang() && member.part.nproc == 1) return lease;
    Gang gang{.nproc = member.part.nproc,
              .node = static_cast<int>(&member - holder.members.data())};
    for (const Member& one : holder.members) gang.nodes.push_back(one.node);
    lease.gang = std::move(gang);
    return lease;
}

bool logs_in(const Study& study) {
    const auto& env = study.config().env;
    return std::any_of(env.begin(), env.end(), [](const auto& variable) {
        return variable.first == "MLFLOW_TRACKING_TOKEN" ||
               variable.first == "MLFLOW_TRACKING_USERNAME" ||
               variable.first == "MLFLOW_TRACKING_AUTH";
    });
}

}  // namespace tune::tuner
