#pragma once
// Brings the shards of coming batches to this machine before they are needed. Internal to the
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
#include "loader/cache/disk_cache.h"
#include "loader/cache/eviction_order.h"
#include "loader/cache/sparse_shard.h"
#include "loader/source/object_source.h"
#include "loader/source/range_reader.h"
#include "loader/source/shard_store.h"
#include "loader/source/stop_signal.h"

namespace tune::loader {

/// Shards that lie in one place.
struct SupplyPart {
    std::shared_ptr<const ObjectSource> source;
    std::shared_ptr<DiskCache> cache;
    /// Its first shard in the index of the whole set; the parts are in order.
    std::size_t first_shard = 0;
};

struct SupplyOptions {
    /// Samples after the ones that are read now whose shards are fetched; 0: as many as keep the
    /// connections busy.
    std::int64_t predownload = 0;
    /// Requests at once.
    int connections = 16;
    bool keep_zip = false;
    /// Bytes of shards that are looked ahead to; 0: any number.
    std::uint64_t window_bytes_max = 0;
    /// Set at the end, so that pauses between attempts end.
    std::shared_ptr<StopSignal> stop = {};
};

/// The look-ahead walks along the plan and queues each shard at its first use. Threads of its own
/// open what the cache holds, fetch what it lacks, and wait for what another process fetches; the
/// decoding threads only ask whether a batch can be read. Until the first batch whose shards are
/// all there, batches are made readable by reading just their samples (raw shards only).
class ShardSupply final : public BatchSupply {
public:
    ShardSupply(std::vector<SupplyPart> parts, std::shared_ptr<ShardStore> store,
                SupplyOptions options);
    ~ShardSupply() override;

    void set_listener(std::function<void()> listener) override;
    [[nodiscard]] std::uint64_t follow(std::shared_ptr<const EpochPlan> plan) override;
    void forget() override;
    void expect(std::uint64_t batch) override;
    [[nodiscard]] bool is_ready(std::uint64_t batch) override;
    void wait(std::uint64_t batch) override;
    void end(std::uint64_t batch) override;
    [[nodiscard]] FetchStats stats() const override;

private:
    enum class Stage : std::uint8_t {
        kIdle,      ///< not wanted
        kQueued,    ///< to be looked for in the cache
        kLooking,   ///< a thread does
        kAbsent,    ///< to be fetched
        kBusy,      ///< a thread is at it, or another process
        kNoRoom,    ///< the cache has no room for it
        kReady,     ///< mapped and pinned
        kInMemory,  ///< not in the cache
        kFailed,
    };
    [[nodiscard]] static bool is_in_hand(Stage stage) {
        return stage == Stage::kLooking || stage == Stage::kBusy;
    }
    using ShardPtr = std::shared_ptr<const Shard>;
    struct Outcome {
        Stage stage = Stage::kNoRoom;
        ShardPtr shard = {};
    };
    struct ShardState {
        Stage stage = Stage::kIdle;
        std::uint64_t first_batch = 0;  ///< that wants it, while it is wanted
        std::uint64_t last_batch = 0;   ///< seen so far
        std::shared_ptr<SparseShard> sparse = {};
    };
    /// A batch's shards and the samples it wants of each.
    using Needs = std::map<std::size_t, std::vector<std::uint32_t>>;
    struct RangeNeed {
        std::size_t shard = 0;
        std::shared_ptr<SparseShard> sparse = {};
        std::vector<std::uint32_t> samples = {};
    };

    // Which batch wants what.
    [[nodiscard]] const FollowedPlan* plan_of(std::uint64_t batch) const;
    [[nodiscard]] std::span<const std::int64_t> ids_of(std::uint64_t batch,
                                                       std::vector<std::int64_t>& scratch) const;
    [[nodiscard]] static std::span<const std::int64_t> ids_of(const FollowedPlan& plan,
                                                              std::size_t batch,
                                                              std::vector<std::int64_t>& scratch);
    [[nodiscard]] Needs needs_of(std::uint64_t batch) const;
    [[nodiscard]] std::size_t shard_of(std::int64_t id) const;
    [[nodiscard]] std::uint64_t plans_end() const;
    [[nodiscard]] std::uint64_t low() const;

