// A path is checked before it is joined: nothing outside the folder can be named. Files are opened
// for each read and compared with the version that was asked for, so that bytes of two versions are
// never put together.

#include "loader/source/local_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/system/unique_fd.h"

namespace tune::loader {
namespace {

/// The reason that the system gave, as one of the interface's errors.
Error file_error(const char* what, const std::filesystem::path& path, int reason) {
    Code code = Code::kInternalError;
    if (reason == ENOENT || reason == ENOTDIR) code = Code::kResourceDoesNotExist;
    if (reason == EACCES || reason == EPERM) code = Code::kPermissionDenied;
    if (reason == EIO || reason == ESTALE || reason == ETIMEDOUT)
        code = Code::kTemporarilyUnavailable;
    return {code,
            std::string("cannot ") + what + " '" + path.string() + "': " + std::strerror(reason)};
}

std::string version_of(const struct stat& info) {
    return std::to_string(info.st_size) + "-" + std::to_string(info.st_mtim.tv_sec) + "." +
           std::to_string(info.st_mtim.tv_nsec) + "-" + std::to_string(info.st_ino);
}

ObjectInfo object_of(std::string path, const struct stat& info) {
    return {std::move(path), static_cast<std::uint64_t>(info.st_size), version_of(info)};
}

}  // namespace

LocalSource::LocalSource(std::filesystem::path root)
    : root_(std::move(root)), url_(root_.string()) {}

Result<std::filesystem::path> LocalSource::place(std::string_view path) const {
    if (!is_object_path(path))
        return invalid_parameter("the path '" + std::string(path) + "' leads out of '" + url_ +
                                 "'");
    return path.empty() ? root_ : root_ / path;
}

Result<ObjectInfo> LocalSource::stat(std::string_view path) const {
    TUNE_TRY(file, place(path));
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) return file_error("find", file, errno);
    if (S_ISREG(info.st_mode)) return object_of(std::string(path), info);
    return Error{Code::kResourceDoesNotExist,
                 "'" + file.string() +
                     (S_ISDIR(info.st_mode) ? "' is a folder, not a file" : "' is not a file")};
}

Result<std::vector<ObjectInfo>> LocalSource::list(std::string_view folder) const {
    TUNE_TRY(top, place(folder));
    struct stat info {};
    if (::stat(top.c_str(), &info) != 0) return file_error("list", top, errno);
    std::vector<ObjectInfo> objects;
    if (S_ISREG(info.st_mode)) {
        objects.push_back(object_of(std::string(folder), info));
        return objects;
    }
    std::error_code error;
    std::filesystem::recursive_directory_iterator entry(top, error);
    for (const std::filesystem::recursive_directory_iterator end; !error && entry != end;
         entry.increment(error)) {
        const std::filesystem::path& file = entry->path();
        // A file that somebody deletes meanwhile is not there.
        if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
        objects.push_back(object_of(file.lexically_relative(root_).generic_string(), info));
    }
    if (error) return file_error("list", top, error.value());
    std::sort(objects.begin(), objects.end(),
              [](const ObjectInfo& a, const ObjectInfo& b) { return a.path < b.path; });
    return objects;
}

Result<void> LocalSource::read(const ObjectInfo& object, std::uint64_t offset,
                               std::span<std::byte> bytes) const {
    TUNE_TRY(file, place(object.path));
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return file_error("open", file, errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return file_error("inspect", file, errno);
    if (!object.version.empty() && version_of(info) != object.version)
        return data_loss("'" + file.string() + "' was changed while it was read");
    while (!bytes.empty()) {
        const ssize_t count =
            ::pread(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return file_error("read", file, errno);
        if (count == 0)
            return data_loss("'" + file.string() + "' ends at byte " + std::to_string(offset) +
                             ", " + std::to_string(bytes.size()) + " bytes too early");
        offset += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

}  // namespace tune::loader
