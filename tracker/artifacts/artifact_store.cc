// A file is written without a name and gets it when it is whole and on disk, by a rename that
// replaces the old one at once. So a reader sees the old file or the new one, and a crash leaves
// nothing behind that has a name.

#include "tracker/artifacts/artifact_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/id.h"
#include "base/system/file.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/multipart_uploads.h"
#include "tracker/artifacts/rooted_dir.h"

namespace tune::tracker {
namespace {

/// fsync of an upload takes milliseconds on slow disks: several go side by side.
constexpr int kPoolThreads = 4;
constexpr mode_t kFileMode = 0644;

Error no_such_artifact(std::string_view path) {
    return {Code::kResourceDoesNotExist, "No such artifact: '" + std::string(path) + "'"};
}

std::string etag_of(const struct stat& status) {
    return "\"" + std::to_string(status.st_ino) + "-" + std::to_string(status.st_size) + "-" +
           std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) +
           "\"";
}

/// The folder for names that a file has before it is whole: `staging`, which the next start
/// empties, unless `directory` lies on another disk.
int folder_for_names(int staging, int directory) {
    struct stat a {};
    struct stat b {};
    const bool is_same =
        ::fstat(staging, &a) == 0 && ::fstat(directory, &b) == 0 && a.st_dev == b.st_dev;
    return is_same ? staging : directory;
}

/// The file under no name yet, or under a temporary one in `names` where the file system cannot do
/// that.
Result<UniqueFd> open_unnamed(int directory, int names, std::string& temporary_name) {
    UniqueFd file(::openat(directory, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, kFileMode));
    if (file) return file;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
        return disk_error("upload", errno);
    temporary_name = std::string(kUploadPrefix) + random_hex(8);
    file = UniqueFd(::openat(names, temporary_name.c_str(),
                             O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, kFileMode));
    if (file) return file;
    const int reason = errno;
    temporary_name.clear();
    return disk_error("upload", reason);
}

}  // namespace

// --- uploads -------------------------------------------------------------------------------------

ArtifactUpload::~ArtifactUpload() {
    if (!temporary_name_.empty()) ::unlinkat(temporary_directory_, temporary_name_.c_str(), 0);
}

Result<void> ArtifactUpload::write(std::string_view bytes) {
    if (!write_all(file_.get(), bytes)) return disk_error(path_, errno);
    return {};
}

Result<void> ArtifactAppend::write(std::string_view bytes) {
    if (bytes.size() > end_ - at_)
        return Error{Code::kBadRequest, "More bytes came than Content-Range announces."};
    const std::uint64_t known =
        at_ < size_ ? std::min<std::uint64_t>(size_ - at_, bytes.size()) : 0;
    at_ += known;
    bytes.remove_prefix(static_cast<std::size_t>(known));
    while (!bytes.empty()) {
        const ssize_t written =
            ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at_));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return disk_error(path_, errno);
        at_ += static_cast<std::uint64_t>(written);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

Result<void> ArtifactAppend::commit() {
    if (at_ != end_)
        return Error{Code::kBadRequest, "Fewer bytes came than Content-Range announces."};
    if (::fdatasync(file_.get()) != 0) return disk_error(path_, errno);
    return {};
}

