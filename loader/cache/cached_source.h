#pragma once
// A source whose files are read through a cache, for every format but MDS. Internal to the loader.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "base/result.h"
#include "loader/batch_supply.h"
#include "loader/cache/opening_record.h"
#include "loader/cache/supply/unit_fetcher.h"
#include "loader/cache/supply/unit_supply.h"
#include "loader/cache/unit.h"
#include "loader/source/object_source.h"

namespace tune::loader {

/// Units as bytes.
class ByteStore final : public UnitStore {
public:
    explicit ByteStore(std::shared_ptr<const UnitList> units) : units_(std::move(units)) {}

    [[nodiscard]] Result<Put> open_file(std::size_t unit,
                                        const std::filesystem::path& path) const override;
    [[nodiscard]] Result<Put> open_bytes(std::size_t unit, OwnedBytes raw) const override;
    [[nodiscard]] Result<OwnedBytes> unpack(std::size_t unit, OwnedBytes fetched) const override;
    void fail(std::size_t unit, Error error) override;
    void drop(std::size_t unit) override;

    struct Held {
        std::span<const std::byte> bytes = {};
        std::shared_ptr<const void> owner = {};
    };
    /// Nothing held: the unit is not here. Errors: what fail() was told.
    [[nodiscard]] Result<Held> find(std::size_t unit) const;

private:
    struct Slot {
        Held held = {};
        std::optional<Error> error = {};
    };
    [[nodiscard]] Put putting(std::size_t unit, Held held) const;

    const std::shared_ptr<const UnitList> units_;
    mutable std::mutex mutex_;
    mutable std::map<std::size_t, Slot> slots_;  // guarded by mutex_; of units that are wanted
};

/// Where a cache lies and how it is used.
struct CacheSettings {
    std::filesystem::path directory = {};
    /// 0: no limit.
    std::uint64_t bytes_max = 0;
    /// Requests at once.
    int connections = 16;
    SupplyOptions supply = {};
};

/// First a format opens the data set: what it reads waits for the network, and is kept. Then
/// batches are read along plans: reading gives what the supply has brought, and never waits.
/// Thread-safe.
class CachedSource final : public ObjectSource {
public:
    CachedSource(std::shared_ptr<const ObjectSource> far, CacheSettings settings);
    ~CachedSource() override;

    [[nodiscard]] Result<ObjectInfo> stat(std::string_view path) const override;
    [[nodiscard]] Result<std::vector<ObjectInfo>> list(std::string_view folder) const override {
        return far_->list(folder);
    }
    /// Errors: also kTemporarilyUnavailable for what the supply has not brought.
    [[nodiscard]] Result<void> read(const ObjectInfo& object, std::uint64_t offset,
                                    std::span<std::byte> bytes) const override;
    [[nodiscard]] const std::string& url() const override { return far_->url(); }

    /// Opens the cache: reads of these units go through it from here on. `read_ahead`: units that
    /// follow one another and are fetched at once when the first one is opened. REQUIRES: called
    /// once, by one thread. Errors: those of DiskCache::open.
    [[nodiscard]] Result<void> keep(std::shared_ptr<const UnitList> units, std::string_view digest,
                                    std::size_t read_ahead = 1);
    /// The data set is open: what batches read comes by the supply. REQUIRES: keep() before.
    [[nodiscard]] std::shared_ptr<BatchSupply> supply(UnitNeeds needs);

    /// Whether all of these can be read now.
    [[nodiscard]] bool has(std::span<const std::uint32_t> units) const;

private:
    [[nodiscard]] Result<ByteStore::Held> opened(std::size_t unit) const;
    [[nodiscard]] Result<ByteStore::Held> open_unit(std::size_t unit) const;
    void close_units(std::size_t kept) const;

    const std::shared_ptr<const ObjectSource> far_;
    const CacheSettings settings_;
    mutable OpeningRecord record_;
    std::shared_ptr<const UnitList> units_;  // nullptr until keep()
    std::shared_ptr<ByteStore> store_;
    std::shared_ptr<UnitFetcher> fetcher_;
    std::size_t read_ahead_ = 1;
    std::atomic<bool> is_opening_ = true;

    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    mutable std::set<std::size_t> in_hand_;  // being opened; guarded by mutex_
    struct Opened {
        std::size_t unit = 0;
        bool is_pinned = false;
    };
    mutable std::deque<Opened> open_;  // the one opened last at the end; guarded by mutex_
};

}  // namespace tune::loader
