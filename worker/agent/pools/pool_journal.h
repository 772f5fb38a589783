#pragma once
// What an agent notes of a pool on the disk, so that the next one reads the pool's output as it
// did: the same stretches under the same times give the same metrics, of which the server keeps one
// of equal ones.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "base/system/unique_fd.h"

namespace tune::worker {

/// Output up to `end` was read at this time.
struct ReadStretch {
    std::int64_t end = 0;
    std::int64_t timestamp_ms = 0;
};

/// Lines that are added to a file; what cannot be written (full disk) is left out, and what it was
/// about may be reported twice after a kill. Not thread-safe.
class PoolJournal {
public:
    /// Makes the file with the first line, in a folder that exists.
    explicit PoolJournal(std::filesystem::path path) : path_(std::move(path)) {}

    /// Before anything of the stretch is reported. A system call.
    void note_read(const ReadStretch& stretch);
    /// The attempt's end is with the server.
    void note_settled(std::string_view attempt);

    struct Notes {
        std::deque<ReadStretch> read;   ///< in order
        std::set<std::string> settled;  ///< attempts
    };
    [[nodiscard]] Notes read() const;

private:
    void add(std::string line);

    std::filesystem::path path_;
    UniqueFd file_;
};

}  // namespace tune::worker
