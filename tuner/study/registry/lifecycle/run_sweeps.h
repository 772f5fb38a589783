#pragma once
// What follows for the runs of a whole study when it is renamed, removed or restored: their tags,
// their deletion.
//
// A study may have a million runs, so they are changed in groups, one transaction each and one at a
// time: a client's write never waits behind more than one of them. A note in the store, written
// with the change that the sweep follows from and removed with its last group, brings a sweep to
// its end after a stop of the server.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tuner/study/registry/bookkeeping/study_services.h"

namespace tune::tuner {

/// Notes of sweeps that are under way, by the id of their study: {"kind": "rename"}.
inline constexpr const char* kSweepCollection = "tune.sweeps";
/// Runs that one transaction of a sweep changes: a few ms of the writer.
inline constexpr std::size_t kSweptRunsMax = 100;

/// kRename: the runs bear the study's name. kDelete: deleted, as MLflow deletes runs. kRestore: the
/// opposite, and they bear the study's name.
enum class SweepKind { kRename, kDelete, kRestore };

/// Not thread-safe, but for what it posts: part of what the lock of Studies guards.
class RunSweeps {
public:
    explicit RunSweeps(const StudyServices& in)
        : clock_(in.clock), store_(in.store), lock_(in.lock), events_(in.events), book_(in.book) {}

    /// To be written together with the change of the study that it follows from.
    [[nodiscard]] static tracker::Command note(const Study& study, SweepKind kind);
    /// The note is on disk. It takes the place of an earlier sweep of the same study.
    void begin(LockedBatch& locked, Study& study, SweepKind kind);

    /// Takes up what a server left that was stopped; the next retry_due goes on with it. Blocks.
    /// Errors: the store's.
    Result<void> load();
    /// When writes that the store refused are tried again; monotonic. 0: there are none.
    [[nodiscard]] std::int64_t retry_at_ms() const { return retry_at_ms_; }
    void retry_due(LockedBatch& locked);

    /// Whether one names the study.
    [[nodiscard]] bool names(const Study& study) const;

private:
    struct Sweep {
        SweepKind kind = SweepKind::kRename;
        /// nullptr: a removed study of before a restart, whose runs stand in `runs`.
        Study* study = nullptr;
        std::vector<std::string> runs = {};
        std::size_t next = 0;
        std::size_t group_max = kSweptRunsMax;  ///< less while a run is looked for that is refused
        bool is_under_way = false;
        bool waits = false;         ///< for retry_due
        std::uint64_t version = 0;  ///< of `kind`: an answer to an earlier one says nothing
    };
    void step(LockedBatch& locked, const std::string& id);
    void group_written(LockedBatch& locked, const std::string& id, std::size_t end,
                       const Result<void>& result);
    static void add_commands(const Sweep& sweep, std::size_t at,
                             std::vector<tracker::Command>& commands);
    void read_runs(LockedBatch& locked, const std::string& id);
    void wait(Sweep& sweep);

    const Clock& clock_;
    tracker::Store& store_;
    StudyLock& lock_;
    StudyEvents& events_;
    StudyBook& book_;
    std::map<std::string, Sweep> sweeps_;  // by the study's id
    std::uint64_t versions_ = 0;
    std::int64_t retry_at_ms_ = 0;
};

}  // namespace tune::tuner
