#pragma once
// Many requests at once: what makes a fast reader of an object store out of one connection that is
// limited to 50 to 90 MB/s and 100 ms to the first byte.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Threads that read ranges: as many as there were jobs at once, up to a limit; those that only
/// short requests needed end when none came for a while. Thread-safe.
class RangeReader {
public:
    /// Bytes of one request for part of a file; there are as many such buffers as connections.
    static constexpr std::size_t kRangeBytes = std::size_t{4} << 20;

    /// `connections`: long requests at once.
    explicit RangeReader(int connections);
    /// Waits for the requests under way; what waits its turn ends with kCancelled.
    ~RangeReader();
    RangeReader(const RangeReader&) = delete;
    RangeReader& operator=(const RangeReader&) = delete;

    using Job = std::function<Result<void>()>;
    /// Long requests for whole files, and short ones that somebody waits for, which cost latency
    /// rather than bandwidth: four times as many of them run at once, beside the long ones.
    enum class Kind { kFile, kSample };

    /// Runs the jobs and waits for them. After an error the rest of these jobs is left out. Errors:
    /// the first one.
    [[nodiscard]] Result<void> run(std::vector<Job> jobs, Kind kind = Kind::kFile);

    /// `bytes` bytes of `object` from `offset` on become the file `fd`. Errors: those of read();
    /// kResourceExhausted when the disk is full.
    [[nodiscard]] Result<void> to_file(const ObjectSource& source, const ObjectInfo& object,
                                       std::uint64_t offset, std::uint64_t bytes, int fd);
    [[nodiscard]] Result<void> to_memory(const ObjectSource& source, const ObjectInfo& object,
                                         std::uint64_t offset, std::span<std::byte> bytes);

    /// Ends what waits its turn, now and from here on.
    void stop();

private:
    struct Group {
        std::size_t left = 0;
        std::optional<Error> error = {};
        std::condition_variable done = {};
    };
    struct Task {
        Job job;
        Group* group;
    };

    using Tasks = std::deque<Task>;

    void start_threads();
    void work();
    [[nodiscard]] std::optional<Kind> next_kind() const;
    [[nodiscard]] Tasks& of(Kind kind) { return kind == Kind::kFile ? files_ : samples_; }

    std::mutex mutex_;
    std::condition_variable waiting_;
    Tasks files_;
    Tasks samples_;
    const std::size_t files_at_once_;
    std::size_t files_running_ = 0;
    bool is_stopping_ = false;
    std::size_t idle_ = 0;
    std::list<std::thread> threads_;
    std::vector<std::list<std::thread>::iterator> ended_;  // to be joined
};

}  // namespace tune::loader