    // The look-ahead.
    void walk();
    [[nodiscard]] bool can_walk() const;
    void walk_batch();
    void release_used();
    void release(std::size_t shard);
    [[nodiscard]] std::vector<std::size_t> victims(const SupplyPart& part) const;

    // Fetching.
    void work();
    [[nodiscard]] bool work_once(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool can_range(std::uint64_t batch) const;
    [[nodiscard]] std::optional<std::uint64_t> take_range();
    void range(std::uint64_t batch, std::unique_lock<std::mutex>& lock);
    void probe(std::size_t shard, std::unique_lock<std::mutex>& lock);
    void fetch(std::size_t shard, std::unique_lock<std::mutex>& lock);
    [[nodiscard]] Result<Outcome> fetch_claimed(std::size_t shard);
    [[nodiscard]] Result<void> fetch_ranges(const std::vector<RangeNeed>& needs);
    [[nodiscard]] ObjectInfo stored_object(std::size_t shard) const;
    [[nodiscard]] Result<std::uint64_t> download_raw(std::size_t shard);
    [[nodiscard]] Result<std::uint64_t> download_zip(std::size_t shard);
    void count_shard(std::size_t shard);
    [[nodiscard]] Result<std::uint64_t> download(std::size_t shard);
    [[nodiscard]] Result<Outcome> without_room(std::size_t shard);
    [[nodiscard]] Result<OwnedBytes> read_stored(std::size_t shard);
    [[nodiscard]] Result<ShardPtr> open_pinned(std::size_t shard);
    void settle(std::size_t shard, Result<Outcome> outcome, std::unique_lock<std::mutex>& lock);
    void want(std::size_t shard, Stage stage);
    void retry_without_room(std::uint64_t before);
    void wait_elsewhere(std::size_t shard);
    void wait_for_claims();
    void tell(std::unique_lock<std::mutex>& lock);
    [[nodiscard]] bool is_there(std::uint64_t batch);
    [[nodiscard]] bool all_there(std::uint64_t batch) const;

    [[nodiscard]] const SupplyPart& part_of(std::size_t shard) const;
    [[nodiscard]] std::size_t file_of(std::size_t shard) const;

    const std::vector<SupplyPart> parts_;
    const std::shared_ptr<ShardStore> store_;
    const SupplyOptions options_;
    std::vector<std::int64_t> begins_;          // of each shard, and the end
    std::vector<std::uint32_t> bucket_shards_;  // the shard of each 1,024th sample
    bool has_limit_ = false;
    bool is_rangeable_ = true;  // no shard is compressed

    mutable std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable ready_;
    std::condition_variable walking_;
    std::function<void()> listener_;  // guarded by listener_mutex_
    bool is_stopping_ = false;
    std::vector<ShardState> shards_;
    std::vector<FollowedPlan> plans_;
    std::set<std::uint64_t> open_;    // batches that are expected and not ended
    std::set<std::uint64_t> ranged_;  // whose samples are there one by one
    std::uint64_t next_batch_ = 0;    // the highest one expected, plus 1
    std::uint64_t next_base_ = 0;     // of the next plan
    std::uint64_t walked_ = 0;        // batches before this one were looked at
    std::set<std::size_t> wanted_;    // shards that are not idle
    std::uint64_t window_bytes_ = 0;  // of wanted_
    std::size_t pending_ = 0;         // wanted and not yet there
    bool is_warm_ = false;            // a batch was found whole
    bool holds_downloads_ = true;     // until the first batch is there
    bool is_ranging_ = false;
    bool can_range_ = true;  // raw shards, and a source that reads ranges
    FetchStats stats_;
    std::set<std::pair<std::uint64_t, std::size_t>> queued_;  // by first batch
    std::set<std::pair<std::uint64_t, std::size_t>> absent_;
    std::set<std::size_t> no_room_;
    std::uint64_t batch_samples_ = 1;
    std::mutex listener_mutex_;  // held while the listener runs

    std::deque<std::size_t> elsewhere_;  // shards that other processes fetch, not yet waited for
    std::condition_variable elsewhere_changed_;
    std::size_t idle_waiters_ = 0;
    std::deque<std::size_t> claimed_;  // of those, which are ours now

    RangeReader reader_;
    std::vector<std::thread> threads_;
    std::vector<std::thread> waiters_;  // guarded by mutex_ until is_stopping_
};

}  // namespace tune::loader
