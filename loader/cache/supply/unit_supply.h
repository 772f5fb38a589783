#pragma once
// Brings the units of coming batches to this machine before they are needed. Internal to the
// loader.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "loader/batch_supply.h"
#include "loader/cache/supply/batch_needs.h"
#include "loader/cache/supply/claim_waiters.h"
#include "loader/cache/supply/sample_ranges.h"
#include "loader/cache/supply/unit_fetcher.h"
#include "loader/cache/supply/unit_stages.h"
#include "loader/source/stop_signal.h"

namespace tune::loader {

struct SupplyOptions {
    /// Samples after the ones that are read now whose units are fetched; 0: as many as keep the
    /// connections busy.
    std::int64_t predownload = 0;
    /// Units that are fetched, checked and unpacked at once.
    int threads = 4;
    /// Bytes of units that are looked ahead to; 0: any number.
    std::uint64_t window_bytes_max = 0;
    /// Units stay mapped when the window has passed them, where that costs address space only.
    bool keeps_mapped = true;
    /// Set at the end, so that pauses between attempts end.
    std::shared_ptr<StopSignal> stop = {};
};

/// The look-ahead walks along the plan and queues each unit at its first use. Threads of its own
/// open what the cache holds, fetch what it lacks, and wait for what another process fetches; the
/// decoding threads only ask whether a batch can be read. With `ranges`, until the first batch
/// whose units are all there, batches are made readable by reading just their samples; not those
/// of an epoch in one batch.
class UnitSupply final : public BatchSupply {
public:
    /// `ranges`: nullptr where samples cannot be read by themselves.
    UnitSupply(std::shared_ptr<UnitFetcher> fetcher, UnitNeeds needs, SupplyOptions options,
               std::unique_ptr<SampleRanges> ranges = nullptr);
    ~UnitSupply() override;

    void set_listener(std::function<void()> listener) override;
    [[nodiscard]] std::uint64_t follow(std::shared_ptr<const EpochPlan> plan) override;
    void forget() override;
    void expect(std::uint64_t batch) override;
    [[nodiscard]] bool is_ready(std::uint64_t batch) override;
    void wait(std::uint64_t batch) override;
    void end(std::uint64_t batch) override;
    [[nodiscard]] FetchStats stats() const override;

private:
    using Lock = std::unique_lock<std::mutex>;
    using Found = Result<UnitFetcher::Found>;

    // The plan's side.
    void walk();
    [[nodiscard]] bool can_walk() const;
    void walk_batch();
    [[nodiscard]] std::uint64_t low() const;
    [[nodiscard]] bool is_there(std::uint64_t batch);
    void release_used();
    void release(std::size_t unit);
    [[nodiscard]] std::vector<std::size_t> victims(const SupplyPart& part) const;
    void tell(Lock& lock);

    // The bytes' side.
    void work();
    [[nodiscard]] bool work_once(Lock& lock);
    void look(std::size_t unit, Lock& lock);
    void fetch(std::size_t unit, Lock& lock);
    void settle(std::size_t unit, Found found, Lock& lock);
    void retry_without_room(std::uint64_t before);
    [[nodiscard]] bool can_range(std::uint64_t batch) const;
    [[nodiscard]] std::optional<std::uint64_t> take_range() const;
    void range(std::uint64_t batch, Lock& lock);

    const std::shared_ptr<UnitFetcher> fetcher_;
    const SupplyOptions options_;
    const bool is_rangeable_;

    mutable std::mutex mutex_;  // guards all that follows
    std::condition_variable work_;
    std::condition_variable ready_;
    std::condition_variable walking_;
    bool is_stopping_ = false;
    BatchNeeds needs_;
    UnitStages stages_;
    std::unique_ptr<SampleRanges> ranges_;
    std::map<std::uint64_t, std::vector<std::uint32_t>> lacking_;  // of walked batches
    std::set<std::uint64_t> open_;    // batches that are expected and not ended
    std::set<std::uint64_t> ranged_;  // whose samples are there one by one
    std::uint64_t next_batch_ = 0;    // the highest one expected, plus 1
    std::uint64_t walked_ = 0;        // batches before this one were looked at
    std::uint64_t batch_samples_ = 1;
    bool is_warm_ = false;  // a batch was found whole
    bool holds_downloads_;  // until the first batch is there
    bool is_ranging_ = false;
    bool can_range_;  // the source reads ranges
    FetchStats stats_;
    std::deque<std::size_t> claimed_;  // others fetched them, or died of it; they are ours now

    std::mutex listener_mutex_;       // held while the listener runs
    std::function<void()> listener_;  // guarded by listener_mutex_

    std::unique_ptr<ClaimWaiters> waiters_;
    std::vector<std::thread> threads_;
};

}  // namespace tune::loader
