#pragma once
// A study's suggestions repeated, from the journal as it lies on disk.

#include <string>

#include "tuner/study/registry/bookkeeping/study_services.h"
#include "tuner/study/registry/bookkeeping/work_pool.h"

namespace tune::tuner {

/// Replays that wait or run. One of a large study takes minutes, and there is one thread for them.
inline constexpr int kReplaysMax = 8;

/// Thread-safe. Replays run one after the other, on a thread of their own: readers and suggestions
/// are not held up for as long as they take.
class Replays {
public:
    explicit Replays(const StudyServices& in)
        : options_(in.options),
          store_(in.store),
          lock_(in.lock),
          phase_(in.phase),
          book_(in.book) {}

    /// As Studies::replay.
    void replay(const std::string& name, Done<ReplayReport> done);
    /// Ends the thread. Idempotent; without the lock.
    void stop() { pool_.stop(); }

private:
    [[nodiscard]] Result<ReplayReport> run(const std::string& name, const std::string& id);

    const StudiesOptions& options_;
    tracker::Store& store_;
    StudyLock& lock_;
    const Phase& phase_;
    StudyBook& book_;
    int waiting_ = 0;  // or running; guarded by lock_
    WorkPool pool_{{.name = "replays", .threads = 1, .stand_back = 5}};
};

}  // namespace tune::tuner
