#pragma once
// The lines of a pool as its supervisor stores them. What is read when is noted beside it, so that
// the next agent reads the same stretches under the same times (pool_journal.h).

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/system/unique_fd.h"
#include "worker/agent/attempts/attempt_files.h"
#include "worker/agent/pools/pool_journal.h"

namespace tune::worker {

struct PoolOutputEvents {
    /// A whole line, without its end, and when it was read.
    std::function<void(std::string_view line, std::int64_t read_ms)> line;
    /// More lines waited than the supervisor keeps, and some before those that follow are gone.
    std::function<void()> lost;
};

/// Not thread-safe.
class PoolOutput {
public:
    /// `files`: of the pool's supervisor.
    PoolOutput(const AttemptFiles& files, PoolOutputEvents events);

    /// From now on what an earlier agent read is read as it did. The attempts whose end that agent
    /// had settled.
    [[nodiscard]] std::set<std::string> resume();
    /// Reads what is new, at most a chunk. False: there was nothing.
    [[nodiscard]] bool read(std::int64_t now_ms);
    /// The attempt's end is with the server.
    void note_settled(std::string_view attempt) { journal_.note_settled(attempt); }

private:
    void take(std::string_view bytes, std::int64_t read_ms);

    const std::filesystem::path path_;
    const PoolOutputEvents events_;
    PoolJournal journal_;
    UniqueFd file_;
    std::int64_t offset_ = 0;
    std::string partial_;                  // read, but not yet a whole line
    std::deque<ReadStretch> read_before_;  // by an earlier agent, and not yet again
};

}  // namespace tune::worker
