// One group of runs is on its way at a time. A group that the store has no room for is sent again a
// second later. One that it will never take holds a run that is gone (`tune gc`) or was deleted by
// itself: half as many are tried then, down to the one, which is passed over.

#include "tuner/study/registry/lifecycle/run_sweeps.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "tuner/study/journal/erased_studies.h"
#include "tuner/study/journal/journal.h"

namespace tune::tuner {
namespace {

/// How long a group waits that found no room.
constexpr std::int64_t kSweepRetry_ms = 1000;

const char* kind_name(SweepKind kind) {
    switch (kind) {
        case SweepKind::kRename: return "rename";
        case SweepKind::kDelete: return "delete";
        case SweepKind::kRestore: break;
    }
    return "restore";
}

SweepKind kind_of(const tracker::Document& note) {
    const Result<Json> json = parse_json(note.json_text);
    const std::string name = json && json->is_object() ? json->value("kind", "") : std::string();
    for (const SweepKind kind : {SweepKind::kDelete, SweepKind::kRestore})
        if (name == kind_name(kind)) return kind;
    return SweepKind::kRename;
}

/// The run of the study itself, then those of its trials.
std::size_t run_count(const Study& study) {
    return 1 + study.trials().size();
}

/// Empty: it has none.
std::string run_at(const Study& study, std::size_t at) {
    if (at == 0) return study.identity().run_id;
    const Trial& trial = study.trials()[at - 1];
    return trial.sync.run_requested && !trial.sync.detached ? trial.run_id : std::string();
}

}  // namespace

tracker::Command RunSweeps::note(const Study& study, SweepKind kind) {
    return tracker::PutDocument{kSweepCollection, study.identity().id,
                                to_text(Json{{"kind", kind_name(kind)}})};
}

void RunSweeps::begin(LockedBatch& locked, Study& study, SweepKind kind) {
    Sweep& sweep = sweeps_[study.identity().id];
    const bool is_under_way = sweep.is_under_way;
    sweep =
        Sweep{.kind = kind, .study = &study, .is_under_way = is_under_way, .version = ++versions_};
    step(locked, study.identity().id);
}

void RunSweeps::step(LockedBatch& locked, const std::string& id) {
    Sweep& sweep = sweeps_.at(id);
    if (sweep.is_under_way) return;
    sweep.waits = false;
    const std::size_t count = sweep.study != nullptr ? run_count(*sweep.study) : sweep.runs.size();
    const std::size_t end = std::min(count, sweep.next + sweep.group_max);
    std::vector<tracker::Command> commands;
    for (std::size_t at = sweep.next; at < end; ++at) add_commands(sweep, at, commands);
    if (end == count) commands.push_back(tracker::DeleteDocument{kSweepCollection, id});
    sweep.is_under_way = true;
    locked.write(std::move(commands), [this, id, end, version = sweep.version](
                                          LockedBatch& later, const Result<void>& result) {
        Sweep& written = sweeps_.at(id);
        written.is_under_way = false;
        // Another one took its place: the note may have gone with the last group.
        if (written.version == version) return group_written(later, id, end, result);
        if (written.study != nullptr) {
            std::vector<tracker::Command> again;
            again.push_back(note(*written.study, written.kind));
            later.write(std::move(again), {});
        }
        step(later, id);
    });
}

void RunSweeps::group_written(LockedBatch& locked, const std::string& id, std::size_t end,
                              const Result<void>& result) {
    Sweep& sweep = sweeps_.at(id);
    const std::size_t count = sweep.study != nullptr ? run_count(*sweep.study) : sweep.runs.size();
    if (result) {
        if (end >= count) {
            sweeps_.erase(id);
            return;
        }
        sweep.next = end;
        sweep.group_max = std::min(2 * sweep.group_max, kSweptRunsMax);
    } else if (!is_permanent(result.error())) {
        return wait(sweep);
    } else if (end - sweep.next > 1) {
        sweep.group_max = (end - sweep.next) / 2;
    } else {
        ++sweep.next;
    }
    step(locked, id);
}

void RunSweeps::add_commands(const Sweep& sweep, std::size_t at,
                             std::vector<tracker::Command>& commands) {
    std::string run_id = sweep.study != nullptr ? run_at(*sweep.study, at) : sweep.runs[at];
    if (run_id.empty()) return;
    if (sweep.kind == SweepKind::kDelete) {
        commands.push_back(tracker::DeleteRun{std::move(run_id)});
        return;
    }
    if (sweep.kind == SweepKind::kRestore) commands.push_back(tracker::RestoreRun{run_id});
    if (sweep.study == nullptr) return;
    commands.push_back(tracker::SetTag{std::move(run_id), {"tune.study", sweep.study->name()}});
}

void RunSweeps::wait(Sweep& sweep) {
    sweep.waits = true;
    if (retry_at_ms_ == 0) retry_at_ms_ = clock_.monotonic_ms() + kSweepRetry_ms;
    events_.wake_ticker(retry_at_ms_);
}

void RunSweeps::retry_due(LockedBatch& locked) {
    if (retry_at_ms_ == 0 || clock_.monotonic_ms() < retry_at_ms_) return;
    retry_at_ms_ = 0;
    std::vector<std::string> due;
    for (const auto& [id, sweep] : sweeps_)
        if (sweep.waits) due.push_back(id);
    for (const std::string& id : due) {
        const Sweep& sweep = sweeps_.at(id);
        if (sweep.study == nullptr && sweep.runs.empty())
            read_runs(locked, id);
        else
            step(locked, id);
    }
}

Result<void> RunSweeps::load() {
    TUNE_TRY(notes, store_.list_documents(kSweepCollection));
    for (const tracker::Document& note : notes) {
        Sweep sweep{.kind = kind_of(note), .version = ++versions_};
        for (const auto& [name, study] : book_.all())
            if (study->identity().id == note.key) sweep.study = study.get();
        // Removed and restored again, or the other way round, before the first sweep was over.
        if (sweep.study == nullptr) sweep.kind = SweepKind::kDelete;
        wait(sweeps_.insert_or_assign(note.key, std::move(sweep)).first->second);
    }
    if (retry_at_ms_ != 0) retry_at_ms_ = std::max<std::int64_t>(clock_.monotonic_ms(), 1);
    return {};
}

/// Of a study that is not in memory any more: from the documents of its trials.
void RunSweeps::read_runs(LockedBatch& locked, const std::string& id) {
    Sweep& sweep = sweeps_.at(id);
    sweep.waits = false;
    const auto job = [this, id, version = sweep.version] {
        std::vector<std::string> runs;
        const auto documents = store_.list_documents(kTrialCollection, id + "/");
        if (!documents) log_warning("runs of a removed study: " + documents.error().text());
        const auto erased = store_.get_document(kErasedCollection, id);
        if (erased && *erased) runs.push_back(run_of_erased(**erased));
        for (std::size_t i = 0; documents && i < documents->size(); ++i) {
            const Result<Trial> trial = trial_from_document((*documents)[i].json_text);
            if (trial) runs.push_back(trial->run_id);
        }
        LockedBatch later(lock_);
        const auto found = sweeps_.find(id);
        if (found == sweeps_.end() || found->second.version != version) return;
        if (!documents) return wait(found->second);
        found->second.runs = std::move(runs);
        step(later, id);
    };
    locked.after([this, id, job] {
        if (store_.post_read(job)) return;
        const LockedBatch later(lock_);
        if (const auto found = sweeps_.find(id); found != sweeps_.end()) wait(found->second);
    });
}

bool RunSweeps::names(const Study& study) const {
    return std::any_of(sweeps_.begin(), sweeps_.end(),
                       [&study](const auto& entry) { return entry.second.study == &study; });
}

}  // namespace tune::tuner
