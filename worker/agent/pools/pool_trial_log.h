#pragma once
// The log of a trial in a pool: the lines of it that the pool hands over, in files as those of a
// single attempt, uploaded while they grow.

#include <cstdint>
#include <string>

#include "worker/agent/loop.h"
#include "worker/agent/server/log_upload.h"

namespace tune::worker {

/// Loop thread only.
class PoolTrialLog {
public:
    /// The parts outlive it. `job`: of an upload while it runs; its folder is made with the first
    /// text. `period_ms`: between two uploads.
    PoolTrialLog(Loop& loop, LogUpload& upload, LogJob job, int period_ms);
    ~PoolTrialLog() { loop_.cancel(timer_); }
    PoolTrialLog(const PoolTrialLog&) = delete;
    PoolTrialLog& operator=(const PoolTrialLog&) = delete;

    /// Whole lines, of stderr or of stdout. Beyond 64 MiB they are left out.
    void add(const std::string& text, bool is_error);
    /// An upload is over; what has come meanwhile goes with the next.
    void on_uploaded() { schedule(); }
    /// The trial has ended: no more uploads but that of finish().
    void stop();
    /// Uploads it whole. `keep_attempt`: as LogJob's. False: there is none.
    [[nodiscard]] bool finish(bool keep_attempt);

    /// There was text.
    [[nodiscard]] bool exists() const { return bytes_ > 0; }
    /// As tail_of; empty if there was no text.
    [[nodiscard]] std::string tail(bool is_error) const;

private:
    void schedule();

    Loop& loop_;
    LogUpload& upload_;
    const LogJob job_;
    const int period_ms_;
    std::int64_t bytes_ = 0;
    std::int64_t uploaded_bytes_ = 0;
    bool is_stopped_ = false;
    Loop::TimerId timer_ = Loop::kNoTimer;
};

}  // namespace tune::worker
