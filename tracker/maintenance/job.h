#pragma once
// Long work on the store (garbage collection, backups) on a thread of its own, one at a time, with
// its progress for whoever asks.

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"

namespace tune::tracker {

/// Long-polls waiting for news of the job; more are answered at once.
inline constexpr std::size_t kJobWaitersMax = 64;

struct Progress {
    std::string phase = {};  // "runs", "metric points", "pages" ...
    std::int64_t done = 0;   // of `total`
    std::int64_t total = 0;  // 0: not known
};

/// Tells how far the work is; false: it should end soon (the server stops). Cheap enough for every
/// few ms of work.
using Report = std::function<bool(const Progress&)>;

/// The error of a job that was stopped.
[[nodiscard]] Error job_stopped();

class JobRunner {
public:
    struct State {
        /// Grows with every change; 0: there was no job yet.
        std::int64_t version = 0;
        std::string kind = {};
        bool is_running = false;
        Progress progress = {};
        /// JSON of a job that ended well.
        std::string result = {};
        std::optional<Error> error = {};
    };
    /// Returns the result as JSON.
    using Work = std::function<Result<std::string>(const Report&)>;
    using Waiter = std::function<void(const State&)>;

    JobRunner() = default;
    ~JobRunner() { stop(); }
    JobRunner(const JobRunner&) = delete;
    JobRunner& operator=(const JobRunner&) = delete;

    /// Starts `work`; its first state. Errors: kResourceConflict while another job runs,
    /// kTemporarilyUnavailable after stop().
    [[nodiscard]] Result<State> start(std::string kind, Work work);
    [[nodiscard]] State state() const;
    /// Calls `waiter` once: at once when the version is another one than `version` or nothing runs,
    /// else with the next change (a running job has news every second at the latest, or ends), on
    /// the job's thread.
    void wait(std::int64_t version, Waiter waiter);
    /// Tells the job to end, and waits for it. Idempotent.
    void stop();

private:
    void run(const Work& work);
    bool report(const Progress& progress);
    void publish(std::unique_lock<std::mutex>& lock);

    mutable std::mutex mutex_;
    State state_;                  // guarded by mutex_
    std::vector<Waiter> waiters_;  // guarded by mutex_
    bool is_stopping_ = false;     // guarded by mutex_
    std::int64_t told_ms_ = 0;     // of the job's thread
    std::thread thread_;
};

}  // namespace tune::tracker
