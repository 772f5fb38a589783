#include "base/system/unique_fd.h"

#include <unistd.h>

namespace tune {

void UniqueFd::reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
}

}  // namespace tune
