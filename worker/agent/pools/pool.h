#pragma once
// A pool and a trial in it, in memory.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/devices/devices.h"
#include "worker/agent/output/metric_lines.h"
#include "worker/agent/pools/pool_input.h"
#include "worker/agent/pools/pool_output.h"
#include "worker/agent/pools/pool_trial_log.h"
#include "worker/agent/supervisor/process_tree.h"

namespace tune::worker {

// In the agent's folder.
constexpr const char* kPoolsFolder = "pools";
constexpr const char* kTrialsFolder = "pool-trials";

/// By this variable processes of a pool are found whose supervisor was killed.
constexpr const char* kPoolVariable = "TUNE_POOL";

struct PoolEvents {
    ProcessTreeEvents processes;
    PoolOutputEvents output;
};

struct Pool {
    /// `folder`: files of a supervisor.
    Pool(Loop& loop, std::uint64_t number, const AttemptFiles& folder, PoolEvents events)
        : serial(number),
          files(folder),
          processes(loop, folder, std::move(events.processes)),
          input(loop),
          output(folder, std::move(events.output)) {}

    const std::uint64_t serial;
    const AttemptFiles files;
    tuner::Lease first;  // that it was opened for: command, limits, name
    Assignment assignment;
    ProcessTree processes;
    std::optional<ExitRecord> exit;
    IntentRecord intent;  // why this agent ended it, if it did
    PoolInput input;
    PoolOutput output;

    std::set<std::uint64_t> trials;  // that have not ended
    bool is_open = true;             // takes more
    bool is_alive = true;
    bool has_begun_any = false;
    bool is_adopted = false;             // of an earlier agent, and ending
    std::set<std::string> settled = {};  // attempts that it had reported the end of
    std::vector<tuner::ReportedTag> tags = {};
    Loop::TimerId idle_timer = Loop::kNoTimer;

    [[nodiscard]] int size() const { return first.pool->size; }
    [[nodiscard]] int room() const {
        return is_open ? size() - static_cast<int>(trials.size()) : 0;
    }
};

struct PoolTrial {
    PoolTrial(std::uint64_t pool_serial, tuner::Lease leased, MetricLines metric_lines,
              AttemptFiles folder, std::unique_ptr<PoolTrialLog> its_log)
        : pool(pool_serial),
          lease(std::move(leased)),
          lines(std::move(metric_lines)),
          files(std::move(folder)),
          log(std::move(its_log)) {}

    std::uint64_t serial = 0;
    std::uint64_t pool;
    tuner::Lease lease;
    std::string finish_request_id;
    MetricLines lines;
    AttemptFiles files;  // made with the first line of its log
    std::unique_ptr<PoolTrialLog> log;
    std::filesystem::path checkpoint_dir;
    IntentRecord intent;
    bool has_begun = false;
    bool is_in_pool = true;
    bool has_timed_out = false;
    std::int64_t since_ms = 0;  // of the loop
    Loop::TimerId grace_timer = Loop::kNoTimer;
    Loop::TimerId timeout_timer = Loop::kNoTimer;
    bool finish_done = false;
    bool logs_done = true;

    [[nodiscard]] tuner::AttemptId id() const { return lease.id(); }
    [[nodiscard]] bool is_settled() const { return !is_in_pool && finish_done && logs_done; }
};

}  // namespace tune::worker
