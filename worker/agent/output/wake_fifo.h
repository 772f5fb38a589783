#pragma once
// The FIFO through which the supervisors of an agent announce output: each writes the serial of its
// attempt or pool. It outlives the agent, so that the next one hears of the same trials.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "worker/agent/loop.h"

namespace tune::worker {

struct WakeEvents {
    /// There is output of these; each is named once.
    std::function<void(std::span<const std::uint64_t> serials)> woken;
    /// So many announcements waited that some may have been lost: there may be output of any.
    std::function<void()> overflowed;
};

/// Loop thread only.
class WakeFifo {
public:
    WakeFifo(std::filesystem::path path, WakeEvents events)
        : path_(std::move(path)), events_(std::move(events)) {}

    /// Makes the FIFO if it is not there, and listens. The loop keeps a reference to this. Errors:
    /// kInternalError, kResourceExhausted.
    [[nodiscard]] Result<void> open(Loop& loop);

private:
    void on_readable() const;

    const std::filesystem::path path_;
    const WakeEvents events_;
    UniqueFd fifo_;
};

}  // namespace tune::worker
