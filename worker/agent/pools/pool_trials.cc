#include "worker/agent/pools/pool_trials.h"

#include <algorithm>
#include <utility>

namespace tune::worker {

std::string key_of(const tuner::AttemptId& id) {
    return id.run_id + "/" + std::to_string(id.attempt);
}

PoolTrial& PoolTrials::insert(std::unique_ptr<PoolTrial> trial) {
    const std::uint64_t serial = trial->serial;
    by_id_[key_of(trial->id())] = serial;
    return *trials_.emplace(serial, std::move(trial)).first->second;
}

void PoolTrials::erase(const PoolTrial& trial) {
    by_id_.erase(key_of(trial.id()));
    trials_.erase(trial.serial);
}

PoolTrial* PoolTrials::find(std::uint64_t serial) const {
    const auto found = trials_.find(serial);
    return found == trials_.end() ? nullptr : found->second.get();
}

PoolTrial* PoolTrials::find(const tuner::AttemptId& id) const {
    const auto found = by_id_.find(key_of(id));
    return found == by_id_.end() ? nullptr : find(found->second);
}

bool PoolTrials::has_folder(const std::filesystem::path& folder) const {
    return std::any_of(trials_.begin(), trials_.end(), [&folder](const auto& entry) {
        return entry.second->files.directory() == folder;
    });
}

bool PoolTrials::is_reported(std::uint64_t pool) const {
    return std::all_of(trials_.begin(), trials_.end(), [pool](const auto& entry) {
        return entry.second->pool != pool || entry.second->finish_done;
    });
}

int PoolTrials::unreported() const {
    return static_cast<int>(std::count_if(trials_.begin(), trials_.end(), [](const auto& entry) {
        return !entry.second->is_in_pool;
    }));
}

void PoolTrials::add_held(std::vector<tuner::AttemptId>& ids) const {
    for (const auto& [serial, trial] : trials_)
        if (!trial->finish_done && trial->intent.intent != Intent::kLost)
            ids.push_back(trial->id());
}

}  // namespace tune::worker
