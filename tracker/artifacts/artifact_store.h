#pragma once
// Artifacts as files under one folder. Every path is opened by the kernel under that folder and
// without following links (openat2), so no name, however encoded, and no link that somebody put
// there leads outside.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/system/unique_fd.h"
#include "tracker/artifacts/work_pool.h"

namespace tune::tracker {

class MultipartUploads;

/// A file of the store, open for reading. Stays readable when it is replaced or deleted.
struct OpenArtifact {
    std::shared_ptr<const UniqueFd> file;
    std::uint64_t size_bytes = 0;
    std::int64_t modified_s = 0;
    /// Changes whenever the content may have: from inode, size and time of modification.
    std::string etag;
};

struct ArtifactEntry {
    std::string name;  // the last segment
    bool is_directory = false;
    std::uint64_t size_bytes = 0;  // of files
};

/// Bytes on their way into a file of the store. Not thread-safe; blocks on the disk.
class ArtifactWriter {
public:
    virtual ~ArtifactWriter() = default;
    ArtifactWriter(const ArtifactWriter&) = delete;
    ArtifactWriter& operator=(const ArtifactWriter&) = delete;

    /// Errors: kResourceExhausted when the disk (or a quota) is full, kInternalError otherwise.
    [[nodiscard]] virtual Result<void> write(std::string_view bytes) = 0;
    /// All is there, and on disk when it returns. Errors: as write(), and those of the kind.
    [[nodiscard]] virtual Result<void> commit() = 0;

protected:
    ArtifactWriter() = default;
};

/// A file being written, invisible until commit(). Destroyed without it, nothing remains.
class ArtifactUpload final : public ArtifactWriter {
public:
    ~ArtifactUpload() override;

    [[nodiscard]] Result<void> write(std::string_view bytes) override;

    /// Makes the folders and the file visible under its name, replacing an older one at once.
    /// Errors also: kInvalidParameterValue if a folder has the name.
    [[nodiscard]] Result<void> commit() override;

private:
    friend class ArtifactStore;
    ArtifactUpload() = default;

    int root_ = -1;     // the store's
    std::string path_;  // in normal form
    UniqueFd nearest_;  // the deepest folder on the way that was there at the begin
    UniqueFd file_;
    int temporary_directory_ = -1;  // the staging folder, or nearest_ if that is another disk
    std::string temporary_name_;    // empty while the file has no name at all
};

/// More bytes for the end of a file that is there, visible as they come.
class ArtifactAppend final : public ArtifactWriter {
public:
    [[nodiscard]] Result<void> write(std::string_view bytes) override;
    /// Errors also: kBadRequest when other than the announced number of bytes came.
    [[nodiscard]] Result<void> commit() override;

private:
    friend class ArtifactStore;
    ArtifactAppend() = default;

    std::string path_;
    UniqueFd file_;
    std::uint64_t at_ = 0;    // where the next byte belongs
    std::uint64_t size_ = 0;  // of the file when it was opened: what is below is there already
    std::uint64_t end_ = 0;
};

/// Thread-safe; calls block on the disk, so network threads go through pool(). Paths are what
/// clients sent, decoded once; every method checks them (see normal_artifact_path). Errors common
/// to all: kInvalidParameterValue "Invalid path", kInternalError with path and reason.
class ArtifactStore {
public:
    /// Makes `root` if missing, and deletes what uploads of a process that was killed have left;
    /// multipart uploads that can be resumed stay. One store a folder at a time. `clock` (of the
    /// machine when null) outlives the store. Errors: kPermissionDenied if the folder cannot be
    /// made or written; kNotImplemented where the kernel has no openat2 (Linux before 5.6).
    [[nodiscard]] static Result<std::unique_ptr<ArtifactStore>> open(
        const std::filesystem::path& root, const Clock* clock = nullptr);
    ~ArtifactStore();

    /// Errors: kResourceDoesNotExist "No such artifact: 'path'" (also for links and special
    /// files); kBadRequest for a folder.
    [[nodiscard]] Result<OpenArtifact> open_file(std::string_view path) const;

    /// The files and folders of a folder, sorted by name; empty if it is missing or a file.
    [[nodiscard]] Result<std::vector<ArtifactEntry>> list(std::string_view path) const;

    /// Deletes a file, or a folder with all it holds. A missing one is fine. Errors:
    /// kInvalidParameterValue for the root.
    [[nodiscard]] Result<void> remove(std::string_view path) const;

    /// The folders that lead to `path` are made by commit(). Errors: kInvalidParameterValue if one
    /// of them is a file, or `path` a folder; kResourceExhausted.
    [[nodiscard]] Result<std::unique_ptr<ArtifactUpload>> begin_upload(std::string_view path) const;

    /// For the bytes `begin` to `end` of a file whose first `begin` bytes are there already; those
    /// of them that are there too stay as they are, so that a repeat changes nothing. Errors:
    /// kResourceDoesNotExist as open_file(); kResourceConflict when the file is shorter than
    /// `begin`; kInvalidParameterValue unless begin < end.
    [[nodiscard]] Result<std::unique_ptr<ArtifactAppend>> begin_append(std::string_view path,
                                                                       std::uint64_t begin,
                                                                       std::uint64_t end) const;

    /// A small artifact that is in memory.
    [[nodiscard]] Result<void> put(std::string_view path, std::string_view content) const;

    /// Files that come in parts.
    [[nodiscard]] MultipartUploads& multipart() const { return *multipart_; }

    /// Threads for the calls above.
    [[nodiscard]] WorkPool& pool() const { return *pool_; }

private:
    ArtifactStore(UniqueFd root, UniqueFd staging);

    UniqueFd root_;
    UniqueFd staging_;
    std::unique_ptr<MultipartUploads> multipart_;
    std::unique_ptr<WorkPool> pool_;
};

}  // namespace tune::tracker
