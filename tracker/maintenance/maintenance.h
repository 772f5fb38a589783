#pragma once
// What a server does for its data directory on request: garbage collections and backups, one at a
// time, and the backups that lie in <data>/backups.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "tracker/artifacts/artifact_store.h"
#include "tracker/maintenance/backup.h"
#include "tracker/maintenance/garbage_collector.h"
#include "tracker/maintenance/job.h"
#include "tracker/store/maintenance/read_garbage.h"
#include "tracker/store/store.h"

namespace tune::tracker {

/// Backups that a server keeps; for another one, one must be deleted first: a disk is not filled by
/// a script that forgets to.
inline constexpr std::size_t kBackupsMax = 32;
/// How long something stays deleted before a collection that names nothing removes it.
inline constexpr std::int64_t kUndeleteWindowMs = 30LL * 24 * 3600 * 1000;

struct BackupFile {
    std::string name;
    std::uint64_t size_bytes = 0;
    std::int64_t modified_s = 0;
};

/// Thread-safe. `store` and `artifacts` outlive it.
class Maintenance {
public:
    Maintenance(Store& store, const ArtifactStore& artifacts, std::filesystem::path data,
                const Clock& clock)
        : store_(store), artifacts_(artifacts), data_(std::move(data)), clock_(clock) {}

    /// Errors: those of JobRunner::start. Those of collect_garbage become the job's.
    [[nodiscard]] Result<JobRunner::State> start_collection(GarbageChoice choice, bool is_dry_run);
    /// What else goes once a collection has removed runs for good; called on the job's thread at
    /// the end of each that is no dry run. REQUIRES: before the first collection; what it calls
    /// lives until stop().
    void set_after_collection(std::function<Result<void>()> call) {
        after_collection_ = std::move(call);
    }
    /// Writes <data>/backups/tune-<time>.backup.
    [[nodiscard]] Result<JobRunner::State> start_backup(bool with_artifacts);
    [[nodiscard]] JobRunner& jobs() { return jobs_; }

    // Blocking (disk).
    [[nodiscard]] Result<std::vector<BackupFile>> backups() const;
    /// Errors: kResourceDoesNotExist, also for names that no backup has.
    [[nodiscard]] Result<OpenArtifact> open_backup(const std::string& name) const;
    [[nodiscard]] Result<void> remove_backup(const std::string& name) const;

    [[nodiscard]] std::int64_t now_ms() const { return clock_.now_ms(); }

    /// Ends the running job. Before the store is stopped. Idempotent.
    void stop() { jobs_.stop(); }

private:
    [[nodiscard]] std::filesystem::path folder() const { return data_ / "backups"; }
    [[nodiscard]] Result<std::string> backup(bool with_artifacts, const Report& report) const;

    Store& store_;
    const ArtifactStore& artifacts_;
    std::filesystem::path data_;
    const Clock& clock_;
    std::function<Result<void>()> after_collection_;
    JobRunner jobs_;
};

/// As JSON, for REST and the command line.
[[nodiscard]] std::string to_json_text(const GarbageReport& report);
[[nodiscard]] std::string to_json_text(const BackupReport& report);

}  // namespace tune::tracker
