#include "worker/agent/pools/pool_trial_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "base/system/unique_fd.h"
#include "worker/agent/output/output_pump.h"

namespace tune::worker {
namespace {

constexpr std::int64_t kTrialLogBytesMax = kLogTailBytes;

}  // namespace

PoolTrialLog::PoolTrialLog(Loop& loop, LogUpload& upload, LogJob job, int period_ms)
    : loop_(loop), upload_(upload), job_(std::move(job)), period_ms_(period_ms) {}

void PoolTrialLog::add(const std::string& text, bool is_error) {
    std::error_code error;
    if (bytes_ == 0) std::filesystem::create_directories(job_.files.directory(), error);
    bytes_ += static_cast<std::int64_t>(text.size());
    if (bytes_ > kTrialLogBytesMax) return;
    const UniqueFd file(::open(job_.files.path(is_error ? kStderrFile : kStdoutFile).c_str(),
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    // Text that cannot be stored (full disk) has no other place to go.
    if (!file || write(file.get(), text.data(), text.size()) < 0) return;
    schedule();
}

void PoolTrialLog::schedule() {
    if (is_stopped_ || timer_ != Loop::kNoTimer || bytes_ == uploaded_bytes_) return;
    const int delay = uploaded_bytes_ > 0 ? period_ms_ : kFirstUpload_ms;
    timer_ = loop_.at(loop_.now_ms() + delay, [this] {
        timer_ = Loop::kNoTimer;
        uploaded_bytes_ = bytes_;
        upload_.submit(job_);
    });
}

void PoolTrialLog::stop() {
    is_stopped_ = true;
    loop_.cancel(timer_);
}

bool PoolTrialLog::finish(bool keep_attempt) {
    stop();
    if (!exists()) return false;
    LogJob job = job_;
    job.final = true;
    job.keep_attempt = keep_attempt;
    upload_.submit(std::move(job));
    return true;
}

std::string PoolTrialLog::tail(bool is_error) const {
    return exists() ? tail_of(job_.files.path(is_error ? kStderrFile : kStdoutFile)) : "";
}

}  // namespace tune::worker
