#pragma once
// Studies as they lie on disk brought into memory, and what their pruners have to know of their
// past.

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"

namespace tune::tuner {

/// Not thread-safe, but for what it posts: part of what the lock of Studies guards.
class StudyLoader {
public:
    explicit StudyLoader(const StudyServices& in)
        : clock_(in.clock),
          store_(in.store),
          lock_(in.lock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book) {}

    /// Reads a study and its trials, and adds it to the book. Blocks. Errors: kDataLoss with what
    /// cannot be read; the store's.
    Result<Study*> load(const tracker::Document& document);
    /// Before trials start again after a rest or with another pruner: the pruner observes the
    /// history, on a reader thread.
    void prepare(LockedBatch& locked, Study& study);

private:
    struct Snapshot {
        std::string run_id;
        std::uint64_t number = 0;
    };
    Result<void> load_trials(Study& study);
    Result<void> load_progress(Study& study, Trial& trial);
    [[nodiscard]] static std::vector<Snapshot> with_reports(const Study& study);
    void load_history(Study& study);

    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
};

}  // namespace tune::tuner
