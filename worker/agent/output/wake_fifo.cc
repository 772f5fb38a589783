#include "worker/agent/output/wake_fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tune::worker {

Result<void> WakeFifo::open(Loop& loop) {
    const auto failed = [this](const std::string& what) {
        return Error{Code::kInternalError,
                     "cannot " + what + " '" + path_.string() + "': " + std::strerror(errno)};
    };
    if (mkfifo(path_.c_str(), 0600) != 0 && errno != EEXIST) return failed("make");
    // For writing too: so it never ends, however many supervisors come and go.
    fifo_.reset(::open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!fifo_) return failed("open");
    return loop.watch(fifo_.get(), [this] { on_readable(); });
}

void WakeFifo::on_readable() const {
    std::uint64_t records[8192];  // as much as a pipe holds
    const ssize_t count = read(fifo_.get(), records, sizeof records);
    if (count <= 0) return;
    const std::size_t woken = static_cast<std::size_t>(count) / sizeof records[0];
    if (woken >= std::size(records) / 2) return events_.overflowed();  // it may have been full
    std::sort(records, records + woken);
    events_.woken({records, std::unique(records, records + woken)});
}

}  // namespace tune::worker
