#pragma once
// Who fills batches: the consumer's own thread, or threads ahead of it. Internal to the loader.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/result.h"
#include "loader/batch_decoder.h"
#include "loader/batch_slot.h"
#include "loader/batch_supply.h"
#include "loader/epoch_plan.h"

namespace tune::loader {

/// What readers add up for Dataset::stage_stats().
struct StageClock {
    std::atomic<std::int64_t> samples = 0;
    std::atomic<std::int64_t> first_ns = 0;
    std::atomic<std::int64_t> last_ns = 0;
    std::atomic<std::int64_t> fetch_wait_ns = 0;
    std::atomic<std::int64_t> decode_wait_ns = 0;
    std::atomic<std::int64_t> fill_ns = 0;
};

/// Of the steady clock.
[[nodiscard]] std::int64_t now_ns();

/// One consumer thread calls seek and next.
class BatchReader {
public:
    virtual ~BatchReader() = default;

    /// What next() gives from here on.
    virtual void seek(Position position) = 0;

    /// The next batch, or nullptr at the end of an epoch (the next epoch follows). After an error
    /// the reader must be told where to go on by seek.
    [[nodiscard]] virtual Result<std::shared_ptr<BatchSlot>> next() = 0;

    /// Waits until next() would return at once, at most for `time`. False: it would still wait.
    [[nodiscard]] virtual bool wait(std::chrono::milliseconds time) = 0;
};

/// Does the work in next().
class InlineReader final : public BatchReader {
public:
    /// `supply`: nullptr for data that is all on this machine.
    InlineReader(std::shared_ptr<SlotPool> pool, const BatchDecoder& decoder, Planner planner,
                 StageClock& clock, BatchSupply* supply = nullptr);
    void seek(Position position) override;
    [[nodiscard]] Result<std::shared_ptr<BatchSlot>> next() override;
    /// Always true: the work itself is next()'s.
    [[nodiscard]] bool wait(std::chrono::milliseconds /*time*/) override { return true; }

private:
    std::shared_ptr<SlotPool> pool_;
    const BatchDecoder& decoder_;
    Planner planner_;
    StageClock& clock_;
    std::vector<std::int64_t> scratch_;
    BatchSupply* const supply_;
    std::uint64_t supply_base_ = 0;  // of plan_
    Position position_;
    std::shared_ptr<const EpochPlan> plan_;
    std::size_t next_batch_ = 0;
};

/// `thread_count` threads decode batches in the order of the plan into free slots; one more thread
/// works out the order of the next epoch meanwhile. A batch's number in the order is fixed before a
/// thread begins it, so the order never depends on which thread is faster.
class ThreadedReader final : public BatchReader {
public:
    /// `supply`: nullptr for data that is all on this machine. Otherwise batches are decoded as
    /// their bytes come, whichever comes first; next() still gives them in order.
    ThreadedReader(std::shared_ptr<SlotPool> pool, const BatchDecoder& decoder, Planner planner,
                   int thread_count, StageClock& clock, BatchSupply* supply = nullptr);
    ~ThreadedReader() override;
    void seek(Position position) override;
    [[nodiscard]] Result<std::shared_ptr<BatchSlot>> next() override;
    [[nodiscard]] bool wait(std::chrono::milliseconds time) override;

private:
    /// A batch that was begun, the end of an epoch, or an error in their place.
    struct Ticket {
        BatchSlot* slot = nullptr;
        std::shared_ptr<const EpochPlan> plan = {};
        std::shared_ptr<const EpochPlan> next_plan = {};  // when it is there already
        std::size_t batch = 0;
        bool is_begun = false;
        bool is_done = false;
        std::optional<Error> error = {};
        std::uint64_t supply_batch = 0;
    };
    using TicketPtr = std::shared_ptr<Ticket>;

    void decode_batches();
    void plan_epochs();
    [[nodiscard]] bool can_advance() const;
    [[nodiscard]] bool is_ready() const;
    [[nodiscard]] bool lacks_slot() const;
    [[nodiscard]] bool add_slot();
    [[nodiscard]] TicketPtr advance();
    [[nodiscard]] TicketPtr supplied() const;
    [[nodiscard]] Result<void> decode(const Ticket& ticket,
                                      std::vector<std::int64_t>& scratch) const;
    void append_done(TicketPtr ticket);

    std::shared_ptr<SlotPool> pool_;
    const BatchDecoder& decoder_;
    Planner planner_;
    StageClock& clock_;
    BatchSupply* const supply_;

    // All below is guarded by pool_->mutex.
    std::condition_variable done_;      // a ticket was done, or can never be
    std::condition_variable planning_;  // a plan is wanted
    bool is_stopping_ = false;
    std::deque<TicketPtr> tickets_;  // in the order of the data; the consumer takes the front
    std::size_t in_progress_ = 0;
    std::shared_ptr<const EpochPlan> plan_;
    std::uint64_t supply_base_ = 0;  // of plan_
    std::size_t next_batch_ = 0;
    bool plan_is_over_ = true;  // the end of plan_ was put among the tickets
    bool has_failed_ = false;   // nothing more until seek
    std::optional<Position> wanted_plan_;
    std::optional<Result<std::shared_ptr<const EpochPlan>>> upcoming_plan_;
    std::uint64_t upcoming_base_ = 0;
    std::uint64_t generation_ = 0;  // counts seeks: what was begun before one is thrown away

    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
