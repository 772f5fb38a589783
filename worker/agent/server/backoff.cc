#include "worker/agent/server/backoff.h"

#include <algorithm>
#include <random>

namespace tune::worker {

int Backoff::next_ms() {
    thread_local std::minstd_rand random{std::random_device{}()};
    const int delay = delay_ms_;
    delay_ms_ = std::min(delay_ms_ * 2, kMax_ms);
    return std::uniform_int_distribution<int>(delay * 8 / 10, delay * 12 / 10)(random);
}

}  // namespace tune::worker
