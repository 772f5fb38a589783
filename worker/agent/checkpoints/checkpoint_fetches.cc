#include "worker/agent/checkpoints/checkpoint_fetches.h"

#include <utility>

#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/checkpoints/folder_record.h"

namespace tune::worker {

CheckpointFetches::CheckpointFetches(Loop& loop, CheckpointTransfer& transfer,
                                     const CheckpointFolders& folders,
                                     std::filesystem::path model_root, int deadline_ms,
                                     Fetched fetched)
    : loop_(loop),
      transfer_(transfer),
      folders_(folders),
      model_root_(std::move(model_root)),
      deadline_ms_(deadline_ms),
      fetched_(std::move(fetched)) {}

/// What an earlier attempt of the trial stored, and what the trial that it continues did.
std::vector<FetchTarget> CheckpointFetches::targets_of(const tuner::Lease& lease) const {
    std::vector<FetchTarget> targets;
    const std::string store = folders_.store_of(lease);
    if (store.empty()) return targets;
    const auto add = [&](const std::string& key, const std::string& run_id) {
        const Result<std::filesystem::path> folder = folders_.path_of(key);
        if (!folder) return;  // said when the attempt is prepared
        const FolderRecord record = read_folder_record(folders_.state(), key);
        targets.push_back({{store, run_id},
                           folders_.state(),
                           key,
                           *folder,
                           staging_folder(folders_.state(), "fetch-" + key),
                           record.at.run_id == run_id ? record.attempt : 0});
    };
    if (lease.attempt > 1) add(checkpoint_key(lease), lease.run_id);
    if (!lease.resume_from.empty() && !lease.resume_run_id.empty())
        add(lease.resume_from, lease.resume_run_id);
    return targets;
}

bool CheckpointFetches::take(tuner::Lease& lease) {
    CheckpointJob job{.kind = CheckpointJob::Kind::kFetch,
                      .token = lease.token,
                      .targets = targets_of(lease),
                      .models = wanted_models(lease.command),
                      .model_root = model_root_};
    if (job.targets.empty() && job.models.empty()) return false;
    const std::uint64_t serial = new_serial();
    job.serial = serial;
    const Loop::TimerId timer = loop_.at(loop_.now_ms() + deadline_ms_, [this, serial] {
        transfer_.give_up(serial);
        on_result(serial, {.error = Error{Code::kDeadlineExceeded,
                                          "what it starts from did not arrive in time"}});
    });
    fetches_.emplace(serial, Fetch{std::move(lease), timer});
    transfer_.submit(std::move(job));
    return true;
}

std::optional<tuner::Lease> CheckpointFetches::give_up(const tuner::AttemptId& id) {
    for (auto at = fetches_.begin(); at != fetches_.end(); ++at) {
        if (at->second.lease.id() != id) continue;
        std::optional<tuner::Lease> taken = std::move(at->second.lease);
        loop_.cancel(at->second.timer);
        transfer_.give_up(at->first);
        fetches_.erase(at);
        return taken;
    }
    return std::nullopt;
}

void CheckpointFetches::on_result(std::uint64_t job, const CheckpointResult& result) {
    auto fetch = fetches_.extract(job);
    if (fetch.empty()) return;  // it was given up
    loop_.cancel(fetch.mapped().timer);
    fetched_(std::move(fetch.mapped().lease), result);
}

std::vector<tuner::AttemptId> CheckpointFetches::ids() const {
    std::vector<tuner::AttemptId> ids;
    for (const auto& [job, fetch] : fetches_) ids.push_back(fetch.lease.id());
    return ids;
}

}  // namespace tune::worker
