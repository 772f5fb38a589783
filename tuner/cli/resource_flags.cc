#include "tuner/cli/resource_flags.h"

#include "tuner/cli/source_flags.h"
#include "tuner/config/study_config.h"

namespace tune::cli {

void add_resource_flags(CLI::App& app, StudyFlags& flags) {
    app.add_option("--nproc", flags.nproc,
                   "run each trial as this many processes on a machine, as torchrun would");
    app.add_option("--nnodes", flags.nnodes, "run each trial on this many machines");
    app.add_option("--processes", flags.processes,
                   "run each trial as this many processes, on one machine where one has room, else "
                   "on a few");
    app.add_option("--pool", flags.pool,
                   "the command is a pool: run this many trials at once in one process");
    app.add_option("--cpus", flags.cpus, "cores of each process (default: shared)");
    app.add_option("--gpus", flags.gpus, "GPUs of each process");
    app.add_option("--memory", flags.memory,
                   "memory of each process, e.g. 8GiB; auto: as much as the first trials used");
    app.add_option("--gpu-memory", flags.gpu_memory,
                   "share GPUs: memory of each GPU for a process, e.g. 10GiB; auto: as much as the "
                   "first trials used");
    app.add_option("--label", flags.labels, "only agents that have this label; repeatable")
        ->allow_extra_args(false);
    app.add_option("--checkpoint-store", flags.checkpoint_store,
                   "where checkpoints are kept besides the agents' disks: artifacts, local, or a "
                   "folder that all agents see, as file:///FOLDER");
    app.add_option("--checkpoint-every", flags.checkpoint_every,
                   "time between two stores while a trial runs, e.g. 5m");
    app.add_option("--checkpoint-keep", flags.checkpoint_keep, "number of sets to keep");
    app.add_option("--checkpoint-after", flags.checkpoint_after,
                   "'remove' or 'keep' them once the trial has ended for good");
    app.add_option("--priority", flags.priority,
                   "studies with a higher one come first, and take places from lower ones "
                   "(default: 0)")
        ->check(within(-tuner::kPriorityMax, tuner::kPriorityMax));
    app.add_option("--register", flags.register_as,
                   "registered model that gets the best trial's logged model as a new version when "
                   "the study completes")
        ->type_name("NAME");
}

namespace {

/// How an agent ends, and what holds for each of its trials.
void add_limit_flags(CLI::App& app, AgentCommand& agent) {
    app.add_option("--foreign-gpu-use", agent.foreign_gpu_use,
                   "GPUs on which other people's processes run: 'ignore' that, or 'avoid' them")
        ->check(CLI::IsMember({"ignore", "avoid"}))
        ->capture_default_str();
    app.add_option("--idle-exit", agent.idle_exit,
                   "end after this long without a trial, e.g. 10min");
    app.add_option("--time-limit", agent.time_limit,
                   "end within this time: trials that would take longer are left to others, and "
                   "running ones resume elsewhere");
    app.add_option("--cgroup", agent.cgroup,
                   "where each trial gets a cgroup (v2) of its own: a delegated folder, 'auto' or "
                   "'off'")
        ->capture_default_str();
    app.add_option("--trial-memory", agent.trial_memory,
                   "most memory of a trial in its cgroup, e.g. 8GiB");
    app.add_option("--trial-processes", agent.trial_processes,
                   "most processes of a trial in its cgroup")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--log-rule", agent.log_rules,
                   "ACTION:PATTERN: what is done when an attempt fails that printed such a line: "
                   "retry, no_retry, exclude_device or exclude_host; repeatable")
        ->allow_extra_args(false);
}

}  // namespace

void add_agent_flags(CLI::App& app, AgentCommand& agent) {
    app.add_option("--server", agent.server, "address of the server")->capture_default_str();
    app.add_option("--state", agent.state, "folder for its state, logs and checkpoints")
        ->capture_default_str();
    app.add_option("--checkpoints", agent.checkpoints,
                   "folder of the trials' checkpoints (default: within --state); one that several "
                   "agents share lets trials resume elsewhere");
    app.add_option("--slots", agent.slots,
                   "number of trials to run at the same time (default: one per GPU or core)");
    app.add_option("--cpus", agent.cpus, "number of cores to use (default: all)");
    app.add_option("--memory", agent.memory,
                   "memory that trials may use together, e.g. 64GiB (default: all)");
    app.add_option("--gpus", agent.gpus,
                   "how many GPUs to use, or which, by UUID, with the memory where the driver does "
                   "not report it: GPU-1=80GB,GPU-2=80GB (default: all that are free)")
        ->delimiter(',');
    app.add_flag("--no-gpus", agent.no_gpus, "use no GPU");
    app.add_option("--label", agent.labels,
                   "a word by which studies choose agents, e.g. a100 or topology=rack7; repeatable")
        ->allow_extra_args(false);
    app.add_option("--address", agent.address,
                   "where other machines reach this one, for trials on several (default: the "
                   "address that leads to the server)");
    add_limit_flags(app, agent);
}

}  // namespace tune::cli
