// While a data set is opened, reading a byte of a unit fetches the unit: what is scanned to count
// its rows is there for the first epoch. A few units stay open meanwhile, so that a walk through
// one of them in small steps costs no search each.

#include "loader/cache/cached_source.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "loader/source/mapped_file.h"
#include "loader/source/shard_store.h"

namespace tune::loader {
namespace {

/// Units that are open at one time while a data set is opened.
constexpr std::size_t kOpenUnits = 16;
/// A process may map 65,530 files; above this many units, those that were used are let go.
constexpr std::size_t kMappedUnitsMax = 4096;

}  // namespace

UnitStore::Put ByteStore::putting(std::size_t unit, Held held) const {
    return [this, unit, held = std::move(held)](bool /*stays*/) {
        const std::lock_guard lock(mutex_);
        slots_[unit] = {held, {}};
    };
}

Result<UnitStore::Put> ByteStore::open_file(std::size_t unit,
                                            const std::filesystem::path& path) const {
    TUNE_TRY(file, MappedFile::open(path));
    file->read_ahead();
    return putting(unit, {file->bytes(), file});
}

Result<UnitStore::Put> ByteStore::open_bytes(std::size_t unit, OwnedBytes raw) const {
    const auto owner = std::make_shared<const OwnedBytes>(std::move(raw));
    return putting(unit, {owner->bytes(), owner});
}

Result<OwnedBytes> ByteStore::unpack(std::size_t unit, OwnedBytes fetched) const {
    const Unit what = units_->unit(unit);
    if (what.packed) {
        TUNE_TRY(compression, parse_compression(what.compression));
        TUNE_TRY_VOID(check_file(fetched.bytes(), *what.packed, true));
        TUNE_TRY(raw, decompress(compression, fetched.bytes(), what.kept.file.bytes));
        fetched = std::move(raw);
    }
    TUNE_TRY_VOID(check_file(fetched.bytes(), what.kept.file, true));
    return fetched;
}

void ByteStore::fail(std::size_t unit, Error error) {
    const std::lock_guard lock(mutex_);
    slots_[unit] = {{}, std::move(error)};
}

void ByteStore::drop(std::size_t unit) {
    Held dropped;  // unmapped without the lock
    const std::lock_guard lock(mutex_);
    const auto slot = slots_.find(unit);
    if (slot == slots_.end()) return;
    dropped = std::move(slot->second.held);
    slots_.erase(slot);
}

Result<ByteStore::Held> ByteStore::find(std::size_t unit) const {
    const std::lock_guard lock(mutex_);
    const auto slot = slots_.find(unit);
    if (slot == slots_.end()) return Held{};
    if (slot->second.error) return *slot->second.error;
    return slot->second.held;
}

CachedSource::CachedSource(std::shared_ptr<const ObjectSource> far, CacheSettings settings)
    : far_(std::move(far)),
      settings_(std::move(settings)),
      record_(settings_.directory / kCacheControlFolder / "opened") {}

CachedSource::~CachedSource() {
    close_units(0);
}

Result<ObjectInfo> CachedSource::stat(std::string_view path) const {
    return far_->stat(path);
}

Result<void> CachedSource::keep(std::shared_ptr<const UnitList> units, std::string_view digest,
                                std::size_t read_ahead) {
    TUNE_TRY(cache, DiskCache::open({settings_.directory, settings_.bytes_max}, units, digest));
    units_ = std::move(units);
    store_ = std::make_shared<ByteStore>(units_);
    std::vector<SupplyPart> parts = {{far_, std::move(cache), 0}};
    fetcher_ = std::make_shared<UnitFetcher>(std::move(parts), store_, settings_.connections);
    read_ahead_ = read_ahead;
    return {};
}

std::shared_ptr<BatchSupply> CachedSource::supply(UnitNeeds needs) {
    close_units(0);
    record_.save();
    is_opening_ = false;
    SupplyOptions options = settings_.supply;
    options.keeps_mapped = units_->size() <= kMappedUnitsMax;
    return std::make_shared<UnitSupply>(fetcher_, std::move(needs), std::move(options));
}

bool CachedSource::has(std::span<const std::uint32_t> units) const {
    return std::ranges::all_of(units, [this](std::uint32_t unit) {
        const Result<ByteStore::Held> held = store_->find(unit);
        return held && held->owner;
    });
}

Result<void> CachedSource::read(const ObjectInfo& object, std::uint64_t offset,
                                std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const auto place = units_ ? units_->find(object.path, offset) : std::nullopt;
        if (!place) return record_.read(*far_, object, offset, bytes);
        TUNE_TRY(held, is_opening_ ? opened(place->unit) : store_->find(place->unit));
        if (!held.owner)
            return Error{Code::kTemporarilyUnavailable, "it has not come yet",
                         "'" + url() + (object.path.empty() ? "" : "/" + object.path) + "'"};
        const std::size_t count = std::min<std::size_t>(bytes.size(), place->bytes);
        std::memcpy(bytes.data(), held.bytes.data() + place->offset, count);
        bytes = bytes.subspan(count);
        offset += count;
    }
    return {};
}

Result<ByteStore::Held> CachedSource::opened(std::size_t unit) const {
    TUNE_TRY(held, store_->find(unit));
    if (held.owner) return held;
    const std::size_t end = std::min(unit + read_ahead_, units_->size());
    std::vector<std::thread> threads;
    for (std::size_t next = unit + 1; next < end; ++next)
        threads.emplace_back([this, next] { static_cast<void>(open_unit(next)); });
    Result<ByteStore::Held> found = open_unit(unit);
    for (std::thread& thread : threads) thread.join();
    return found;
}

/// Puts a unit in the store, by whichever thread comes first.
Result<ByteStore::Held> CachedSource::open_unit(std::size_t unit) const {
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !in_hand_.contains(unit); });
        TUNE_TRY(held, store_->find(unit));
        if (held.owner) return held;
        in_hand_.insert(unit);
    }
    Result<UnitFetcher::Found> found = fetcher_->look(unit);
    if (found && found->where == UnitFetcher::Where::kAway) {
        if (!fetcher_->try_claim(unit)) fetcher_->wait_claim(unit);
        UnitFetcher::Advice advice;
        // What was fetched first stays: the next walk through all finds that much.
        advice.victims = [](const SupplyPart& part) {
            std::vector<std::size_t> order;
            for (std::size_t file = part.cache->file_count(); file-- > 0;)
                if (part.cache->is_present(file)) order.push_back(file);
            return order;
        };
        found = fetcher_->fetch(unit, advice);
    }
    Result<ByteStore::Held> held = ByteStore::Held();
    {
        const std::lock_guard lock(mutex_);
        in_hand_.erase(unit);
        if (found) {
            found->put(true);
            held = store_->find(unit);
            open_.push_back({unit, found->where == UnitFetcher::Where::kCache});
        }
    }
    changed_.notify_all();
    if (!found) return std::move(found).error();
    close_units(kOpenUnits);
    return held;
}

void CachedSource::close_units(std::size_t kept) const {
    const std::lock_guard lock(mutex_);
    while (open_.size() > kept) {
        const Opened oldest = open_.front();
        open_.pop_front();
        store_->drop(oldest.unit);
        if (oldest.is_pinned) fetcher_->unpin(oldest.unit);
    }
}

}  // namespace tune::loader
