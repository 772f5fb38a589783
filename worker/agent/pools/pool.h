#pragma once
// A pool and a trial in it, in memory; used by the files of class Pools only.

#include <optional>
#include <set>

#include "worker/agent/pools/pool_journal.h"
#include "worker/agent/pools/pools.h"

namespace tune::worker {

// In the agent's folder.
constexpr const char* kPoolsFolder = "pools";
constexpr const char* kTrialsFolder = "pool-trials";

struct Pools::Pool {
    explicit Pool(AttemptFiles folder)
        : files(std::move(folder)), journal(files.path(kProgressFile)) {}

    std::uint64_t serial = 0;
    AttemptFiles files;  // its folder; files of a supervisor
    PoolJournal journal;
    tuner::Lease first;  // that it was opened for: command, limits, name
    Assignment assignment;
    Process supervisor;
    std::vector<Process> survivors;  // of a supervisor that was killed
    std::optional<ExitRecord> exit;
    IntentRecord intent;  // why this agent ended it, if it did

    UniqueFd input;
    std::string unsent;
    Loop::TimerId flush_timer = Loop::kNoTimer;
    UniqueFd output;
    std::int64_t offset = 0;
    std::string partial;  // read, but not yet a whole line

    std::set<std::uint64_t> trials;  // that have not ended
    bool is_open = true;             // takes more
    bool is_alive = true;
    bool has_begun_any = false;
    bool is_adopted = false;                   // of an earlier agent, and ending
    std::deque<ReadStretch> read_before = {};  // by that agent, and not yet again
    std::set<std::string> settled = {};        // attempts that it had reported the end of
    bool environment_known = true;             // or nobody asks
    std::vector<tuner::ReportedTag> tags = {};
    Loop::TimerId idle_timer = Loop::kNoTimer;

    [[nodiscard]] int size() const { return first.pool->size; }
};

struct Pools::Trial {
    Trial(MetricLines metric_lines, AttemptFiles folder)
        : lines(std::move(metric_lines)), files(std::move(folder)) {}

    std::uint64_t serial = 0;
    std::uint64_t pool = 0;
    tuner::Lease lease;
    std::string finish_request_id;
    MetricLines lines;
    AttemptFiles files;  // made with the first line of its log
    std::filesystem::path checkpoint_dir;
    IntentRecord intent;
    bool has_begun = false;
    bool is_in_pool = true;
    bool has_timed_out = false;
    bool has_log = false;
    std::int64_t log_bytes = 0;
    std::int64_t uploaded_bytes = 0;
    std::int64_t since_ms = 0;  // of the loop
    Loop::TimerId grace_timer = Loop::kNoTimer;
    Loop::TimerId timeout_timer = Loop::kNoTimer;
    Loop::TimerId upload_timer = Loop::kNoTimer;
    bool finish_done = false;
    bool logs_done = true;

    [[nodiscard]] tuner::AttemptId id() const { return lease.id(); }
};

}  // namespace tune::worker
