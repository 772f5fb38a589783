// Lock order: mutex_, then the table's lock, then a pin. A claim is taken before all of them and is
// held over a whole download. What a crash may leave behind, and who clears it:
//   a reservation without a claim (killed while fetching)  reclaim_dead(): the parts go, 0 bytes
//   a file that the table does not know (killed between rename and the table)  the same
//   a row without its file (killed while evicting, or deleted by hand)  pin() and check() look

#include "loader/cache/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/system/file.h"
#include "loader/format/hash.h"
#include "loader/source/mapped_file.h"
#include "loader/source/object_source.h"
#include "loader/source/shard_store.h"

namespace tune::loader {
namespace {

constexpr std::uint64_t kTablePlace = 0;
constexpr std::uint64_t kClaimPlaces = std::uint64_t{1} << 32;
constexpr std::uint64_t kPinPlaces = std::uint64_t{1} << 33;
/// A file below this part of the limit makes room for others like it: this part of the limit.
constexpr std::uint64_t kSmallFileShare = 1024;
constexpr std::uint64_t kSpareShare = 64;

Error cache_error(const char* what, const std::filesystem::path& path, int reason) {
    Code code = Code::kInternalError;
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG) code = Code::kResourceExhausted;
    if (reason == EACCES || reason == EPERM || reason == EROFS) code = Code::kPermissionDenied;
    return {code, std::string("cannot ") + what + " '" + path.string() +
                      "' in the cache: " + std::strerror(reason)};
}

std::int64_t changed_ns(const struct stat& info) {
    return std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

/// Holds the table's lock.
class TableLock {
public:
    explicit TableLock(const FileLocks& locks) : locks_(locks) { locks_.lock(kTablePlace); }
    ~TableLock() { locks_.unlock(kTablePlace); }
    TableLock(const TableLock&) = delete;
    TableLock& operator=(const TableLock&) = delete;

private:
    const FileLocks& locks_;
};

/// Removes the files of `old` that are none of `units`.
void remove_strangers(const std::filesystem::path& directory, const std::vector<std::string>& old,
                      const std::vector<std::string>& names) {
    const std::set<std::string_view> kept(names.begin(), names.end());
    std::error_code ignored;
    for (const std::string& name : old)
        if (!kept.contains(name)) std::filesystem::remove(directory / name, ignored);
}

Result<void> check_names(const std::vector<std::string>& names) {
    std::set<std::string_view> known = {"index.json"};
    for (const std::string& name : names) {
        if (!known.insert(name).second)
            return data_loss("two files of the data set are called '" + name + "'");
        if (*std::filesystem::path(name).begin() == kCacheControlFolder)
            return data_loss("the file name '" + name + "' is one that the cache keeps for itself");
    }
    return {};
}

}  // namespace

DiskCache::DiskCache(CacheOptions options, std::shared_ptr<const UnitList> units, FileLocks locks,
                     Ledger ledger)
    : options_(std::move(options)),
      units_(std::move(units)),
      locks_(std::move(locks)),
      ledger_(std::move(ledger)),
      pins_(units_->size()),
      claims_(units_->size()) {}

Result<std::shared_ptr<DiskCache>> DiskCache::open(CacheOptions options,
                                                   std::shared_ptr<const UnitList> units,
                                                   std::string_view digest) {
    const std::vector<std::string> names = units->names();
    TUNE_TRY_VOID(check_names(names));
    const std::filesystem::path control = options.directory / kCacheControlFolder;
    std::error_code error;
    std::filesystem::create_directories(control, error);
    if (error) return cache_error("create", control, error.value());
    TUNE_TRY(locks, FileLocks::open(control / "locks"));
    locks.lock(kTablePlace);  // until the end, or until an error closes the file
    const bool is_alone = locks.try_lock(kCacheUsersPlace);
    if (is_alone) {
        // What a process that died was writing; its table may be of other data.
        for (const auto& entry : std::filesystem::directory_iterator(control, error))
            if (entry.path().filename().string().starts_with("part."))
                std::filesystem::remove(entry.path(), error);
    }
    TUNE_TRY(ledger, Ledger::open(control / "table", digest, units->size(), is_alone));
    const bool is_new = ledger.is_new();
    if (is_new) {
        // Files of other data would never be counted or evicted.
        if (const auto old = cached_names(options.directory); old && is_alone)
            remove_strangers(options.directory, *old, names);
        if (is_alone) std::filesystem::remove_all(control / "units", error);
        TUNE_TRY_VOID(write_file_atomic(control / "files", to_text(Json(names))));
    }
    std::shared_ptr<DiskCache> cache(
        new DiskCache(std::move(options), std::move(units), std::move(locks), std::move(ledger)));
    cache->locks_.share(kCacheUsersPlace);
    if (is_new && !names.empty()) cache->take_over_files();
    cache->reclaim_dead();
    cache->locks_.unlock(kTablePlace);
    return cache;
}

Result<std::vector<std::string>> cached_names(const std::filesystem::path& directory) {
    TUNE_TRY(text, read_file(directory / kCacheControlFolder / "files"));
    const Result<Json> json = parse_json(text);
    std::vector<std::string> names;
    if (!json || !json->is_array()) return names;
    for (const Json& name : *json)
        if (name.is_string() && is_object_path(name.get<std::string>()))
            names.push_back(name.get<std::string>());
    return names;
}

std::filesystem::path DiskCache::path(std::size_t file) const {
    return options_.directory / units_->unit(file).kept.file.basename;
}

std::filesystem::path DiskCache::zip_path(std::size_t file) const {
    return options_.directory / units_->unit(file).kept.zip->basename;
}

std::filesystem::path DiskCache::part_path(std::size_t file, bool is_zip) const {
    return options_.directory / kCacheControlFolder /
           ("part." + std::to_string(file) + (is_zip ? ".zip" : ".raw"));
}

std::uint64_t DiskCache::used_bytes() const {
    return ledger_.used_bytes();
}

/// Files that a new table finds, of an older table or of mosaicml-streaming: kept where the index
/// has hashes by which check() can judge them.
void DiskCache::take_over_files() {
    for (std::size_t file = 0; file < units_->size(); ++file) {
        struct stat info {};
        if (units_->unit(file).kept.file.hashes.empty() || ::stat(path(file).c_str(), &info) != 0 ||
            static_cast<std::uint64_t>(info.st_size) != units_->bytes(file))
            continue;
        LedgerEntry& entry = ledger_.entries()[file];
        ledger_.set_bytes(entry, units_->disk_bytes(file));
        entry.set_state(FileState::kPresent);
    }
}

/// REQUIRES: the table's lock. Reservations whose owner died, and what it left out of the sum.
void DiskCache::reclaim_dead() {
    for (std::size_t file = 0; file < units_->size(); ++file) {
        LedgerEntry& entry = ledger_.entries()[file];
        if (entry.file_state() != FileState::kReserved || claims_[file]) continue;
        if (!locks_.try_lock(kClaimPlaces + file)) continue;
        remove_files(file);
        ledger_.clear(entry);
        locks_.unlock(kClaimPlaces + file);
    }
    ledger_.recount();
}

void DiskCache::remove_files(std::size_t file) const {
    ::unlink(path(file).c_str());
    ::unlink(part_path(file, false).c_str());
    ::unlink(part_path(file, true).c_str());
    if (units_->unit(file).kept.zip) ::unlink(zip_path(file).c_str());
}

bool DiskCache::pin(std::size_t file) {
    const std::lock_guard lock(mutex_);
    if (pins_[file] > 0) {
        ++pins_[file];
        return true;
    }
    // Not to be had: somebody is evicting it at this moment.
    if (!locks_.try_share(kPinPlaces + file)) return false;
    struct stat info {};
    if (is_present(file) && ::stat(path(file).c_str(), &info) == 0 &&
        static_cast<std::uint64_t>(info.st_size) == units_->bytes(file)) {
        ++pins_[file];
        return true;
    }
    locks_.unlock(kPinPlaces + file);
    return false;
}

void DiskCache::unpin(std::size_t file) {
    const std::lock_guard lock(mutex_);
    if (--pins_[file] == 0) locks_.unlock(kPinPlaces + file);
}

bool DiskCache::try_claim(std::size_t file) {
    const std::lock_guard lock(mutex_);
    if (claims_[file] || !locks_.try_lock(kClaimPlaces + file)) return false;
    claims_[file] = true;
    return true;
}

void DiskCache::wait_claim(std::size_t file) {
    {
        // Before it is ours: reclaim_dead() must not try a lock that this process waits for.
        const std::lock_guard lock(mutex_);
        claims_[file] = true;
    }
    locks_.lock(kClaimPlaces + file);
}

void DiskCache::unclaim(std::size_t file) {
    const std::lock_guard lock(mutex_);
    claims_[file] = false;
    locks_.unlock(kClaimPlaces + file);
}

bool DiskCache::check(std::size_t file) {
    LedgerEntry& entry = ledger_.entries()[file];
    if (entry.file_state() != FileState::kPresent) return false;
    const FileInfo info = units_->unit(file).kept.file;
    const Result<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path(file));
    struct stat status {};
    bool is_good = mapped && (*mapped)->bytes().size() == info.bytes &&
                   ::stat(path(file).c_str(), &status) == 0;
    const bool is_checked =
        is_good && entry.boot == boot_number() && entry.changed_ns == changed_ns(status);
    if (is_good && !is_checked) {
        const std::uint64_t found = xxh3_64((*mapped)->bytes());
        is_good = entry.xxh3 != 0 ? found == entry.xxh3
                                  : !info.hashes.empty() &&
                                        check_file((*mapped)->bytes(), info, true).has_value();
        entry.xxh3 = found;
        entry.changed_ns = changed_ns(status);
        entry.boot = boot_number();
    }
    if (is_good) return true;
    const std::lock_guard lock(mutex_);
    const TableLock table(locks_);
    remove_files(file);
    ledger_.clear(entry);
    return false;
}

