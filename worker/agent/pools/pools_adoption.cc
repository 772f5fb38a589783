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
#include "worker/agent/models/logged_model.h"
#include "worker/agent/pools/pool.h"

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
    const std::filesystem::path trials = settings_.state_dir / kTrialsFolder;
    // Logs are written again as they are read; a model that was not logged yet is there once.
    for (const std::filesystem::path& folder : entries_of(trials)) {
        const bool has_model = holds_model(folder / kModelFolder);
        for (const std::filesystem::path& entry : entries_of(folder))
            if (!has_model || entry.filename() != kModelFolder)
                std::filesystem::remove_all(entry, ignored);
        std::filesystem::remove(folder, ignored);
    }
    for (const std::filesystem::path& folder : entries_of(settings_.state_dir / kPoolsFolder))
        adopt(folder);
    for (const std::filesystem::path& folder : entries_of(trials)) {
        const bool is_known = std::any_of(
            trials_.begin(), trials_.end(),
            [&folder](const auto& entry) { return entry.second->files.directory() == folder; });
        if (!is_known) std::filesystem::remove_all(folder, ignored);
    }
    if (has_leftovers())
        log_info("pools of an earlier agent are ending; their reports are passed on");
}

void Pools::adopt(const std::filesystem::path& folder) {
    auto made = std::make_unique<Pool>(AttemptFiles(folder));
    Pool& pool = *made;
    // By its number its supervisor and its processes call it.
    pool.serial = std::strtoull(folder.filename().c_str(), nullptr, 10);
    const Result<AttemptRecord> record = pool.files.read_record();
    const Result<Owner> owner = pool.files.read_or_take_ownership();
    if (!record || pool.serial == 0 || find_pool(pool.serial) != nullptr) {
        // Of a version that noted nothing, or killed while it made the folder.
        if (owner && owner->pid > 0)
            if (const auto process = find_process(owner->pid, owner->start_time))
                signal_process(*process, SIGTERM);
        return pool.files.remove();
    }
    pool.first = record->lease;
    if (!pool.first.pool) pool.first.pool.emplace();
    pool.is_adopted = true;
    pool.is_open = false;
    pool.intent = {Intent::kShutdown, "its agent was ended, and its pool with it"};
    PoolJournal::Notes notes = pool.journal.read();
    pool.read_before = std::move(notes.read);
    pool.settled = std::move(notes.settled);
    pool.assignment = {record->cores, record->gpus, 1};
    parts_.devices->take_again(pool.assignment);
    parts_.server_client->take_slot();
    const std::uint64_t serial = pool.serial;
    pools_.emplace(serial, std::move(made));
    // All of it before the agent registers, since it then names whom it found here.
    while (read_chunk(pool, parts_.loop->wall_ms())) {
    }
    Result<Process> process = owner && owner->pid > 0
                                  ? find_process(owner->pid, owner->start_time)
                                  : Result<Process>(Error{Code::kResourceDoesNotExist, ""});
    if (process) {
        pool.supervisor = std::move(*process);
        signal_process(pool.supervisor, SIGTERM);
        if (parts_.loop->watch(pool.supervisor.pidfd.get(), [this, serial] { on_gone(serial); }))
            return;
    }
    pool.exit = pool.files.read_exit();
    if (!pool.exit) return sweep(serial);
    pool.is_alive = false;
    pump(serial);
}

bool Pools::has_leftovers() const {
    return std::any_of(pools_.begin(), pools_.end(),
                       [](const auto& entry) { return entry.second->is_adopted; });
}

/// An attempt that an adopted pool's line names for the first time; nullptr: it is settled.
Pools::Trial* Pools::adopt_trial(Pool& pool, const tuner::AttemptId& id) {
    const std::string key = key_of(id);
    if (!pool.is_adopted || pool.settled.contains(key) || by_id_.contains(key)) return nullptr;
    tuner::Lease lease = pool.first;
    lease.run_id = id.run_id;
    lease.attempt = id.attempt;
    lease.timeout_ms = 0;  // it is ending
    Result<MetricLines> lines = MetricLines::create(lease.scrape, lease.metric);
    Trial& trial = enter(pool, std::move(lease), std::move(lines));
    // Its checkpoints stay where they are; its model may be waiting to be logged.
    hooks_.begun(trial.serial, trial.lease, {}, trial.files);
    return &trial;
}

}  // namespace tune::worker
