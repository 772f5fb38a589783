#pragma once
// The writer: a bounded queue of commands, and the one thread that applies them in groups.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "tracker/sqlite/connection.h"
#include "tracker/store/reads/read_pool.h"
#include "tracker/store/stats.h"
#include "tracker/store/store.h"
#include "tracker/store/writer/checkpointer.h"
#include "tracker/store/writer/observer_thread.h"
#include "tracker/store/writer/write_context.h"

namespace tune::tracker {

/// Bytes of commands in one transaction: bounds how long the first of them waits.
inline constexpr std::size_t kGroupBytesMax = 4u << 20;
/// So many commands in one transaction waited for each other: readers give way.
inline constexpr std::size_t kCrowdCommands = 8;
/// Pages of the log (4 kB each) not yet copied that start a checkpoint beside the writer. Each
/// costs two syncs that commits wait behind, and a page that changes often is copied once a time.
inline constexpr int kCheckpointPages = 2'000;
/// A log of this length begins anew, once a checkpoint beside the writer has copied most of it and
/// nobody reads: the writer copies the rest.
inline constexpr int kLogPagesWanted = 4'000;
/// From here on readers are held back for it, for at most kReadersPause.
inline constexpr int kLogPagesMax = 16'000;
inline constexpr std::chrono::milliseconds kReadersPause{5};

/// What a command holds in memory, roughly; decides how many may wait.
[[nodiscard]] std::size_t approximate_bytes(const Command& command);

class CommitThread {
public:
    /// What is given by reference outlives this. `position`: that of the last commit.
    CommitThread(WriteContext& context, ObserverThread& observers, Checkpointer& checkpointer,
                 ReadPool& readers, std::int64_t position);
    ~CommitThread() { stop(); }
    CommitThread(const CommitThread&) = delete;
    CommitThread& operator=(const CommitThread&) = delete;

    /// As Store::submit.
    void submit(Command command, Store::Completion completion);
    void submit(std::vector<Submission> submissions);
    /// Applies what is queued, then ends the thread. Idempotent.
    void stop();

    /// As Store::set_outbox.
    void set_outbox(Outbox* outbox) { outbox_ = outbox; }

    [[nodiscard]] std::int64_t position() const { return position_.load(); }
    /// As Store::permission_epoch.
    [[nodiscard]] std::uint64_t permission_epoch() const { return permission_epoch_.load(); }
    /// Fills in what concerns commands and commits.
    void describe(StoreStatistics& statistics);
    [[nodiscard]] bool is_this_thread() const {
        return std::this_thread::get_id() == thread_.get_id();
    }

private:
    struct Pending {
        Command command;
        Store::Completion completion;
        std::size_t bytes = 0;
    };
    using Outcomes = std::vector<Result<Outcome>>;

    void run();
    void enqueue(std::span<Pending> pending);
    /// Queues them, from the first on, while there is room; how many. REQUIRES: mutex_ is held.
    [[nodiscard]] std::size_t append(std::span<Pending> pending);
    [[nodiscard]] std::vector<Pending> take_group();
    void commit_group(std::span<Pending> group);
    /// One transaction. Errors: SQL; nothing was changed then.
    [[nodiscard]] Result<Outcomes> try_group(std::span<Pending> group);
    [[nodiscard]] Result<Outcomes> apply_group(std::span<Pending> group);
    [[nodiscard]] Result<void> put_outgoing();
    [[nodiscard]] Result<void> advance_position();
    void answer(std::span<Pending> group, Outcomes outcomes);
    void care_for_log();
    void restart_log();

    WriteContext& context_;
    ObserverThread& observers_;
    Checkpointer& checkpointer_;
    ReadPool& readers_;
    int log_pages_ = 0;  // after the last transaction; writer thread only
    std::atomic<std::int64_t> position_;
    std::atomic<std::uint64_t> permission_epoch_{1};
    bool permissions_changed_ = false;  // by what was committed and is not answered yet
    Outbox* outbox_ = nullptr;
    bool has_outgoing_ = false;  // the outbox was asked in this transaction; writer thread only
    Histogram group_commands_{kGroupBounds};
    Histogram commit_seconds_{kSecondsBounds};
    std::atomic<std::uint64_t> rejected_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Pending> queue_;     // guarded by mutex_
    std::size_t queued_bytes_ = 0;  // guarded by mutex_
    bool is_stopping_ = false;      // guarded by mutex_
    std::thread thread_;
};

}  // namespace tune::tracker
