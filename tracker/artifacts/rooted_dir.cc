// openat2 with RESOLVE_BENEATH makes the kernel refuse every way out of the folder, at the moment
// of opening, so there is no gap between a check and its use. Folders are made one by one, each
// opened before the next, and synced with their parents.

#include "tracker/artifacts/rooted_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "tracker/artifacts/artifact_path.h"

namespace tune::tracker {
namespace {

constexpr mode_t kDirectoryMode = 0755;
/// openat2 answers EAGAIN when a rename elsewhere raced with the walk.
constexpr int kRaceRetriesMax = 32;

struct CloseDirectory {
    void operator()(DIR* directory) const { ::closedir(directory); }
};

Result<void> remove_tree_at(int directory, const std::string& name, std::size_t depth) {
    if (::unlinkat(directory, name.c_str(), 0) == 0 || errno == ENOENT) return {};
    if (errno == ENAMETOOLONG) return {};  // nothing can have this name
    if (errno != EISDIR && errno != EPERM) return disk_error(name, errno);
    if (depth > kArtifactDepthMax)
        return Error{Code::kInvalidParameterValue, "Folders are nested too deep under " + name};
    {
        const UniqueFd inner = open_rooted(directory, name, O_RDONLY | O_DIRECTORY);
        if (!inner) {
            if (errno == ENOENT) return {};
            return disk_error(name, errno);
        }
        TUNE_TRY(names, names_in(inner.get()));
        for (const std::string& each : names)
            TUNE_TRY_VOID(remove_tree_at(inner.get(), each, depth + 1));
    }
    if (::unlinkat(directory, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    return disk_error(name, errno);
}

}  // namespace

UniqueFd open_rooted(int directory, const std::string& path, int flags) {
    open_how how{};
    how.flags = static_cast<__u64>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    for (int attempt = 0;; ++attempt) {
        const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN || attempt >= kRaceRetriesMax)
            return UniqueFd(static_cast<int>(fd));
    }
}

bool is_missing(int reason) {
    return reason == ENOENT || reason == ENOTDIR || reason == ELOOP || reason == EXDEV ||
           reason == ENXIO || reason == ENAMETOOLONG;
}

Result<UniqueFd> make_directories(int root, std::string_view path) {
    UniqueFd current = open_rooted(root, ".", O_RDONLY | O_DIRECTORY);
    if (!current) return disk_error(path, errno);
    while (!path.empty()) {
        const std::size_t slash = path.find('/');
        const std::string segment(path.substr(0, slash));
        path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
        UniqueFd next = open_rooted(current.get(), segment, O_RDONLY | O_DIRECTORY);
        if (!next && errno == ENOENT) {
            if (::mkdirat(current.get(), segment.c_str(), kDirectoryMode) != 0 && errno != EEXIST)
                return disk_error(segment, errno);
            ::fsync(current.get());
            next = open_rooted(current.get(), segment, O_RDONLY | O_DIRECTORY);
        }
        if (!next && (errno == ENOTDIR || errno == ELOOP))
            return Error{Code::kInvalidParameterValue,
                         "Invalid path: '" + segment + "' is a file, not a directory"};
        if (!next) return disk_error(segment, errno);
        current = std::move(next);
    }
    return current;
}

Result<UniqueFd> nearest_folder(int root, const std::string& path) {
    if (open_rooted(root, path, O_PATH | O_DIRECTORY)) return is_a_directory(path);
    for (std::string folder = parent_path(path);; folder = parent_path(folder)) {
        UniqueFd fd = open_rooted(root, folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
        if (fd) return fd;
        if (errno == ENOTDIR || errno == ELOOP)
            return Error{Code::kInvalidParameterValue,
                         "Invalid path: '" + folder + "' is a file, not a directory"};
        if (errno != ENOENT || folder.empty()) return disk_error(path, errno);
    }
}

std::string parent_path(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

Result<std::vector<std::string>> names_in(int directory) {
    const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy < 0) return disk_error("folder", errno);
    const std::unique_ptr<DIR, CloseDirectory> stream(::fdopendir(copy));
    if (!stream) {
        const int reason = errno;
        ::close(copy);
        return disk_error("folder", reason);
    }
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(stream.get())) {
        const std::string_view name = entry->d_name;
        if (name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

Result<void> remove_tree(int directory, const std::string& name) {
    return remove_tree_at(directory, name, 0);
}

Result<void> move_into_place(int from_directory, const std::string& from, int directory,
                             const std::string& name) {
    if (::renameat(from_directory, from.c_str(), directory, name.c_str()) != 0) {
        if (errno == EISDIR) return is_a_directory(name);
        return disk_error(name, errno);
    }
    if (::fsync(directory) != 0) return disk_error(name, errno);
    return {};
}

Error is_a_directory(std::string_view path) {
    return {Code::kInvalidParameterValue,
            "Artifact path refers to a directory, not a file: '" + std::string(path) + "'"};
}

Error disk_error(std::string_view path, int reason) {
    const std::string text = "Artifact '" + std::string(path) + "': " + std::strerror(reason);
    if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
        return {Code::kResourceExhausted,
                text + ". Free space on the server's disk, then try again."};
    if (reason == ENAMETOOLONG) return {Code::kInvalidParameterValue, text + "."};
    return {Code::kInternalError, text + "."};
}

}  // namespace tune::tracker
