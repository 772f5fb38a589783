#include "loader/cache/file_locks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tune::loader {

Result<FileLocks> FileLocks::open(const std::filesystem::path& path) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (fd) return FileLocks(std::move(fd));
    return Error{errno == EACCES ? Code::kPermissionDenied : Code::kInternalError,
                 "cannot open '" + path.string() + "': " + std::strerror(errno)};
}

bool FileLocks::set(short type, std::uint64_t place, bool waits) const {
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(place);
    lock.l_len = 1;
    while (::fcntl(fd_.get(), waits ? F_OFD_SETLKW : F_OFD_SETLK, &lock) != 0)
        if (errno != EINTR) return false;
    return true;
}

bool FileLocks::try_lock(std::uint64_t place) const {
    return set(F_WRLCK, place, false);
}

bool FileLocks::try_share(std::uint64_t place) const {
    return set(F_RDLCK, place, false);
}

void FileLocks::lock(std::uint64_t place) const {
    // ENOLCK and EDEADLK do not come of these locks on a local file system.
    TUNE_CHECK(set(F_WRLCK, place, true), "a lock of the cache cannot be had");
}

void FileLocks::share(std::uint64_t place) const {
    TUNE_CHECK(set(F_RDLCK, place, true), "a lock of the cache cannot be had");
}

void FileLocks::unlock(std::uint64_t place) const {
    set(F_UNLCK, place, false);
}

}  // namespace tune::loader