Result<void> ArtifactUpload::commit() {
    if (::fsync(file_.get()) != 0) return disk_error(path_, errno);
    TUNE_TRY(directory, make_directories(root_, parent_path(path_)));
    const std::string name(artifact_name(path_));
    if (temporary_name_.empty()) {
        // A file without a name gets one through /proc. linkat never replaces: where something is
        // there already the rename does.
        const std::string self = "/proc/self/fd/" + std::to_string(file_.get());
        if (::linkat(AT_FDCWD, self.c_str(), directory.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0)
            return ::fsync(directory.get()) == 0 ? Result<void>() : disk_error(path_, errno);
        std::string other = std::string(kUploadPrefix) + random_hex(8);
        if (::linkat(AT_FDCWD, self.c_str(), temporary_directory_, other.c_str(),
                     AT_SYMLINK_FOLLOW) != 0)
            return disk_error(path_, errno);
        temporary_name_ = std::move(other);
    }
    TUNE_TRY_VOID(move_into_place(temporary_directory_, temporary_name_, directory.get(), name));
    temporary_name_.clear();
    return {};
}

// --- the store -----------------------------------------------------------------------------------

ArtifactStore::ArtifactStore(UniqueFd root, UniqueFd staging)
    : root_(std::move(root)),
      staging_(std::move(staging)),
      pool_(std::make_unique<WorkPool>(kPoolThreads)) {}

ArtifactStore::~ArtifactStore() = default;

Result<std::unique_ptr<ArtifactStore>> ArtifactStore::open(const std::filesystem::path& root,
                                                           const Clock* clock) {
    std::error_code failed;
    std::filesystem::create_directories(root, failed);
    UniqueFd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (failed || !fd || ::faccessat(fd.get(), ".", W_OK | X_OK, 0) != 0)
        return Error{Code::kPermissionDenied,
                     "The artifact folder " + root.string() +
                         " cannot be made or written: " + std::strerror(errno) +
                         ". Choose another data folder, or change its permissions."};
    const UniqueFd probe = open_rooted(fd.get(), ".", O_PATH | O_DIRECTORY);
    if (!probe && errno == ENOSYS)
        return Error{Code::kNotImplemented,
                     "This kernel has no openat2, without which artifacts cannot be kept inside "
                     "their folder. Linux 5.6 or newer is needed."};
    if (!probe) return disk_error(root.string(), errno);
    TUNE_TRY(staging, make_directories(fd.get(), kStagingFolder));
    std::unique_ptr<ArtifactStore> store(new ArtifactStore(std::move(fd), std::move(staging)));
    static const SystemClock system_clock;
    TUNE_TRY(multipart, MultipartUploads::open(store->root_.get(), store->staging_.get(),
                                               clock ? *clock : system_clock));
    store->multipart_ = std::move(multipart);
    return store;
}

Result<OpenArtifact> ArtifactStore::open_file(std::string_view path) const {
    TUNE_TRY(normal, normal_artifact_path(path));
    const std::string name = normal.empty() ? "." : normal;
    // O_NONBLOCK: a fifo that somebody put there must not hold the thread.
    UniqueFd file = open_rooted(root_.get(), name, O_RDONLY | O_NONBLOCK);
    if (!file) {
        if (is_missing(errno)) return no_such_artifact(path);
        return disk_error(normal, errno);
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return disk_error(normal, errno);
    if (S_ISDIR(status.st_mode))
        return Error{Code::kBadRequest, "Artifact path refers to a directory, not a file: '" +
                                            std::string(path) + "'"};
    if (!S_ISREG(status.st_mode)) return no_such_artifact(path);
    OpenArtifact opened;
    opened.size_bytes = static_cast<std::uint64_t>(status.st_size);
    opened.modified_s = status.st_mtim.tv_sec;
    opened.etag = etag_of(status);
    opened.file = std::make_shared<const UniqueFd>(std::move(file));
    return opened;
}

Result<std::vector<ArtifactEntry>> ArtifactStore::list(std::string_view path) const {
    TUNE_TRY(normal, normal_artifact_path(path));
    std::vector<ArtifactEntry> entries;
    UniqueFd directory = open_rooted(root_.get(), normal.empty() ? "." : normal,
                                     O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (!directory) {
        if (is_missing(errno)) return entries;
        return disk_error(normal, errno);
    }
    TUNE_TRY(names, names_in(directory.get()));
    for (std::string& name : names) {
        struct stat status {};
        if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
        const bool is_directory = S_ISDIR(status.st_mode);
        if (name.starts_with(kUploadPrefix) || (!is_directory && !S_ISREG(status.st_mode)))
            continue;
        entries.push_back({std::move(name), is_directory,
                           is_directory ? 0 : static_cast<std::uint64_t>(status.st_size)});
    }
    std::sort(entries.begin(), entries.end(),
              [](const ArtifactEntry& a, const ArtifactEntry& b) { return a.name < b.name; });
    return entries;
}

Result<void> ArtifactStore::remove(std::string_view path) const {
    TUNE_TRY(normal, normal_artifact_path(path));
    if (normal.empty())
        return Error{Code::kInvalidParameterValue, "The artifact root cannot be deleted."};
    const std::string folder = parent_path(normal);
    const std::string name(artifact_name(normal));
    const UniqueFd directory =
        open_rooted(root_.get(), folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
    if (!directory) {
        if (is_missing(errno)) return {};
        return disk_error(normal, errno);
    }
    return remove_tree(directory.get(), name);
}

Result<std::unique_ptr<ArtifactUpload>> ArtifactStore::begin_upload(std::string_view path) const {
    TUNE_TRY(normal, artifact_file_path(path));
    std::unique_ptr<ArtifactUpload> upload(new ArtifactUpload);
    TUNE_TRY(nearest, nearest_folder(root_.get(), normal));
    upload->root_ = root_.get();
    upload->path_ = std::move(normal);
    upload->nearest_ = std::move(nearest);
    upload->temporary_directory_ = folder_for_names(staging_.get(), upload->nearest_.get());
    TUNE_TRY(file, open_unnamed(upload->nearest_.get(), upload->temporary_directory_,
                                upload->temporary_name_));
    upload->file_ = std::move(file);
    return upload;
}

Result<std::unique_ptr<ArtifactAppend>> ArtifactStore::begin_append(std::string_view path,
                                                                    std::uint64_t begin,
                                                                    std::uint64_t end) const {
    TUNE_TRY(normal, artifact_file_path(path));
    if (begin >= end) return Error{Code::kInvalidParameterValue, "There are no bytes to append."};
    UniqueFd file = open_rooted(root_.get(), normal, O_WRONLY | O_NONBLOCK);
    struct stat status {};
    if (!file && !is_missing(errno) && errno != EISDIR) return disk_error(normal, errno);
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
        return no_such_artifact(path);
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (begin > size)
        return Error{Code::kResourceConflict, "'" + normal + "' has " + std::to_string(size) +
                                                  " bytes, so none can follow at " +
                                                  std::to_string(begin) +
                                                  ": send it from there, or whole."};
    std::unique_ptr<ArtifactAppend> append(new ArtifactAppend);
    append->path_ = std::move(normal);
    append->file_ = std::move(file);
    append->at_ = begin;
    append->size_ = size;
    append->end_ = end;
    return append;
}

Result<void> ArtifactStore::put(std::string_view path, std::string_view content) const {
    TUNE_TRY(upload, begin_upload(path));
    TUNE_TRY_VOID(upload->write(content));
    return upload->commit();
}

}  // namespace tune::tracker
