#include "base/clock.h"

#include <ctime>

namespace tune {
namespace {

std::int64_t read_ms(clockid_t id) {
    timespec time{};
    clock_gettime(id, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
}

}  // namespace

std::int64_t SystemClock::now_ms() const {
    return read_ms(CLOCK_REALTIME);
}
std::int64_t SystemClock::monotonic_ms() const {
    return read_ms(CLOCK_BOOTTIME);
}

}  // namespace tune
