#pragma once
// Studies as they lie on disk brought into memory, and what their pruners have to know of their
// past.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracker/store/metrics/metric_marks.h"
#include "tuner/study/registry/bookkeeping/study_services.h"

namespace tune::tuner {

/// Trials that are admitted, or looked at, before other calls get their turn: below 1 ms.
inline constexpr std::size_t kLoadSlice = 4096;

/// read() and index() are thread-safe; the rest is part of what the lock of Studies guards, but for
/// what it posts.
class StudyLoader {
public:
    explicit StudyLoader(const StudyServices& in)
        : clock_(in.clock),
          store_(in.store),
          lock_(in.lock),
          phase_(in.phase),
          events_(in.events),
          book_(in.book) {}

    /// A study and its trials as they are in the store. Blocks; without the lock, for nobody else
    /// knows the study yet. Errors: kDataLoss with what cannot be read; the store's.
    [[nodiscard]] Result<std::unique_ptr<Study>> read(const tracker::Document& document) const;
    /// Makes the runs of its ended trials known, kLoadSlice of them under the lock at a time.
    void index(Study& study);
    /// Takes away what index() did: the study is not to be admitted.
    void forget_index(Study& study);
    /// Adds it to the book. Cost: O(trials that have not ended). REQUIRES: index().
    Study& admit(std::unique_ptr<Study> study);
    /// All of that at a start, when there is nobody to wait. Errors: those of read().
    Result<Study*> load(const tracker::Document& document);
    /// Before trials start again after a rest or with another pruner: the pruner observes the
    /// history, on a reader thread.
    void prepare(LockedBatch& locked, Study& study);

private:
    struct Snapshot {
        std::string run_id;
        std::uint64_t number = 0;
    };
    Result<void> read_trials(Study& study) const;
    Result<void> read_progress(Study& study, Trial& trial) const;
    [[nodiscard]] Result<tracker::MarkedHistory> marked_history(const std::string& run_id,
                                                                const std::string& metric) const;
    static void read_metric(Trial& trial, const std::string& name,
                            const tracker::MarkedHistory& history);
    [[nodiscard]] static bool may_have_reported(const Trial& trial);
    [[nodiscard]] static std::vector<Snapshot> with_reports(const Study& study);
    [[nodiscard]] std::vector<Snapshot> take_with_reports(const Study& study);
    void load_history(Study& study) const;
    void index_slice(Study& study, std::size_t begin);

    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyEvents& events_;
    StudyBook& book_;
};

}  // namespace tune::tuner
