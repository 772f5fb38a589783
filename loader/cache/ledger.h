#pragma once
// What a cache folder holds, as all processes that use it see it.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "loader/source/mapped_file.h"

namespace tune::loader {

/// A file of the cache.
enum class FileState : std::uint32_t {
    kAbsent = 0,
    kReserved = 1,  ///< its bytes are counted; who holds its lock is fetching it
    kPresent = 2,
};

/// One row. `state` and `disk_bytes` change under the cache's lock only; who holds the file's own
/// lock changes the rest.
struct LedgerEntry {
    std::uint64_t disk_bytes = 0;  ///< on disk, or reserved
    std::uint64_t xxh3 = 0;        ///< of the raw file as it was committed
    std::uint64_t boot = 0;        ///< the boot during which it was written or checked; 0: neither
    std::int64_t changed_ns = 0;   ///< time of change of the file then
    std::uint32_t state = 0;       ///< a FileState
    std::uint32_t reserved = 0;

    [[nodiscard]] FileState file_state() const {
        return static_cast<FileState>(
            std::atomic_ref(const_cast<std::uint32_t&>(state)).load(std::memory_order_acquire));
    }
    void set_state(FileState value) {
        std::atomic_ref(state).store(static_cast<std::uint32_t>(value), std::memory_order_release);
    }
};
static_assert(sizeof(LedgerEntry) == 40);

/// A table in a file that every process maps, so that a change is seen at once and survives the
/// process that made it.
class Ledger {
public:
    /// Opens or creates the table of the `digest` data set with `count` files. `created` is set
    /// when it is new, or was of another data set or damaged and is empty now. REQUIRES: the cache
    /// is locked. Errors: kResourceExhausted when the disk is full, kInternalError otherwise.
    [[nodiscard]] static Result<Ledger> open(const std::filesystem::path& path,
                                             std::string_view digest, std::size_t count,
                                             bool may_replace);
    ~Ledger();
    Ledger(Ledger&& other) noexcept;
    Ledger& operator=(Ledger&&) = delete;

    [[nodiscard]] std::span<LedgerEntry> entries() const { return entries_; }
    /// disk_bytes of all rows.
    [[nodiscard]] std::uint64_t used_bytes() const {
        return std::atomic_ref(*used_bytes_).load(std::memory_order_relaxed);
    }
    /// Counts a file's bytes. REQUIRES: the cache is locked.
    void set_bytes(LedgerEntry& entry, std::uint64_t bytes) const;
    /// The file is absent, with nothing known of it. Others may look at its state meanwhile.
    /// REQUIRES: the cache is locked.
    void clear(LedgerEntry& entry) const;
    /// Adds all rows up: a process may have died between a row and the sum. REQUIRES: the cache is
    /// locked.
    void recount() const;
    [[nodiscard]] bool is_new() const { return is_new_; }

private:
    Ledger() = default;
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
    std::span<LedgerEntry> entries_;
    std::uint64_t* used_bytes_ = nullptr;
    bool is_new_ = false;
};

/// Changes with every start of the machine; never 0.
[[nodiscard]] std::uint64_t boot_number();

}  // namespace tune::loader
