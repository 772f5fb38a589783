#pragma once
// What a stored checkpoint is: the files of a trial's checkpoint folder at one moment, by their
// digests, in a manifest that is written last. And such a moment of a folder that somebody writes
// into meanwhile.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"

namespace tune::worker {

struct CheckpointFile {
    std::string path = {};  // below the folder, with '/'
    std::uint64_t bytes = 0;
    std::string sha256 = {};  // in hex digits; of a link: empty
    std::string link = {};    // where a symbolic link leads, relative; else empty

    friend bool operator==(const CheckpointFile&, const CheckpointFile&) = default;
};

/// Which of two sets is later: the attempt counts, then the number.
struct CheckpointNumber {
    int attempt = 0;
    std::uint64_t number = 0;

    friend auto operator<=>(const CheckpointNumber&, const CheckpointNumber&) = default;
};

struct CheckpointSet {
    CheckpointNumber number;
    std::vector<CheckpointFile> files;  // by path

    [[nodiscard]] std::uint64_t bytes() const;
};

/// "manifest-000002-00000007.json"; nothing for another name.
[[nodiscard]] std::string manifest_name(const CheckpointNumber& number);
[[nodiscard]] std::optional<CheckpointNumber> manifest_number(std::string_view name);

/// A digest in the text covers all of it. Errors of reading: kDataLoss, with what is wrong, also
/// for paths that lead out of the folder.
[[nodiscard]] std::string manifest_text(const CheckpointSet& set);
[[nodiscard]] Result<CheckpointSet> read_manifest(const std::string& text);

/// SHA-256 of a file, in hex digits. Errors: kInternalError with path and reason.
[[nodiscard]] Result<std::string> file_sha256(const std::filesystem::path& path);

/// A file that was seen, and what it was then.
struct SeenFile {
    std::string path = {};
    std::string link = {};
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t changed_ns = 0;

    friend bool operator==(const SeenFile&, const SeenFile&) = default;
};

/// All files below the folder, by path; without lock files and files that are being written, by
/// their names (is_passing_name). A folder that is not there is empty. Errors: kInternalError.
[[nodiscard]] Result<std::vector<SeenFile>> list_folder(const std::filesystem::path& folder);

/// "*.lock", "*.tmp", "*.part", and ".NAME.<8 hex digits>", as our own programs call what they
/// write beside NAME before it takes its place.
[[nodiscard]] bool is_passing_name(std::string_view name);

/// The files of a folder at one moment, held by hard links (copies where there can be none) in a
/// folder of its own, which goes with the object: a program that replaces its files, as it should,
/// does not disturb it. One that writes into them does; is_intact says so.
class FolderSnapshot {
public:
    /// Errors: kTemporarilyUnavailable when the folder does not stop changing, kInternalError.
    [[nodiscard]] static Result<FolderSnapshot> take(const std::filesystem::path& folder,
                                                     std::filesystem::path staging);
    FolderSnapshot(FolderSnapshot&&) noexcept;
    FolderSnapshot& operator=(FolderSnapshot&&) = delete;
    ~FolderSnapshot();

    [[nodiscard]] const std::vector<SeenFile>& files() const { return files_; }
    /// Of the file with this index.
    [[nodiscard]] std::filesystem::path path(std::size_t index) const;
    /// Nobody has written into it since.
    [[nodiscard]] bool is_intact(std::size_t index) const;

private:
    FolderSnapshot(std::filesystem::path staging, std::vector<SeenFile> files)
        : staging_(std::move(staging)), files_(std::move(files)) {}

    std::filesystem::path staging_;
    std::vector<SeenFile> files_;
    std::vector<bool> is_copy_;
};

}  // namespace tune::worker
