// The order matters for who takes over when the agent is killed: attempt.json is there before the
// supervisor is, and the supervisor makes its link before the trial runs. A folder without a link
// was never begun and is removed by the next agent.

#include "worker/agent/start/attempt_start.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/id.h"
#include "worker/agent/attempts/environment.h"
#include "worker/agent/checkpoints/checkpoint_folders.h"
#include "worker/agent/models/logged_model.h"

namespace tune::worker {

Result<MetricLines> metric_lines_of(const tuner::Lease& lease) {
    if (lease.gang && lease.gang->node > 0) return MetricLines::create({}, "");
    return MetricLines::create(lease.scrape, lease.metric);
}

AttemptStart::AttemptStart(const SharedParts& shared, std::string boot_id,
                           SpareFolders& spare_folders)
    : shared_(shared), boot_id_(std::move(boot_id)), spare_folders_(spare_folders) {}

/// Ports for several processes. Those on several machines have been told which; one machine may
/// take any.
Result<int> AttemptStart::take_ports(tuner::Lease& lease) const {
    if (!lease.gang) return 0;
    tuner::Gang& gang = *lease.gang;
    if (gang.node < 0 || gang.nproc < 1 || gang.node >= static_cast<int>(gang.nodes.size()))
        return Error{Code::kInvalidParameterValue, "the lease names no place for its processes"};
    int& port = gang.nodes[static_cast<std::size_t>(gang.node)].port;
    const bool is_alone = gang.nodes.size() == 1;
    const int taken = shared_.agent.gang_ports->take(port, is_alone);
    if (taken == 0)
        return Error{Code::kResourceExhausted,
                     "the ports from " + std::to_string(port) +
                         " on, where its processes are to meet, are not free (any more)"};
    port = taken;
    return taken;
}

Result<std::unique_ptr<Attempt>> AttemptStart::make(const tuner::Lease& lease,
                                                    Assignment assignment) const {
    const AttemptSettings& settings = shared_.settings;
    tuner::Lease own = lease;
    const Result<int> ports = take_ports(own);
    if (!ports) {
        shared_.agent.devices->release(assignment);
        return ports.error();
    }
    const std::string name = lease.run_id + "-" + std::to_string(lease.attempt);
    auto attempt = std::make_unique<Attempt>(AttemptFiles(settings.state_dir / "attempts" / name));
    attempt->record = {new_serial(),      std::move(own),   settings.server_url,
                       random_hex(16),    boot_id_,         shared_.agent.loop->now_ms(),
                       count_oom_kills(), assignment.cores, assignment.gpus};
    attempt->assignment = std::move(assignment);
    attempt->ports = *ports;
    return attempt;
}

Result<AttemptStart::Running> AttemptStart::run(Attempt& attempt) const {
    Result<Running> running = try_to_run(attempt);
    if (running) return running;
    const AttemptParts& agent = shared_.agent;
    attempt.files.remove();
    if (agent.cgroups != nullptr) agent.cgroups->remove(attempt.files.directory().filename());
    agent.gang_ports->give_back(attempt.ports);
    agent.devices->release(attempt.assignment);
    return running;
}

Result<AttemptStart::Running> AttemptStart::try_to_run(Attempt& attempt) const {
    LaunchSpec spec;
    TUNE_TRY(output, prepare(attempt, spec));
    TUNE_TRY(supervisor, shared_.agent.launcher->start(spec));
    attempt.search_path = variable(spec.environment, "PATH");
    return Running{std::move(supervisor), std::move(output)};
}

Result<TrialOutput> AttemptStart::prepare(Attempt& attempt, LaunchSpec& spec) const {
    const AttemptSettings& settings = shared_.settings;
    const tuner::Lease& lease = attempt.lease();
    if (lease.command.empty() || lease.command.front().empty())
        return Error{Code::kInvalidParameterValue, "the study has no command to run"};
    TUNE_TRY(lines, metric_lines_of(lease));
    TUNE_TRY(rules, log_rules_of(lease, settings, !attempt.record.gpus.empty()));
    TUNE_TRY(checkpoint_dir, shared_.checkpoint_folders.make(lease));
    attempt.checkpoint_dir = checkpoint_dir;
    TUNE_TRY(resume_dir, shared_.checkpoint_folders.find_parent(lease, checkpoint_dir));
    TUNE_TRY_VOID(spare_folders_.make(attempt.files, attempt.record));
    const std::filesystem::path artifacts = attempt.files.path(kArtifactFolder);
    std::error_code failed;
    std::filesystem::create_directory(artifacts, failed);
    TrialOutput output(attempt.files.directory(), std::move(lines), OutputPosition{});
    output.set_rules(std::move(rules));
    spec.directory = attempt.files.directory();
    spec.wake_fifo = shared_.wake_path;
    spec.serial = attempt.serial();
    spec.grace_ms = std::max<std::int64_t>(0, lease.grace_ms);
    spec.timeout_ms = std::max<std::int64_t>(0, lease.timeout_ms);
    spec.cores = attempt.assignment.cores;
    for (const MachineLock& lock : attempt.assignment.locks) spec.inherited.push_back(lock->get());
    spec.working_dir = lease.working_dir;
    if (shared_.agent.cgroups != nullptr) {
        TUNE_TRY(cgroup, shared_.agent.cgroups->create(attempt.files.directory().filename(),
                                                       limits_of(lease, settings)));
        spec.cgroup = cgroup;
    }
    spec.command = lease.command;
    spec.environment =
        trial_environment(shared_.environment,
                          {&lease, &attempt.assignment, settings.server_url,
                           checkpoint_dir.string(), resume_dir.string(), settings.bin_dir,
                           static_cast<int>(shared_.agent.devices->cores().size()), settings.slots,
                           artifacts.string(), attempt.files.path(kModelFolder).string(),
                           attempt.files.path(kProfileRequestFile).string()});
    return output;
}

}  // namespace tune::worker
