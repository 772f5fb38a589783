#include "worker/agent/pools/pool_start.h"

#include <algorithm>
#include <string_view>
#include <system_error>

#include "worker/agent/attempts/environment.h"

namespace tune::worker {
namespace {

bool is_of_trial(std::string_view variable) {
    constexpr std::string_view kNames[] = {
        "MLFLOW_RUN_ID=",       "TUNE_PARAMS=",      "TUNE_TRIAL=",     "TUNE_ATTEMPT=",
        "TUNE_SEED=",           "TUNE_RESUME_FROM=", "TUNE_STEP_FROM=", "TUNE_STEP_TO=",
        "TUNE_CHECKPOINT_DIR=", "TUNE_MODEL_DIR=",   "TUNE_PARENT="};
    return std::any_of(std::begin(kNames), std::end(kNames),
                       [variable](std::string_view name) { return variable.starts_with(name); });
}

Result<Process> try_to_start(Pool& pool, const SharedParts& shared) {
    const tuner::Lease& lease = pool.first;
    const AttemptParts& agent = shared.agent;
    if (lease.command.empty() || lease.command.front().empty())
        return Error{Code::kInvalidParameterValue, "the study has no command to run"};
    std::error_code error;
    std::filesystem::create_directories(pool.files.directory().parent_path(), error);
    // What the next agent needs to know, should this one be killed.
    TUNE_TRY_VOID(pool.files.create({.serial = pool.serial,
                                     .lease = lease,
                                     .server_url = shared.settings.server_url,
                                     .finish_request_id = {},
                                     .boot_id = {},
                                     .started_ms = agent.loop->now_ms(),
                                     .oom_kills = 0,
                                     .cores = pool.assignment.cores,
                                     .gpus = pool.assignment.gpus}));
    TUNE_TRY(input, pool.input.open());
    LaunchSpec spec;
    spec.input = input.get();
    spec.with_agent = true;
    spec.directory = pool.files.directory();
    spec.wake_fifo = shared.wake_path;
    spec.serial = pool.serial;
    spec.grace_ms = std::max<std::int64_t>(0, lease.grace_ms);
    spec.cores = pool.assignment.cores;
    for (const MachineLock& lock : pool.assignment.locks) spec.inherited.push_back(lock->get());
    spec.working_dir = lease.working_dir;
    if (agent.cgroups != nullptr) {
        TUNE_TRY(cgroup, agent.cgroups->create(pool.files.directory().filename(),
                                               limits_of(lease, shared.settings)));
        spec.cgroup = cgroup;
    }
    spec.command = lease.command;
    spec.environment = pool_environment(pool, shared);
    return agent.launcher->start(spec);
}

}  // namespace

std::vector<std::string> pool_environment(const Pool& pool, const SharedParts& shared) {
    tuner::Lease common = pool.first;
    common.token.clear();
    std::vector<std::string> list = trial_environment(
        shared.environment,
        {&common, &pool.assignment, shared.settings.server_url, "", "", shared.settings.bin_dir,
         static_cast<int>(shared.agent.devices->cores().size()), shared.settings.slots});
    std::erase_if(list, is_of_trial);
    list.push_back("TUNE_POOL_SIZE=" + std::to_string(pool.size()));
    list.push_back(std::string(kPoolVariable) + "=" + std::to_string(pool.serial));
    return list;
}

Result<Process> start_pool(Pool& pool, const SharedParts& shared) {
    Result<Process> started = try_to_start(pool, shared);
    if (started) return started;
    pool.files.remove();
    shared.agent.devices->release(pool.assignment);
    return started;
}

}  // namespace tune::worker