/// REQUIRES: mutex_ and the table's lock.
bool DiskCache::evict(std::size_t file) {
    LedgerEntry& entry = ledger_.entries()[file];
    if (entry.file_state() != FileState::kPresent || pins_[file] > 0 || claims_[file]) return false;
    if (!locks_.try_lock(kPinPlaces + file)) return false;  // another process reads it
    remove_files(file);
    ledger_.clear(entry);
    locks_.unlock(kPinPlaces + file);
    return true;
}

bool DiskCache::reserve(std::size_t file, const Victims& victims) {
    const std::uint64_t needed = units_->disk_bytes(file);
    // Looking for victims costs the same for one small file as for many.
    const std::uint64_t spare =
        needed < options_.bytes_max / kSmallFileShare ? options_.bytes_max / kSpareShare : 0;
    std::vector<std::size_t> order;
    bool has_asked = options_.bytes_max == 0;
    while (true) {
        {
            const std::lock_guard lock(mutex_);
            const TableLock table(locks_);
            if (has_asked) reclaim_dead();
            for (const std::size_t victim : order) {
                if (used_bytes() + needed + spare <= options_.bytes_max) break;
                if (victim != file) (void)evict(victim);
            }
            if (options_.bytes_max == 0 || used_bytes() + needed <= options_.bytes_max) {
                LedgerEntry& entry = ledger_.entries()[file];
                ledger_.set_bytes(entry, needed);
                entry.set_state(FileState::kReserved);
                return true;
            }
        }
        if (has_asked || needed > options_.bytes_max) return false;
        order = victims();  // without a lock: it looks far along the plan
        has_asked = true;
    }
}

