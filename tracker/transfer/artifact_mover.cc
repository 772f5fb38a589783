#include "tracker/transfer/artifact_mover.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "tracker/artifacts/artifact_path.h"
#include "tracker/artifacts/beneath.h"
#include "tracker/transfer/text.h"

namespace tune::tracker {

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
        const Result<OpenArtifact> known = store_.open_file(target);
        if (!known || known->size_bytes != file.size_bytes) {
            if (Result<void> done = move_one(owner, file, target); !done) {
                Error error = std::move(done).error();
                error.message = "artifact '" + shown(file.path) + "' of " +
                                (owner.is_run ? "run " : "model ") + shown(owner.id) + ": " +
                                error.message;
                return error;
            }
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
    TUNE_TRY_VOID(source_.read_file(owner, file,
                                    [&](std::string_view bytes) { return upload->write(bytes); }));
    return upload->commit();
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
