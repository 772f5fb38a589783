// Two readers of the same order. InlineReader decodes in next(). ThreadedReader hands out tickets
// in the order of the plan under one mutex; a thread decodes the batch of its ticket without the
// lock, and next() waits for the first ticket only. So the consumer sees the plan's order whichever
// thread is faster. A slot is taken when its ticket is made, which bounds the memory; seek() bumps
// the generation, and threads give back what belongs to an older one.

#include "loader/batch_reader.h"

namespace tune::loader {
namespace {

Error no_slot(std::size_t slot_count) {
    return Error{Code::kResourceExhausted,
                 "all " + std::to_string(slot_count) +
                     " batches that may exist at once are held by the caller; reset one, or raise "
                     "predownload"};
}

}  // namespace

std::int64_t now_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

InlineReader::InlineReader(std::shared_ptr<SlotPool> pool, const BatchDecoder& decoder,
                           Planner planner, StageClock& clock, BatchSupply* supply)
    : pool_(std::move(pool)),
      decoder_(decoder),
      planner_(std::move(planner)),
      clock_(clock),
      supply_(supply) {}

void InlineReader::seek(Position position) {
    if (supply_) supply_->forget();
    position_ = position;
    plan_.reset();
    next_batch_ = 0;
}

Result<std::shared_ptr<BatchSlot>> InlineReader::next() {
    if (!plan_) {
        TUNE_TRY(plan, planner_(position_));
        plan_ = std::move(plan);
        next_batch_ = 0;
        if (supply_) supply_base_ = supply_->follow(plan_);
    }
    if (next_batch_ == plan_->batch_count()) {
        position_ = {plan_->epoch() + 1, 0};
        plan_.reset();
        return std::shared_ptr<BatchSlot>();
    }
    BatchSlot* slot = nullptr;
    {
        const std::lock_guard lock(pool_->mutex);
        if (pool_->has_free() || pool_->add_slot()) slot = pool_->take();
    }
    if (!slot) return no_slot(pool_->slot_count());
    std::shared_ptr<BatchSlot> lent = pool_->lend(slot);
    const std::uint64_t batch = supply_base_ + next_batch_;
    if (supply_) {
        supply_->expect(batch);
        const std::int64_t begin = now_ns();
        supply_->wait(batch);
        clock_.fetch_wait_ns += now_ns() - begin;
    }
    slot->epoch = plan_->epoch();
    const std::int64_t begin = now_ns();
    const Result<void> filled = decoder_.fill(plan_->batch(next_batch_, scratch_), *slot);
    const std::int64_t taken = now_ns() - begin;
    clock_.fill_ns += taken;
    clock_.decode_wait_ns += taken;
    if (supply_) supply_->end(batch);
    TUNE_TRY_VOID(filled);
    ++next_batch_;
    return lent;
}

ThreadedReader::ThreadedReader(std::shared_ptr<SlotPool> pool, const BatchDecoder& decoder,
                               Planner planner, int thread_count, StageClock& clock,
                               BatchSupply* supply)
    : pool_(std::move(pool)),
      decoder_(decoder),
      planner_(std::move(planner)),
      clock_(clock),
      supply_(supply) {
    if (supply_)
        supply_->set_listener([this] {
            const std::lock_guard lock(pool_->mutex);
            pool_->work.notify_all();
        });
    threads_.emplace_back([this] { plan_epochs(); });
    for (int i = 0; i < thread_count; ++i) threads_.emplace_back([this] { decode_batches(); });
}

ThreadedReader::~ThreadedReader() {
    if (supply_) supply_->set_listener({});
    {
        const std::lock_guard lock(pool_->mutex);
        is_stopping_ = true;
    }
    pool_->work.notify_all();
    planning_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    // Batches that nobody took go back, for the sake of Batches that still hold the pool.
    const std::lock_guard lock(pool_->mutex);
    for (const TicketPtr& ticket : tickets_) {
        if (ticket->slot) pool_->put_back(ticket->slot);
        if (supply_ && ticket->slot && !ticket->is_begun) supply_->end(ticket->supply_batch);
    }
}

void ThreadedReader::seek(Position position) {
    {
        const std::lock_guard lock(pool_->mutex);
        ++generation_;
        for (const TicketPtr& ticket : tickets_) {
            if (!ticket->slot || (ticket->is_begun && !ticket->is_done)) continue;
            pool_->put_back(ticket->slot);
            if (supply_ && !ticket->is_begun) supply_->end(ticket->supply_batch);
        }
        tickets_.clear();  // what is still being decoded is put back by its thread
        if (supply_) supply_->forget();
        plan_.reset();
        upcoming_plan_.reset();
        plan_is_over_ = true;
        has_failed_ = false;
        wanted_plan_ = position;
    }
    planning_.notify_one();
}

Result<std::shared_ptr<BatchSlot>> ThreadedReader::next() {
    std::unique_lock lock(pool_->mutex);
    while (!is_ready()) {
        if (lacks_slot() && !add_slot()) return no_slot(pool_->slot_count());
        const bool waits_for_bytes =
            supply_ && !tickets_.empty() && tickets_.front()->slot && !tickets_.front()->is_begun;
        const std::int64_t begin = now_ns();
        done_.wait(lock);
        (waits_for_bytes ? clock_.fetch_wait_ns : clock_.decode_wait_ns) += now_ns() - begin;
    }
    const TicketPtr ticket = std::move(tickets_.front());
    tickets_.pop_front();
    if (ticket->error) {
        if (ticket->slot) pool_->put_back(ticket->slot);
        return *std::move(ticket->error);
    }
    lock.unlock();
    if (!ticket->slot) return std::shared_ptr<BatchSlot>();
    return pool_->lend(ticket->slot);
}

bool ThreadedReader::wait(std::chrono::milliseconds time) {
    std::unique_lock lock(pool_->mutex);
    if (lacks_slot() && !add_slot()) return true;
    return done_.wait_for(lock, time, [this] { return is_ready(); });
}

void ThreadedReader::append_done(TicketPtr ticket) {
    ticket->is_done = true;
    tickets_.push_back(std::move(ticket));
    done_.notify_one();
}

/// Whether a call of advance() would do something.
bool ThreadedReader::can_advance() const {
    if (supplied()) return true;
    if (has_failed_) return false;
    if (!plan_is_over_) return next_batch_ == plan_->batch_count() || pool_->has_free();
    return upcoming_plan_.has_value();
}

/// Whether the next ticket is done.
bool ThreadedReader::is_ready() const {
    return !tickets_.empty() && tickets_.front()->is_done;
}

/// Whether the next batch waits for a slot that only the consumer can give back.
bool ThreadedReader::lacks_slot() const {
    return tickets_.empty() && in_progress_ == 0 && !has_failed_ && !plan_is_over_ &&
           next_batch_ != plan_->batch_count() && !pool_->has_free();
}

/// Gives the decoding threads one more slot, if the pool grows.
bool ThreadedReader::add_slot() {
    if (!pool_->add_slot()) return false;
    pool_->work.notify_one();
    return true;
}

/// With a supply: the first batch that waited for its bytes and has them now.
ThreadedReader::TicketPtr ThreadedReader::supplied() const {
    if (!supply_) return nullptr;
    for (const TicketPtr& ticket : tickets_)
        if (ticket->slot && !ticket->is_begun && supply_->is_ready(ticket->supply_batch))
            return ticket;
    return nullptr;
}

/// One step along the order: begins a batch (and returns its ticket), or ends a plan, or takes up
/// the next one. REQUIRES: can_advance().
ThreadedReader::TicketPtr ThreadedReader::advance() {
    if (TicketPtr ticket = supplied()) {
        ticket->is_begun = true;
        return ticket;
    }
    if (plan_is_over_) {
        Result<std::shared_ptr<const EpochPlan>> upcoming = *std::move(upcoming_plan_);
        upcoming_plan_.reset();
        if (!upcoming) {
            has_failed_ = true;
            auto ticket = std::make_shared<Ticket>();
            ticket->error = std::move(upcoming).error();
            append_done(std::move(ticket));
            return nullptr;
        }
        plan_ = *std::move(upcoming);
        supply_base_ = upcoming_base_;
        plan_is_over_ = false;
        next_batch_ = 0;
        wanted_plan_ = Position{plan_->epoch() + 1, 0};
        planning_.notify_one();
        return nullptr;
    }
    if (next_batch_ == plan_->batch_count()) {
        plan_is_over_ = true;
        append_done(std::make_shared<Ticket>());
        return nullptr;
    }
    auto ticket = std::make_shared<Ticket>();
    ticket->slot = pool_->take();
    ticket->plan = plan_;
    if (upcoming_plan_ && *upcoming_plan_) ticket->next_plan = **upcoming_plan_;
    ticket->batch = next_batch_++;
    tickets_.push_back(ticket);
    if (supply_) {
        ticket->supply_batch = supply_base_ + ticket->batch;
        supply_->expect(ticket->supply_batch);
        if (!supply_->is_ready(ticket->supply_batch)) return nullptr;
    }
    ticket->is_begun = true;
    return ticket;
}

Result<void> ThreadedReader::decode(const Ticket& ticket,
                                    std::vector<std::int64_t>& scratch) const {
    EpochPlan::Rest next_epoch;
    if (ticket.next_plan && ticket.next_plan->batch_count() > 0)
        next_epoch = ticket.next_plan->from(0);
    decoder_.look_ahead(ticket.plan->from(ticket.batch), next_epoch);
    ticket.slot->epoch = ticket.plan->epoch();
    const std::int64_t begin = now_ns();
    Result<void> filled = decoder_.fill(ticket.plan->batch(ticket.batch, scratch), *ticket.slot);
    clock_.fill_ns += now_ns() - begin;
    if (supply_) supply_->end(ticket.supply_batch);
    return filled;
}

void ThreadedReader::decode_batches() {
    std::vector<std::int64_t> scratch;
    std::unique_lock lock(pool_->mutex);
    while (true) {
        pool_->work.wait(lock, [this] { return is_stopping_ || can_advance(); });
        if (is_stopping_) return;
        const TicketPtr ticket = advance();
        if (!ticket) continue;
        const std::uint64_t generation = generation_;
        ++in_progress_;
        if (can_advance()) pool_->work.notify_one();
        lock.unlock();
        Result<void> filled = decode(*ticket, scratch);
        lock.lock();
        --in_progress_;
        if (generation != generation_) {
            pool_->put_back(ticket->slot);  // a seek came between; somebody may wait for a slot
            pool_->work.notify_one();
        } else {
            if (!filled) ticket->error = std::move(filled).error();
            ticket->is_done = true;
        }
        done_.notify_one();
    }
}

void ThreadedReader::plan_epochs() {
    std::unique_lock lock(pool_->mutex);
    while (true) {
        planning_.wait(lock, [this] { return is_stopping_ || wanted_plan_.has_value(); });
        if (is_stopping_) return;
        const Position position = *wanted_plan_;
        wanted_plan_.reset();
        const std::uint64_t generation = generation_;
        lock.unlock();
        Result<std::shared_ptr<const EpochPlan>> plan = planner_(position);
        lock.lock();
        if (generation != generation_) continue;
        if (supply_ && plan) upcoming_base_ = supply_->follow(*plan);
        upcoming_plan_ = std::move(plan);
        pool_->work.notify_all();
        done_.notify_one();
    }
}

}  // namespace tune::loader
