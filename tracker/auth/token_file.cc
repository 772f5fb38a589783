// The file is written beside its place and renamed, so that a reader finds a whole token or none.
// The folder's lock is held while a server opens it, so that only one process writes.

#include "tracker/auth/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/id.h"
#include "base/log.h"
#include "base/system/file.h"
#include "base/system/unique_fd.h"
#include "base/text/text.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kTokenBytes = 32;

Error failure(const std::filesystem::path& path, const char* what) {
    return {Code::kPermissionDenied,
            std::string(what) + " " + path.string() + ": " + std::strerror(errno)};
}

bool is_token(std::string_view text) {
    return text.size() == 2 * kTokenBytes &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Nobody but this user may have read it.
bool is_private(const std::filesystem::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

Result<std::string> make_token(const std::filesystem::path& path) {
    std::string token = random_hex(kTokenBytes);
    const std::filesystem::path beside = path.string() + ".new";
    static_cast<void>(::unlink(beside.c_str()));
    const UniqueFd file(
        ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.get() < 0) return failure(beside, "cannot make");
    if (!write_all(file.get(), token + "\n") || ::fsync(file.get()) != 0)
        return failure(beside, "cannot write");
    if (::rename(beside.c_str(), path.c_str()) != 0) return failure(path, "cannot write");
    return token;
}

}  // namespace

Result<std::string> own_token(const std::filesystem::path& data) {
    const std::filesystem::path path = data / kTokenFile;
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
        const Result<std::string> text = read_file(path, 4096);
        if (text && is_private(path) && is_token(trimmed(*text)))
            return std::string(trimmed(*text));
        log_warning(path.string() +
                    (is_private(path) ? " holds no token" : " could be read by others") +
                    "; a new token is made");
    }
    return make_token(path);
}

}  // namespace tune::tracker
