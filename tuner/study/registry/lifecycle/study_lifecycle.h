#pragma once
// What becomes of a study as a whole: paused, resumed and stopped; another name; removed and
// brought back; its experiment deleted by an MLflow client.

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/lifecycle/study_loader.h"

namespace tune::tuner {

/// The calls of Studies are thread-safe and take its lock; what gets a LockedBatch is called under
/// it.
class StudyLifecycle {
public:
    StudyLifecycle(const StudyServices& in, StudyLoader& loader)
        : clock_(in.clock),
          store_(in.store),
          lock_(in.lock),
          events_(in.events),
          book_(in.book),
          commits_(in.commits),
          waits_(in.waits),
          writer_(in.writer),
          loader_(loader) {}

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
    void change_runs(LockedBatch& locked, const Study& study, bool deletes);
    void restore_erased(const std::string& name, Done<void> done, const Recording& record);
    /// Reads a study that is in the store and shows it once `commands` are written.
    void bring_in(LockedBatch& locked, const tracker::Document& document,
                  std::vector<tracker::Command> commands, Done<void> done,
                  const Recording& record = {});

    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    StudyEvents& events_;
    StudyBook& book_;
    ObservedCommits& commits_;
    StudyWaits& waits_;
    StudyWriter& writer_;
    StudyLoader& loader_;
};

}  // namespace tune::tuner
