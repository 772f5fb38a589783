#pragma once
// The lines from an agent to a pool, through the pipe that is the program's standard input. The
// agent never waits for the program to read: what does not fit is kept and offered again.

#include <string>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "worker/agent/loop.h"

namespace tune::worker {

/// Loop thread only.
class PoolInput {
public:
    /// The loop outlives it.
    explicit PoolInput(Loop& loop) : loop_(loop) {}
    ~PoolInput() { loop_.cancel(timer_); }
    PoolInput(const PoolInput&) = delete;
    PoolInput& operator=(const PoolInput&) = delete;

    /// Makes the pipe; its reading end, which is the program's. Before, lines are kept. Errors:
    /// kResourceExhausted.
    [[nodiscard]] Result<UniqueFd> open();
    /// Lines are kept until release().
    void hold() { is_held_ = true; }
    void release();

    void send(const std::string& lines);
    /// With the next line that is sent no more follow: the program then reads the end of its input.
    void finish() { is_last_ = true; }

private:
    void flush();

    Loop& loop_;
    UniqueFd pipe_;
    std::string unsent_;
    Loop::TimerId timer_ = Loop::kNoTimer;
    bool is_held_ = false;
    bool is_last_ = false;
};

}  // namespace tune::worker
