#include "base/system/unique_fd.h"

#include <unistd.h>

namespace tune::tracker {

UniqueFd::~UniqueFd() {
    if (fd_ >= 0) ::close(fd_);
}

}  // namespace tune::tracker
