// What pools get of the table of attempts.

#include "worker/agent/attempts/attempt.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {

std::unique_ptr<Pools> Attempts::make_pools() {
    PoolHooks hooks;
    hooks.folders = [this](const tuner::Lease& lease)
        -> Result<std::pair<std::filesystem::path, std::filesystem::path>> {
        TUNE_TRY(checkpoint_dir, checkpoint_folders_.make(lease));
        TUNE_TRY(resume_dir, checkpoint_folders_.find_parent(lease, checkpoint_dir));
        return std::pair(std::move(checkpoint_dir), std::move(resume_dir));
    };
    hooks.refuse = [this](const tuner::Lease& lease, tuner::Outcome outcome,
                          const std::string& reason) { refuse(lease, outcome, reason); };
    hooks.follow_rule =
        [this](const LogHit& hit, const tuner::Lease& lease, const std::vector<std::string>& gpus,
               tuner::FinishRequest& request) { follow_rule(hit, lease, gpus, request); };
    hooks.ended = [this](const tuner::Lease& lease, const tuner::FinishRequest& request) {
        if (request.outcome == tuner::Outcome::kDone) durations_.add(lease.study, request.wall_ms);
    };
    hooks.leave_folder = [this](const std::filesystem::path& folder) {
        checkpoint_folders_.leave(folder);
    };
    hooks.begun = [this](std::uint64_t serial, const tuner::Lease& lease,
                         const std::filesystem::path& folder,
                         const AttemptFiles& files) { keep_results(serial, lease, folder, files); };
    hooks.report = [this](std::uint64_t serial, tuner::FinishRequest request, bool reports) {
        if (!reports) return forget_results(serial);
        report_when_kept(serial, std::move(request), [this, serial](tuner::FinishRequest end) {
            parts_.outbox->finish(serial, std::move(end));
        });
    };
    hooks.freed = [this] {
        start_waiting();
        publish();
    };
    hooks.publish = [this] { publish(); };
    return std::make_unique<Pools>(settings_, parts_, std::move(hooks), wake_path_, environment_);
}

}  // namespace tune::worker
