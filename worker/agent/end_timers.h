#pragma once
// When an agent ends by itself: it has had no trial for a while, or its time is over.

#include <cstdint>
#include <functional>

#include "worker/agent/loop.h"
#include "worker/agent/time_limit.h"

namespace tune::worker {

/// What the times depend on, as it is now.
struct AgentLoad {
    bool is_idle = false;          ///< nothing runs, waits or has to be reported
    bool is_draining = false;      ///< no more trials are taken
    bool is_stopping = false;      ///< trials end, or the agent leaves them
    std::int64_t expected_ms = 0;  ///< TrialDurations::expected_ms
    std::int64_t grace_ms = 0;     ///< the longest of the trials that run
};

struct EndEvents {
    std::function<AgentLoad()> load;
    std::function<void()> idle;
    /// What is left is shorter than a trial takes.
    std::function<void()> last_lease;
    /// Those that run have to stop.
    std::function<void()> limit;
};

/// Loop thread only, or before it runs.
class EndTimers {
public:
    /// The loop outlives it. 0 ms: never.
    EndTimers(Loop& loop, std::int64_t idle_exit_ms, std::int64_t time_limit_ms, EndEvents events);

    /// The time limit counts from now on.
    void begin() { limit_.begin_ms = loop_.now_ms(); }
    /// The load may have changed.
    void update();

private:
    void arm_idle(const AgentLoad& load);
    void arm_limit(const AgentLoad& load);
    void check_limit();

    Loop& loop_;
    const std::int64_t idle_exit_ms_;
    TimeLimit limit_;
    const EndEvents events_;
    Loop::TimerId idle_timer_ = Loop::kNoTimer;
    Loop::TimerId limit_timer_ = Loop::kNoTimer;
};

}  // namespace tune::worker