bool DiskCache::evict_one(const Victims& victims) {
    const std::vector<std::size_t> order = victims();
    const std::lock_guard lock(mutex_);
    const TableLock table(locks_);
    return std::any_of(order.begin(), order.end(),
                       [this](std::size_t victim) { return evict(victim); });
}

Result<UniqueFd> DiskCache::open_part(std::size_t file, bool is_zip, std::uint64_t bytes) {
    const std::filesystem::path part = part_path(file, is_zip);
    UniqueFd fd(::open(part.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!fd) return cache_error("create", part, errno);
    // Room for all of it before the network is troubled. Some file systems cannot promise room.
    if (bytes > 0 && ::fallocate(fd.get(), 0, 0, static_cast<off_t>(bytes)) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS)
        return cache_error("make room for", path(file), errno);
    return fd;
}

Result<void> DiskCache::commit(std::size_t file, std::uint64_t xxh3) {
    const bool has_zip = units_->unit(file).kept.zip.has_value();
    std::error_code error;
    for (const bool is_zip : {true, false}) {
        if (is_zip && !has_zip) continue;
        const std::filesystem::path target = is_zip ? zip_path(file) : path(file);
        std::filesystem::create_directories(target.parent_path(), error);
        std::filesystem::rename(part_path(file, is_zip), target, error);
        if (error) return cache_error("name", target, error.value());
    }
    struct stat info {};
    if (::stat(path(file).c_str(), &info) != 0) return cache_error("find", path(file), errno);
    const std::lock_guard lock(mutex_);
    const TableLock table(locks_);
    LedgerEntry& entry = ledger_.entries()[file];
    entry.xxh3 = xxh3;
    entry.boot = boot_number();
    entry.changed_ns = changed_ns(info);
    entry.set_state(FileState::kPresent);
    return {};
}

void DiskCache::abandon(std::size_t file) {
    const std::lock_guard lock(mutex_);
    const TableLock table(locks_);
    LedgerEntry& entry = ledger_.entries()[file];
    if (entry.file_state() != FileState::kReserved) return;
    remove_files(file);
    ledger_.clear(entry);
}

}  // namespace tune::loader
