// A copied file counts as moved only when the store's copy was read back and has the digest of what
// the source gave. A linked file is the same inode, so nothing needs to be compared. What is there
// already with the same size and digest is left alone, which makes a second import cheap.

#include "tracker/transfer/artifact_mover.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/crypto/digest.h"
#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/rooted_dir.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kReadBytes = 256u << 10;

Result<Sha256Bytes> digest_of_file(int file, const std::string& name) {
    Sha256 digest;
    std::vector<char> buffer(kReadBytes);
    for (off_t at = 0;;) {
        const ssize_t got = ::pread(file, buffer.data(), buffer.size(), at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return disk_error(name, errno);
        if (got == 0) return digest.finish();
        digest.update({buffer.data(), static_cast<std::size_t>(got)});
        at += got;
    }
}

bool is_same_file(int a, int b) {
    struct stat one {};
    struct stat other {};
    return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

}  // namespace

Result<bool> ArtifactMover::is_there(const ArtifactOwner& owner, const SourceFile& file,
                                     const std::string& target) const {
    const Result<OpenArtifact> known = store_.open_file(target);
    if (!known || known->size_bytes != file.size_bytes) return false;
    const Result<UniqueFd> original = source_.open_file(owner, file);
    if (!original && original.error().code == Code::kNotImplemented) return true;
    if (!original) return original.error();
    if (is_same_file(original->get(), known->file->get())) return true;
    TUNE_TRY(wanted, digest_of_file(original->get(), file.path));
    TUNE_TRY(found, digest_of_file(known->file->get(), target));
    return wanted == found;
}

Result<MovedFiles> ArtifactMover::move(const ArtifactOwner& owner, const SourceFiles& files,
                                       const std::string& folder) const {
    MovedFiles moved;
    moved.left_out = files.left_out;
    for (const SourceFile& file : files.files) {
        const Result<std::string> normal = artifact_file_path(file.path);
        std::int64_t bad_texts = 0;
        if (!normal || *normal != file.path || clean_text(file.path, bad_texts) != file.path) {
            moved.left_out.push_back(file.path);
            continue;
        }
        const std::string target = join_artifact_path(folder, *normal);
        const auto named = [&](Error error) {
            error.message = "artifact '" + shown(file.path) + "' of " +
                            (owner.is_run ? "run " : "model ") + shown(owner.id) + ": " +
                            error.message;
            return error;
        };
        const Result<bool> known = is_there(owner, file, target);
        if (!known) return named(known.error());
        if (!*known) {
            if (const Result<void> done = move_one(owner, file, target); !done)
                return named(done.error());
            ++moved.files_new;
        }
        ++moved.files;
        moved.bytes += file.size_bytes;
    }
    return moved;
}

Result<void> ArtifactMover::move_one(const ArtifactOwner& owner, const SourceFile& file,
                                     const std::string& target) const {
    if (mode_ == ArtifactMode::kLink) {
        TUNE_TRY(is_linked, link_one(owner, file, target));
        if (is_linked) return {};
    }
    TUNE_TRY(upload, store_.begin_upload(target));
    Sha256 given;
    TUNE_TRY_VOID(source_.read_file(owner, file, [&](std::string_view bytes) {
        given.update(bytes);
        return upload->write(bytes);
    }));
    TUNE_TRY_VOID(upload->commit());
    TUNE_TRY(stored, store_.open_file(target));
    TUNE_TRY(digest, digest_of_file(stored.file->get(), target));
    if (digest == given.finish()) return {};
    return Error{Code::kDataLoss,
                 "what was written reads back differently; look at the disk, then import again"};
}

/// False where the file cannot be linked (another file system): it is copied then.
Result<bool> ArtifactMover::link_one(const ArtifactOwner& owner, const SourceFile& file,
                                     const std::string& target) const {
    Result<UniqueFd> opened = source_.open_file(owner, file);
    if (!opened && opened.error().code == Code::kNotImplemented) return false;
    if (!opened) return std::move(opened).error();
    const UniqueFd root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root) return disk_error(root_.string(), errno);
    const std::size_t slash = target.rfind('/');
    const std::string parent = slash == std::string::npos ? "" : target.substr(0, slash);
    TUNE_TRY(directory, make_directories(root.get(), parent));
    const std::string name(artifact_name(target));
    ::unlinkat(directory.get(), name.c_str(), 0);
    const std::string self = "/proc/self/fd/" + std::to_string(opened->get());
    if (::linkat(AT_FDCWD, self.c_str(), directory.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0)
        return true;
    if (errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP) return false;
    return disk_error(target, errno);
}

}  // namespace tune::tracker
