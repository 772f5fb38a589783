#include "worker/agent/supervisor/ownership.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "worker/agent/supervisor/supervisor.h"

namespace tune::worker {
namespace {

/// The spare one gets this name only if nobody has it, as symlink(2) makes it only then.
bool use_spare(int directory, const char* owner) {
    char name[64];
    snprintf(name, sizeof name, "%s%s", kOwnerLink, kSpareSuffix);
    const int file = openat(directory, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return false;
    // Always as long, so that it is never cut and no block of it changes hands.
    char text[kOwnerBytes];
    memset(text, ' ', sizeof text);
    memcpy(text, owner, strlen(owner));
    const bool is_written = pwrite(file, text, sizeof text, 0) == ssize_t{sizeof text};
    close(file);
    return is_written && renameat2(directory, name, directory, kOwnerLink, RENAME_NOREPLACE) == 0;
}

}  // namespace

long long stat_field(const char* line, int number) {
    const char* at = strrchr(line, ')');
    for (int field = 2; at != nullptr && field < number; ++field) at = strchr(at + 1, ' ');
    return at == nullptr ? -1 : strtoll(at + 1, nullptr, 10);
}

bool read_stat(const char* pid, char* line, std::size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t count = read(fd, line, capacity - 1);
    close(fd);
    if (count <= 0) return false;
    line[count] = '\0';
    return true;
}

bool take_ownership(int directory) {
    char line[1024];
    if (!read_stat("self", line, sizeof line)) return false;
    char owner[kOwnerBytes];
    snprintf(owner, sizeof owner, "%d %lld", static_cast<int>(getpid()), stat_field(line, 22));
    // Where there is no spare one, or the file system cannot rename like that (NFS).
    return use_spare(directory, owner) || symlinkat(owner, directory, kOwnerLink) == 0;
}

}  // namespace tune::worker
