// Running trials go on under their supervisors, ended ones are reported, and what cannot be known
// is ended and reported as lost. Who is the owner decides whether an attempt was begun: the link is
// made once, by its supervisor or here.

#include "worker/agent/attempts/adoption.h"

#include <sstream>
#include <string>
#include <system_error>

#include "base/log.h"
#include "worker/agent/start/attempt_start.h"

namespace tune::worker {
namespace {

constexpr std::size_t kRuleTailBytes = 256u << 10;

Assignment assignment_of(const AttemptRecord& record) {
    const tuner::Lease& lease = record.lease;
    const bool is_part = !lease.devices.empty() && lease.devices.front().bytes > 0;
    const bool is_share = lease.gpus_per_trial > 0 && lease.gpus_per_trial < 1;
    return {record.cores, record.gpus, is_part ? kPartOfGpu : is_share ? lease.gpus_per_trial : 1};
}

}  // namespace

std::vector<std::filesystem::path> folders_left(const std::filesystem::path& state_dir) {
    std::error_code error;
    std::vector<std::filesystem::path> folders;
    for (const auto& item : std::filesystem::directory_iterator(state_dir / "attempts", error))
        if (item.is_directory()) folders.push_back(item.path());
    return folders;
}

std::optional<LeftAttempt> take_over(const std::filesystem::path& folder,
                                     const CheckpointFolders& checkpoints,
                                     const std::string& boot_id) {
    auto attempt = std::make_unique<Attempt>(AttemptFiles(folder));
    Result<AttemptRecord> record = attempt->files.read_record();
    const Result<Owner> owner = attempt->files.read_or_take_ownership();
    if (!record || !owner || owner->pid == 0) {
        if (!record) log_warning("an attempt cannot be taken over: " + record.error().text());
        attempt->files.remove();
        return std::nullopt;
    }
    attempt->record = std::move(*record);
    attempt->intent = attempt->files.read_intent();
    attempt->assignment = assignment_of(attempt->record);
    if (Result<std::filesystem::path> kept = checkpoints.path_of(checkpoint_key(attempt->lease())))
        attempt->checkpoint_dir = std::move(*kept);
    LeftAttempt left{.attempt = std::move(attempt)};
    left.is_of_this_boot = left.attempt->record.boot_id == boot_id;
    Result<Process> supervisor = find_process(owner->pid, owner->start_time);
    if (supervisor && left.is_of_this_boot) left.supervisor = std::move(*supervisor);
    return left;
}

LeftOutput read_on(const Attempt& attempt, const AttemptSettings& settings) {
    Result<MetricLines> lines = metric_lines_of(attempt.lease());
    if (!lines) lines = MetricLines::create({}, "");  // it was valid when the trial was started
    ProgressRecord progress = attempt.files.read_progress();
    TrialOutput output(attempt.files.directory(), std::move(*lines), progress.acknowledged);
    if (Result<LogRules> rules =
            log_rules_of(attempt.lease(), settings, !attempt.record.gpus.empty())) {
        // What the earlier agent read it has told nobody.
        for (const int stream : {0, 1}) {
            std::istringstream text(output.tail(stream, kRuleTailBytes));
            for (std::string line; std::getline(text, line);) rules->read(line);
        }
        output.set_rules(std::move(*rules));
    }
    return {std::move(output), std::move(progress)};
}

}  // namespace tune::worker
