#include "worker/agent/attempts/attempt_parts.h"

namespace tune::worker {

std::string short_name(const tuner::Lease& lease) {
    return "trial " + std::to_string(lease.number) + " of study '" + lease.study + "'";
}

tuner::Outcome outcome_of_failed_start(const Error& error) {
    return error.code == Code::kInvalidParameterValue ? tuner::Outcome::kBadConfig
                                                      : tuner::Outcome::kLost;
}

CgroupLimits limits_of(const tuner::Lease& lease, const AttemptSettings& settings) {
    return {
        .memory_bytes = lease.memory_bytes > 0 ? lease.memory_bytes : settings.trial_memory_bytes,
        .cpus = lease.cpus_per_trial,
        .processes = settings.trial_processes};
}

Result<LogRules> log_rules_of(const tuner::Lease& lease, const AttemptSettings& settings,
                              bool has_gpus) {
    std::vector<tuner::LogRule> rules = lease.log_rules;
    rules.insert(rules.end(), settings.log_rules.begin(), settings.log_rules.end());
    const std::vector<tuner::LogRule>& of_gpus = gpu_log_rules();
    if (has_gpus) rules.insert(rules.end(), of_gpus.begin(), of_gpus.end());
    return LogRules::create(rules);
}

}  // namespace tune::worker
