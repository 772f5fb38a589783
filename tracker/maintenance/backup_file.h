#pragma once
// The form of a backup: a tar file (`tar tf` lists it) whose first entry says what it is and whose
// last one holds the SHA-256 of all bytes before it.
//
//   tune-backup.json     {"format": 1, "schema_version", "created_ms", "tune_version", ...}
//   tune.db              the database, one snapshot
//   artifacts/...        files, if they were asked for
//   tune-backup.sha256   64 hex digits

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/crypto/digest.h"
#include "base/result.h"
#include "base/system/unique_fd.h"

namespace tune::tracker {

inline constexpr std::string_view kBackupManifest = "tune-backup.json";
inline constexpr std::string_view kBackupDatabase = "tune.db";
inline constexpr std::string_view kBackupArtifacts = "artifacts/";
inline constexpr std::string_view kBackupDigest = "tune-backup.sha256";
/// Longest name of an entry; the kernel's longest path.
inline constexpr std::size_t kBackupNameBytesMax = 4096;

/// Writes `path`.part and gives it its name at the end. Destroyed before, nothing remains.
class BackupWriter {
public:
    /// Errors: kResourceAlreadyExists when `path` is there; kInternalError with the reason.
    [[nodiscard]] static Result<std::unique_ptr<BackupWriter>> create(
        const std::filesystem::path& path);
    ~BackupWriter();
    BackupWriter(const BackupWriter&) = delete;
    BackupWriter& operator=(const BackupWriter&) = delete;

    /// Begins an entry; exactly `size_bytes` of write() follow.
    [[nodiscard]] Result<void> begin(std::string_view name, std::uint64_t size_bytes);
    [[nodiscard]] Result<void> write(std::string_view bytes);
    [[nodiscard]] Result<void> add(std::string_view name, std::string_view content);
    /// Writes the digest, makes all of it durable, names the file. Its digest as hex.
    [[nodiscard]] Result<std::string> finish();

    [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }

private:
    explicit BackupWriter(std::filesystem::path path) : path_(std::move(path)) {}
    [[nodiscard]] Result<void> put(std::string_view bytes);
    [[nodiscard]] Result<void> pad();

    std::filesystem::path path_;
    std::filesystem::path part_;
    UniqueFd file_;
    Sha256 digest_;
    std::uint64_t size_bytes_ = 0;
    std::uint64_t entry_left_ = 0;
};

/// Reads a backup from its beginning to its end; no seeking, memory: one buffer.
class BackupReader {
public:
    struct Entry {
        std::string name;
        std::uint64_t size_bytes = 0;
    };

    /// Errors: kResourceDoesNotExist; kInvalidParameterValue for a file that is no backup of ours.
    [[nodiscard]] static Result<std::unique_ptr<BackupReader>> open(
        const std::filesystem::path& path);

    /// The next entry, skipping what is unread of the last one; nothing after the digest, which is
    /// checked then. Errors: kDataLoss when the file is cut off or damaged.
    [[nodiscard]] Result<std::optional<Entry>> next();
    /// Up to 256 kB of the entry; empty at its end. Valid until the next call.
    [[nodiscard]] Result<std::string_view> read();
    /// The whole entry. Errors also: kDataLoss when it is larger.
    [[nodiscard]] Result<std::string> read_all(std::size_t bytes_max);

    [[nodiscard]] std::uint64_t position() const { return position_; }
    [[nodiscard]] std::uint64_t size_bytes() const { return file_bytes_; }

private:
    explicit BackupReader(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] Error damaged(const std::string& what) const;
    [[nodiscard]] Result<void> fill(char* target, std::size_t count);
    [[nodiscard]] Result<Entry> read_header();
    [[nodiscard]] Result<void> read_long_header(std::uint64_t size_bytes, Entry& entry);
    [[nodiscard]] Result<void> check_end();

    std::string path_;
    UniqueFd file_;
    Sha256 digest_;
    std::uint64_t file_bytes_ = 0;
    std::uint64_t position_ = 0;
    std::uint64_t entry_left_ = 0;
    std::uint64_t padding_ = 0;
    bool is_at_digest_ = false;
    std::string buffer_;
};

}  // namespace tune::tracker
