#include "tracker/store/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

namespace tune::tracker {
namespace {

std::string reason() {
    return std::generic_category().message(errno);
}

std::string read_pid(int descriptor) {
    std::array<char, 32> buffer{};
    const ssize_t size = ::pread(descriptor, buffer.data(), buffer.size(), 0);
    std::string pid(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    pid.erase(pid.find_last_not_of(" \n") + 1);
    return pid.empty() ? "unknown" : pid;
}

}  // namespace

Result<std::unique_ptr<LockFile>> LockFile::take(const std::filesystem::path& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return Error{Code::kPermissionDenied,
                     "Cannot write in the data directory '" + path.parent_path().string() + "' (" +
                         reason() + "); choose another directory or change its permissions."};
    std::unique_ptr<LockFile> lock(new LockFile(descriptor));
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0)
        return Error{Code::kResourceConflict, "The data directory '" + path.parent_path().string() +
                                                  "' is in use by another tune process (pid " +
                                                  read_pid(descriptor) +
                                                  "); stop it or choose another directory."};
    const std::string pid = std::to_string(::getpid()) + "\n";
    // The pid is only for the sentence above: a full disk must not keep the store from opening.
    if (::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
        errno = 0;
    return lock;
}

LockFile::~LockFile() {
    ::close(descriptor_);
}

}  // namespace tune::tracker
