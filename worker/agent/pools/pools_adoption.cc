// The pools of an agent that was killed. They end with it, and what they had said until then is in
// their supervisors' files: the next agent reads it from the beginning, under the times that its
// predecessor noted, so that metrics which that had sent are the same again and the rest is not
// lost. Whoever is named there and has no settled end is an attempt of this agent until the pool is
// gone; then it ends by its own last line, or as preempted. What was leased and never begun is
// given back by the registration, which does not name it.

#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/log.h"
#include "worker/agent/attempts/kept_results.h"
#include "worker/agent/models/logged_model.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {

namespace {

std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder) {
    std::error_code error;
    std::vector<std::filesystem::path> entries;
    for (const auto& item : std::filesystem::directory_iterator(folder, error))
        entries.push_back(item.path());
    return entries;
}

}  // namespace

void Pools::adopt_all() {
    std::error_code ignored;
    const std::filesystem::path trials = shared_.settings.state_dir / kTrialsFolder;
    // Logs are written again as they are read; a model that was not logged yet is there once.
    for (const std::filesystem::path& folder : entries_of(trials)) {
        const bool has_model = holds_model(folder / kModelFolder);
        for (const std::filesystem::path& entry : entries_of(folder))
            if (!has_model || entry.filename() != kModelFolder)
                std::filesystem::remove_all(entry, ignored);
        std::filesystem::remove(folder, ignored);
    }
    for (const std::filesystem::path& folder :
         entries_of(shared_.settings.state_dir / kPoolsFolder))
        adopt(folder);
    for (const std::filesystem::path& folder : entries_of(trials))
        if (!trials_.has_folder(folder)) std::filesystem::remove_all(folder, ignored);
    if (has_leftovers())
        log_info("pools of an earlier agent are ending; their reports are passed on");
}

void Pools::adopt(const std::filesystem::path& folder) {
    const AttemptFiles files(folder);
    // By its number its supervisor and its processes call it.
    const std::uint64_t serial = std::strtoull(folder.filename().c_str(), nullptr, 10);
    const bool is_number = std::to_string(serial) == folder.filename();
    const Result<AttemptRecord> record = files.read_record();
    const Result<Owner> owner = files.read_or_take_ownership();
    std::optional<Process> supervisor;
    if (owner && owner->pid > 0)
        if (Result<Process> process = find_process(owner->pid, owner->start_time))
            supervisor = std::move(*process);
    if (supervisor) signal_process(*supervisor, SIGTERM);
    // Of a version that noted nothing, or killed while it made the folder.
    if (!record || !is_number || find_pool(serial) != nullptr) return files.remove();
    Pool& pool = *pools_.emplace(serial, make_pool(serial)).first->second;
    pool.first = record->lease;
    if (!pool.first.pool) pool.first.pool.emplace();
    pool.is_adopted = true;
    pool.is_open = false;
    pool.intent = {Intent::kShutdown, "its agent was ended, and its pool with it"};
    pool.settled = pool.output.resume();
    pool.assignment = {record->cores, record->gpus, 1};
    agent_.devices->take_again(pool.assignment);
    mark_used_gpus();
    agent_.server_client->take_slot();
    // All of it before the agent registers, since it then names whom it found here.
    while (pool.output.read(agent_.loop->wall_ms())) {
    }
    if (supervisor && pool.processes.watch(std::move(*supervisor))) return;
    pool.exit = pool.files.read_exit();
    if (!pool.exit) return pool.processes.sweep();
    pool.is_alive = false;
    pump(serial);
}

bool Pools::has_leftovers() const {
    return std::any_of(pools_.begin(), pools_.end(),
                       [](const auto& entry) { return entry.second->is_adopted; });
}

/// An attempt that an adopted pool's line names for the first time; nullptr: it is settled.
PoolTrial* Pools::adopt_trial(Pool& pool, const tuner::AttemptId& id) {
    if (!pool.is_adopted || pool.settled.contains(key_of(id)) || trials_.has(id)) return nullptr;
    tuner::Lease lease = pool.first;
    lease.run_id = id.run_id;
    lease.attempt = id.attempt;
    lease.timeout_ms = 0;  // it is ending
    Result<MetricLines> lines = MetricLines::create(lease.scrape, lease.metric);
    PoolTrial& trial = enter(pool, std::move(lease), std::move(lines));
    // Its checkpoints stay where they are; its model may be waiting to be logged.
    shared_.results.watch(trial.serial, trial.lease, {}, trial.files);
    return &trial;
}

}  // namespace tune::worker
