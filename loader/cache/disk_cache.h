#pragma once
// A folder that holds what was fetched from afar, for every epoch, trial and process of a machine.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/system/unique_fd.h"
#include "loader/cache/file_locks.h"
#include "loader/cache/ledger.h"
#include "loader/cache/unit.h"

namespace tune::loader {

/// The place of its locks that whoever has it open shares.
inline constexpr std::uint64_t kCacheUsersPlace = 1;

struct CacheOptions {
    std::filesystem::path directory = {};
    /// Bytes on disk that all processes together keep to; 0: no limit.
    std::uint64_t bytes_max = 0;
};

/// Holds one file for each unit of a data set. The life of a file: absent -> reserved (its bytes
/// are counted before any arrives) -> present -> absent again when it is evicted. Every file has
/// two locks between processes: who claims it fetches or checks it, who pins it reads it. Both are
/// the kernel's, so a process that dies leaves at most a reservation, which the next one takes
/// back. A file appears under its name by rename, whole and checked. Thread-safe; nothing here
/// waits but for short disk operations, and wait_claim().
class DiskCache {
public:
    /// `digest` names the data: a folder that holds other data is emptied, unless another process
    /// uses it (kResourceConflict). Files that are there already are taken over if the index states
    /// hashes to check them by. Errors: also kResourceExhausted when the disk is full, and those of
    /// the file system.
    [[nodiscard]] static Result<std::shared_ptr<DiskCache>> open(
        CacheOptions options, std::shared_ptr<const UnitList> units, std::string_view digest);

    [[nodiscard]] const UnitList& units() const { return *units_; }
    [[nodiscard]] std::size_t file_count() const { return units_->size(); }
    [[nodiscard]] std::filesystem::path path(std::size_t file) const;
    [[nodiscard]] std::filesystem::path zip_path(std::size_t file) const;

    /// Whether the file is there, checked or not.
    [[nodiscard]] bool is_present(std::size_t file) const {
        return ledger_.entries()[file].file_state() == FileState::kPresent;
    }

    /// Keeps everybody from evicting the file until unpin(), if it is there. Counts within the
    /// process.
    [[nodiscard]] bool pin(std::size_t file);
    void unpin(std::size_t file);

    /// Whether this process is now the one that fetches or checks the file, until unclaim(). At
    /// most one thread of a process asks for a file at a time.
    [[nodiscard]] bool try_claim(std::size_t file);
    /// Waits in the kernel for whoever holds the claim. A cancellation point of pthread_cancel.
    void wait_claim(std::size_t file);
    void unclaim(std::size_t file);

    /// Whether the file is there with the bytes it ought to have: its size always, its hash once
    /// for each start of the machine and after a change. What is not right is removed. REQUIRES:
    /// claimed. Cost: reads the file when it must be hashed.
    [[nodiscard]] bool check(std::size_t file);

    /// Files in the order in which to evict them, the first one first. Called at most once.
    using Victims = std::function<std::vector<std::size_t>()>;

    /// Counts the file's bytes, evicting others if need be. False: there is no room that could be
    /// made. REQUIRES: claimed.
    [[nodiscard]] bool reserve(std::size_t file, const Victims& victims);

    /// Evicts one file; false when none may go. For a disk that is full.
    [[nodiscard]] bool evict_one(const Victims& victims);

    /// An empty file with room for `bytes`, that nobody sees yet. Errors: kResourceExhausted when
    /// the disk is full. REQUIRES: reserved.
    [[nodiscard]] Result<UniqueFd> open_part(std::size_t file, bool is_zip, std::uint64_t bytes);
    [[nodiscard]] std::filesystem::path part_path(std::size_t file, bool is_zip) const;

    /// Makes the parts visible. `xxh3`: of the raw file. REQUIRES: their content was checked.
    [[nodiscard]] Result<void> commit(std::size_t file, std::uint64_t xxh3);

    /// Takes the reservation back, and the parts away. Does nothing when there is none.
    void abandon(std::size_t file);

    /// On disk or reserved, by all processes.
    [[nodiscard]] std::uint64_t used_bytes() const;

private:
    DiskCache(CacheOptions options, std::shared_ptr<const UnitList> units, FileLocks locks,
              Ledger ledger);

    void take_over_files();
    void reclaim_dead();
    [[nodiscard]] bool evict(std::size_t file);
    void remove_files(std::size_t file) const;

    const CacheOptions options_;
    const std::shared_ptr<const UnitList> units_;
    FileLocks locks_;
    Ledger ledger_;

    mutable std::mutex mutex_;
    std::vector<std::uint32_t> pins_;  // of this process; guarded by mutex_
    std::vector<bool> claims_;         // of this process; guarded by mutex_
};

/// The files that the cache in `directory` may hold. Errors: those of read_file.
[[nodiscard]] Result<std::vector<std::string>> cached_names(const std::filesystem::path& directory);

struct CacheUsage {
    std::filesystem::path directory;
    std::uint64_t bytes = 0;
    std::size_t files = 0;
    bool is_in_use = false;  ///< a process has it open
};

/// The caches in `directory`: itself, or folders beneath it. Errors: kResourceDoesNotExist.
[[nodiscard]] Result<std::vector<CacheUsage>> find_caches(const std::filesystem::path& directory);

/// Deletes the cache in `directory` (as Petastorm's `cache.delete()`): the files that it fetched,
/// its table and the folder if nothing else is in it. Errors: kResourceDoesNotExist when there is
/// no cache, kResourceConflict when a process has it open.
[[nodiscard]] Result<void> cache_delete(const std::filesystem::path& directory);

}  // namespace tune::loader
