#pragma once
// Brings whole units into the cache, one at a time for each caller. Internal to the loader.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "loader/cache/disk_cache.h"
#include "loader/cache/unit.h"
#include "loader/cache/unit_store.h"
#include "loader/source/object_source.h"
#include "loader/source/range_reader.h"

namespace tune::loader {

/// Units that lie in one place.
struct SupplyPart {
    std::shared_ptr<const ObjectSource> source;
    std::shared_ptr<DiskCache> cache;
    /// Its first unit among those of the whole set; the parts are in order.
    std::size_t first_unit = 0;
};

/// Who asks for a unit decides when and which: this only looks, fetches, checks and keeps.
/// Thread-safe; one thread of the process asks for a unit at a time.
class UnitFetcher {
public:
    UnitFetcher(std::vector<SupplyPart> parts, std::shared_ptr<UnitStore> store, int connections)
        : parts_(std::move(parts)), store_(std::move(store)), reader_(connections) {}

    enum class Where {
        kAway,    ///< not in the cache
        kCache,   ///< pinned there until unpin()
        kMemory,  ///< fetched, but the cache has no room for it
        kNoRoom,  ///< not fetched: the cache has no room for it, and nobody waits
    };
    struct Found {
        Where where = Where::kAway;
        /// With kCache and kMemory: puts it in the store.
        UnitStore::Put put = {};
    };

    /// Looks for the unit in the cache. Never waits for another process or the network.
    [[nodiscard]] Result<Found> look(std::size_t unit);

    /// Claims it for this process, see DiskCache.
    [[nodiscard]] bool try_claim(std::size_t unit);
    void wait_claim(std::size_t unit);

    struct Advice {
        /// The files of a part in the order in which to evict them for this one.
        std::function<std::vector<std::size_t>(const SupplyPart& part)> victims = {};
        /// Whether the unit must come although there is no room. nullptr: it must.
        std::function<bool()> is_awaited = {};
    };
    /// Fetches it unless it has come meanwhile. REQUIRES: it is claimed. It is not, afterwards.
    /// Errors: those of the source, with the file; kDataLoss for bytes that are not those stated,
    /// twice.
    [[nodiscard]] Result<Found> fetch(std::size_t unit, const Advice& advice);

    void unpin(std::size_t unit);

    [[nodiscard]] UnitStore& store() const { return *store_; }
    [[nodiscard]] RangeReader& reader() { return reader_; }
    [[nodiscard]] std::size_t unit_count() const {
        return parts_.back().first_unit + parts_.back().cache->file_count();
    }
    /// Of what is kept.
    [[nodiscard]] std::uint64_t bytes(std::size_t unit) const;
    [[nodiscard]] const ObjectSource& source(std::size_t unit) const {
        return *part_of(unit).source;
    }
    [[nodiscard]] std::uint64_t fetched_bytes() const { return fetched_bytes_.load(); }
    [[nodiscard]] std::uint64_t fetched_units() const { return fetched_units_.load(); }

private:
    [[nodiscard]] const SupplyPart& part_of(std::size_t unit) const;
    [[nodiscard]] std::size_t file_of(std::size_t unit) const {
        return unit - part_of(unit).first_unit;
    }
    [[nodiscard]] Result<Found> fetch_claimed(std::size_t unit, const Unit& what,
                                              const Advice& advice);
    [[nodiscard]] Result<UnitStore::Put> open_pinned(std::size_t unit);
    [[nodiscard]] Result<std::uint64_t> download(std::size_t unit, const Unit& what);
    [[nodiscard]] Result<std::uint64_t> download_raw(std::size_t unit, const Unit& what);
    [[nodiscard]] Result<std::uint64_t> download_packed(std::size_t unit, const Unit& what);
    [[nodiscard]] Result<Found> without_room(std::size_t unit, const Unit& what,
                                             const Advice& advice);
    [[nodiscard]] Result<OwnedBytes> read_stored(std::size_t unit, const Unit& what);
    [[nodiscard]] ObjectInfo object_of(std::size_t unit, const Unit& what) const;
    [[nodiscard]] Error in_unit(Error error, std::size_t unit, const Unit& what) const;
    void count(const Unit& what);

    const std::vector<SupplyPart> parts_;
    const std::shared_ptr<UnitStore> store_;
    RangeReader reader_;
    std::atomic<std::uint64_t> fetched_bytes_ = 0;
    std::atomic<std::uint64_t> fetched_units_ = 0;
};

}  // namespace tune::loader
