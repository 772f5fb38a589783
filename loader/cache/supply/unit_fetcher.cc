// A unit is claimed, its bytes are reserved, fetched into a part, compared with what is stated of
// them, and named: so at no moment does half a unit look whole, and no other process fetches it. A
// part is wrong by its size, by a hash of an index, or by the version of its object, which every
// request asks for; one that is wrong is fetched a second time before that is an error.

#include "loader/cache/supply/unit_fetcher.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>

#include "loader/format/hash.h"
#include "loader/source/mapped_file.h"
#include "loader/source/shard_store.h"

namespace tune::loader {
namespace {

/// Other files that are evicted for one for which the disk has no room.
constexpr int kEvictionsForRoom = 64;
/// Downloads of a unit whose bytes are not those that are stated.
constexpr int kDownloadsOfDamaged = 2;

/// The xxh3_64 of bytes that were compared with what is stated: where that is this one, nothing is
/// left to compute.
std::uint64_t checked_hash(const FileInfo& file, std::span<const std::byte> bytes) {
    const auto stated = file.hashes.find("xxh3_64");
    std::uint64_t hash = 0;
    if (stated == file.hashes.end()) return xxh3_64(bytes);
    const std::string& hex = stated->second;
    std::from_chars(hex.data(), hex.data() + hex.size(), hash, 16);
    return hash;
}

Result<void> write_part(int fd, std::span<const std::byte> bytes) {
    std::size_t at = 0;
    while (at < bytes.size()) {
        const ssize_t count =
            ::pwrite(fd, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0)
            return Error{errno == ENOSPC || errno == EDQUOT || errno == EFBIG
                             ? Code::kResourceExhausted
                             : Code::kInternalError,
                         std::string("cannot write to the cache: ") + std::strerror(errno)};
        at += static_cast<std::size_t>(count);
    }
    return {};
}

}  // namespace

const SupplyPart& UnitFetcher::part_of(std::size_t unit) const {
    const auto after = std::upper_bound(
        parts_.begin(), parts_.end(), unit,
        [](std::size_t number, const SupplyPart& part) { return number < part.first_unit; });
    return *std::prev(after);
}

std::uint64_t UnitFetcher::bytes(std::size_t unit) const {
    return part_of(unit).cache->units().bytes(file_of(unit));
}

Error UnitFetcher::in_unit(Error error, std::size_t unit, const Unit& what) const {
    if (!error.context.empty()) return error;
    const SupplyPart& part = part_of(unit);
    error.context = std::string(part.cache->units().kind()) + " '" + part.source->url() +
                    (what.object.path.empty() ? "" : "/" + what.object.path) + "'";
    if (what.bytes != what.object.bytes)
        error.context +=
            ", " + std::to_string(what.bytes) + " bytes from byte " + std::to_string(what.offset);
    return error;
}

Result<UnitFetcher::Found> UnitFetcher::look(std::size_t unit) {
    DiskCache& cache = *part_of(unit).cache;
    const std::size_t file = file_of(unit);
    if (!cache.is_present(file) || !cache.try_claim(file)) return Found{};
    Result<UnitStore::Put> put = UnitStore::Put();
    if (cache.check(file)) put = open_pinned(unit);
    cache.unclaim(file);
    if (!put) return std::move(put).error();
    if (!*put) return Found{};
    return Found{Where::kCache, *std::move(put)};
}

bool UnitFetcher::try_claim(std::size_t unit) {
    return part_of(unit).cache->try_claim(file_of(unit));
}

void UnitFetcher::wait_claim(std::size_t unit) {
    part_of(unit).cache->wait_claim(file_of(unit));
}

void UnitFetcher::unpin(std::size_t unit) {
    part_of(unit).cache->unpin(file_of(unit));
}

/// Pins and opens what the cache holds; nothing when it holds it no more.
Result<UnitStore::Put> UnitFetcher::open_pinned(std::size_t unit) {
    DiskCache& cache = *part_of(unit).cache;
    const std::size_t file = file_of(unit);
    if (!cache.pin(file)) return UnitStore::Put();
    Result<UnitStore::Put> opened = store_->open_file(unit, cache.path(file));
    if (opened) return opened;
    cache.unpin(file);
    return in_unit(std::move(opened).error(), unit, cache.units().unit(file));
}

Result<UnitFetcher::Found> UnitFetcher::fetch(std::size_t unit, const Advice& advice) {
    DiskCache& cache = *part_of(unit).cache;
    const std::size_t file = file_of(unit);
    const Unit what = cache.units().unit(file);
    Result<Found> found = fetch_claimed(unit, what, advice);
    if (!found) cache.abandon(file);
    cache.unclaim(file);
    if (found) return found;
    return in_unit(std::move(found).error(), unit, what);
}

Result<UnitFetcher::Found> UnitFetcher::fetch_claimed(std::size_t unit, const Unit& what,
                                                      const Advice& advice) {
    const SupplyPart& part = part_of(unit);
    DiskCache& cache = *part.cache;
    const std::size_t file = file_of(unit);
    const auto victims = [&] {
        return advice.victims ? advice.victims(part) : std::vector<std::size_t>();
    };
    if (cache.check(file)) {
        TUNE_TRY(put, open_pinned(unit));
        if (put) return Found{Where::kCache, std::move(put)};
    }
    if (!cache.reserve(file, victims)) return without_room(unit, what, advice);
    Result<std::uint64_t> hash = download(unit, what);
    for (int i = 0; !hash && hash.error().code == Code::kResourceExhausted; ++i) {
        if (i == kEvictionsForRoom || !cache.evict_one(victims)) {
            cache.abandon(file);
            return without_room(unit, what, advice);
        }
        hash = download(unit, what);
    }
    if (!hash) return std::move(hash).error();
    TUNE_TRY_VOID(cache.commit(file, *hash));
    count(what);
    TUNE_TRY(put, open_pinned(unit));
    // Evicted in this very moment: another process has better use for the room.
    if (!put) return without_room(unit, what, advice);
    return Found{Where::kCache, std::move(put)};
}

/// What nobody waits for yet is left where it is.
Result<UnitFetcher::Found> UnitFetcher::without_room(std::size_t unit, const Unit& what,
                                                     const Advice& advice) {
    if (advice.is_awaited && !advice.is_awaited()) return Found{Where::kNoRoom, {}};
    TUNE_TRY(stored, read_stored(unit, what));
    TUNE_TRY(raw, store_->unpack(unit, std::move(stored)));
    TUNE_TRY(put, store_->open_bytes(unit, std::move(raw)));
    count(what);
    return Found{Where::kMemory, std::move(put)};
}

/// What to ask the source for. Without hashes, a file that is replaced while its ranges are read
/// shows by its version only, which costs a request where it is not known.
ObjectInfo UnitFetcher::object_of(std::size_t unit, const Unit& what) const {
    ObjectInfo object = what.object;
    const FileInfo& stated = what.packed ? *what.packed : what.kept.file;
    if (!object.version.empty() || !stated.hashes.empty() || what.bytes <= RangeReader::kRangeBytes)
        return object;
    if (const Result<ObjectInfo> found = source(unit).stat(object.path);
        found && found->bytes == object.bytes)
        object.version = found->version;
    return object;
}

Result<OwnedBytes> UnitFetcher::read_stored(std::size_t unit, const Unit& what) {
    OwnedBytes bytes;
    bytes.size = what.bytes;
    bytes.data.reset(new (std::nothrow) std::byte[std::max<std::size_t>(bytes.size, 1)]);
    if (!bytes.data)
        return Error{Code::kDataLoss, "no memory for its " + std::to_string(bytes.size) + " bytes"};
    TUNE_TRY_VOID(reader_.to_memory(source(unit), object_of(unit, what), what.offset,
                                    {bytes.data.get(), bytes.size}));
    return bytes;
}

/// Leaves the parts of the unit checked, not yet visible; returns the kept file's xxh3.
Result<std::uint64_t> UnitFetcher::download(std::size_t unit, const Unit& what) {
    for (int i = 1;; ++i) {
        Result<std::uint64_t> hash =
            what.packed ? download_packed(unit, what) : download_raw(unit, what);
        const bool is_damaged = !hash && hash.error().code == Code::kDataLoss;
        if (!is_damaged || i == kDownloadsOfDamaged) return hash;
    }
}

Result<std::uint64_t> UnitFetcher::download_raw(std::size_t unit, const Unit& what) {
    const SupplyPart& part = part_of(unit);
    const FileInfo& info = what.kept.file;
    TUNE_TRY(fd, part.cache->open_part(file_of(unit), false, info.bytes));
    const ObjectInfo object = object_of(unit, what);
    TUNE_TRY_VOID(reader_.to_file(*part.source, object, what.offset, what.bytes, fd.get()));
    TUNE_TRY(mapped, MappedFile::open(part.cache->part_path(file_of(unit), false)));
    TUNE_TRY_VOID(check_file(mapped->bytes(), info, true));
    return checked_hash(info, mapped->bytes());
}

Result<std::uint64_t> UnitFetcher::download_packed(std::size_t unit, const Unit& what) {
    DiskCache& cache = *part_of(unit).cache;
    TUNE_TRY(stored, read_stored(unit, what));
    if (what.kept.zip) {
        TUNE_TRY(zip, cache.open_part(file_of(unit), true, what.kept.zip->bytes));
        TUNE_TRY_VOID(write_part(zip.get(), stored.bytes()));
    }
    TUNE_TRY(raw, store_->unpack(unit, std::move(stored)));
    TUNE_TRY(fd, cache.open_part(file_of(unit), false, what.kept.file.bytes));
    TUNE_TRY_VOID(write_part(fd.get(), raw.bytes()));
    return checked_hash(what.kept.file, raw.bytes());
}

void UnitFetcher::count(const Unit& what) {
    fetched_bytes_ += what.bytes;
    ++fetched_units_;
}

}  // namespace tune::loader
