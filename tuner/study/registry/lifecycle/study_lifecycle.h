#pragma once
// What becomes of a study as a whole: paused, resumed and stopped; another name; removed and
// brought back; its experiment deleted by an MLflow client.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/lifecycle/run_sweeps.h"
#include "tuner/study/registry/lifecycle/study_loader.h"

namespace tune::tuner {

/// The calls of Studies are thread-safe and take its lock; what gets a LockedBatch is called under
/// it.
class StudyLifecycle {
public:
    StudyLifecycle(const StudyServices& in, StudyLoader& loader, RunSweeps& sweeps)
        : options_(in.options),
          clock_(in.clock),
          store_(in.store),
          lock_(in.lock),
          events_(in.events),
          book_(in.book),
          commits_(in.commits),
          waits_(in.waits),
          writer_(in.writer),
          loader_(loader),
          sweeps_(sweeps) {}

    using Change = Studies::Change;

    // As those of Studies.
    void change(const std::string& name, Change change, Done<void> done);
    void set_priority(const std::string& name, int priority, Done<void> done);
    void rename(const std::string& name, const std::string& new_name, Done<void> done,
                const Recording& record);
    void erase(const std::string& name, Done<void> done, const Recording& record);
    void restore(const std::string& name, Done<void> done, const Recording& record);
    void take_in(tracker::PutDocument document, tracker::DeleteDocument note, Done<void> done);

    /// Takes the study out of memory and of the list, its document to those of erased studies.
    void erase(LockedBatch& locked, Study& study, const Recording& record, Written written);
    /// Runs a study again after a rest, or that nobody works on. The trials that are queued once
    /// more, to be written after the study.
    std::vector<Trial*> run_again(Study& study);
    /// An experiment was changed, maybe that of a study.
    void take_experiment(LockedBatch& locked, const tracker::Experiment& experiment);
    /// The runs of studies that run are RUNNING while a server is there, else SCHEDULED.
    void show_interrupted(LockedBatch& locked, bool is_interrupted);
    /// The same for one whose last client has died, or that has one again.
    void show_attended(LockedBatch& locked, Study& study, bool is_attended);

private:
    void rename_experiment(std::int64_t experiment_id, const std::string& name,
                           const std::string& new_name, const Done<void>& done);
    void restore_erased(const std::string& name, Done<void> done, const Recording& record);
    /// Reads a study that is in the store, without the lock, and shows it once what `prepare` says
    /// (under the lock) is written; then `sweep` begins.
    void bring_in(const tracker::Document& document, std::optional<SweepKind> sweep,
                  const Done<void>& done,
                  const std::function<std::vector<tracker::Command>(Study&)>& prepare);

    const StudiesOptions& options_;
    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    StudyEvents& events_;
    StudyBook& book_;
    ObservedCommits& commits_;
    StudyWaits& waits_;
    StudyWriter& writer_;
    StudyLoader& loader_;
    RunSweeps& sweeps_;
    std::set<std::string> brought_in_;  // names of studies that are being read
};

}  // namespace tune::tuner
