#pragma once
// Many requests at once: what makes a fast reader of an object store out of one connection that is
// limited to 50 to 90 MB/s and 100 ms to the first byte.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/result.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Threads that read ranges. Thread-safe.
class RangeReader {
public:
    /// Bytes of one request; each thread has one such buffer.
    static constexpr std::size_t kRangeBytes = std::size_t{4} << 20;

    explicit RangeReader(int connections);
    /// Waits for the requests under way; what waits its turn ends with kCancelled.
    ~RangeReader();
    RangeReader(const RangeReader&) = delete;
    RangeReader& operator=(const RangeReader&) = delete;

    using Job = std::function<Result<void>()>;
    enum class Turn { kUsual, kFirst };

    /// Runs the jobs, those of kFirst before all others, and waits for them. After an error the
    /// rest of these jobs is left out. Errors: the first one.
    [[nodiscard]] Result<void> run(std::vector<Job> jobs, Turn turn = Turn::kUsual);

    /// The first `bytes` of `object` into the file `fd`. Errors: those of read();
    /// kResourceExhausted when the disk is full.
    [[nodiscard]] Result<void> to_file(const ObjectSource& source, const ObjectInfo& object,
                                       int fd);
    [[nodiscard]] Result<void> to_memory(const ObjectSource& source, const ObjectInfo& object,
                                         std::span<std::byte> bytes);

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

    void work();

    std::mutex mutex_;
    std::condition_variable waiting_;
    std::deque<Task> tasks_;
    bool is_stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
