#include "base/system/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/id.h"
#include "base/system/unique_fd.h"

namespace tune {

Error system_error(std::string_view what, const std::filesystem::path& path) {
    return {Code::kInternalError,
            "cannot " + std::string(what) + " '" + path.string() + "': " + std::strerror(errno)};
}

Error missing_or_system_error(std::string_view what, const std::filesystem::path& path) {
    const bool is_missing = errno == ENOENT;
    Error error = system_error(what, path);
    if (is_missing) error.code = Code::kResourceDoesNotExist;
    return error;
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max) {
    const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return missing_or_system_error("open", path);
    struct stat info {};
    if (fstat(file.get(), &info) != 0) return missing_or_system_error("inspect", path);
    if (S_ISDIR(info.st_mode))
        return Error{Code::kInvalidParameterValue, "'" + path.string() + "' is a directory"};
    std::string content;
    char buffer[64 << 10];
    while (true) {
        const ssize_t count = read(file.get(), buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return missing_or_system_error("read", path);
        if (count == 0) return content;
        if (content.size() + static_cast<std::size_t>(count) > bytes_max)
            return Error{Code::kResourceExhausted, "'" + path.string() + "' is larger than " +
                                                       std::to_string(bytes_max) + " bytes"};
        content.append(buffer, static_cast<std::size_t>(count));
    }
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t count = write(fd, bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

Result<void> write_file_atomic(const std::filesystem::path& path, std::string_view content) {
    const std::filesystem::path directory = path.has_parent_path() ? path.parent_path() : ".";
    const std::filesystem::path temporary =
        directory / ("." + path.filename().string() + "." + random_hex(4));
    {
        const UniqueFd file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
        if (!file) return missing_or_system_error("create", temporary);
        if (!write_all(file.get(), content) || fsync(file.get()) != 0) {
            Error error = missing_or_system_error("write", path);
            unlink(temporary.c_str());
            return error;
        }
    }
    if (rename(temporary.c_str(), path.c_str()) != 0) {
        Error error = missing_or_system_error("replace", path);
        unlink(temporary.c_str());
        return error;
    }
    const UniqueFd parent(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.get() < 0 || fsync(parent.get()) != 0)
        return missing_or_system_error("sync", directory);
    return {};
}

}  // namespace tune
