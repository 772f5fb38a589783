// The table lies in a file that all processes map: a header that says whose it is, then a row for
// each file. A row and the sum of all rows change one after the other under the cache's lock, and
// whoever dies between them leaves a wrong sum, which the next one to open the cache adds up anew.

#include "loader/cache/ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <functional>

#include "base/system/unique_fd.h"

namespace tune::loader {
namespace {

constexpr std::size_t kDigestBytesMax = 48;

struct LedgerHeader {
    char magic[8] = {'t', 'u', 'n', 'e', 'c', 'a', 'c', '2'};
    char digest[kDigestBytesMax] = {};
    std::uint64_t count = 0;
    /// Of all rows; the only field that changes.
    std::uint64_t used_bytes = 0;
};
static_assert(sizeof(LedgerHeader) == 72);
/// What says whether a table is of this data.
constexpr std::size_t kIdentityBytes = offsetof(LedgerHeader, used_bytes);

LedgerHeader header_of(std::string_view digest, std::size_t count) {
    LedgerHeader header;
    std::memcpy(header.digest, digest.data(), std::min(digest.size(), kDigestBytesMax));
    header.count = count;
    return header;
}

Error ledger_error(const std::filesystem::path& path, int reason) {
    const bool is_full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
    return {is_full ? Code::kResourceExhausted : Code::kInternalError,
            "cannot write the cache's table '" + path.string() + "': " + std::strerror(reason)};
}

}  // namespace

std::uint64_t boot_number() {
    static const std::uint64_t number = [] {
        std::ifstream file("/proc/sys/kernel/random/boot_id");
        std::string id;
        std::getline(file, id);
        return static_cast<std::uint64_t>(std::hash<std::string>{}(id)) | 1;
    }();
    return number;
}

Result<Ledger> Ledger::open(const std::filesystem::path& path, std::string_view digest,
                            std::size_t count, bool may_replace) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!fd) return ledger_error(path, errno);
    const LedgerHeader expected = header_of(digest, count);
    LedgerHeader found{};
    struct stat info {};
    const std::size_t bytes = sizeof expected + count * sizeof(LedgerEntry);
    const bool is_known = ::fstat(fd.get(), &info) == 0 &&
                          static_cast<std::size_t>(info.st_size) == bytes &&
                          ::pread(fd.get(), &found, sizeof found, 0) == sizeof found &&
                          std::memcmp(&found, &expected, kIdentityBytes) == 0;
    if (!is_known) {
        if (!may_replace)
            return Error{Code::kResourceConflict,
                         "the cache folder '" + path.parent_path().parent_path().string() +
                             "' is used by another process for other data; give each data set a "
                             "folder of its own as `local`"};
        if (::ftruncate(fd.get(), 0) != 0) return ledger_error(path, errno);
        // Room for all of it now: a page without room would end the process when written.
        if (const int reason = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)))
            return ledger_error(path, reason);
        if (::pwrite(fd.get(), &expected, sizeof expected, 0) != sizeof expected)
            return ledger_error(path, errno);
    }
    void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (address == MAP_FAILED) return ledger_error(path, errno);
    Ledger ledger;
    ledger.address_ = address;
    ledger.bytes_ = bytes;
    ledger.is_new_ = !is_known;
    ledger.used_bytes_ = &static_cast<LedgerHeader*>(address)->used_bytes;
    ledger.entries_ = {
        reinterpret_cast<LedgerEntry*>(static_cast<std::byte*>(address) + sizeof expected), count};
    return ledger;
}

void Ledger::set_bytes(LedgerEntry& entry, std::uint64_t bytes) const {
    std::atomic_ref(*used_bytes_).fetch_add(bytes - entry.disk_bytes, std::memory_order_relaxed);
    entry.disk_bytes = bytes;
}

void Ledger::clear(LedgerEntry& entry) const {
    entry.set_state(FileState::kAbsent);
    set_bytes(entry, 0);
    entry.xxh3 = entry.boot = 0;
    entry.changed_ns = 0;
}

void Ledger::recount() const {
    std::uint64_t bytes = 0;
    for (const LedgerEntry& entry : entries_) bytes += entry.disk_bytes;
    std::atomic_ref(*used_bytes_).store(bytes, std::memory_order_relaxed);
}

Ledger::Ledger(Ledger&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(other.bytes_),
      entries_(other.entries_),
      used_bytes_(other.used_bytes_),
      is_new_(other.is_new_) {}

Ledger::~Ledger() {
    if (address_) ::munmap(address_, bytes_);
}

}  // namespace tune::loader
