#include "base/system/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace tune {
namespace {

/// struct sched_attr of the kernel, its first version; glibc 2.36 has none.
struct ScheduleAttributes {
    std::uint32_t size_bytes = sizeof(ScheduleAttributes);
    std::uint32_t policy = SCHED_OTHER;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0;  // of SCHED_OTHER: the length of a turn
    std::uint64_t deadline_ns = 0;
    std::uint64_t period_ns = 0;
};

constexpr std::uint64_t kShortTurnNs = 100'000;  // the kernel's least

}  // namespace

void name_thread(const char* name) {
    pthread_setname_np(pthread_self(), name);
}

void take_short_turns() {
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, 0);
    if (errno != 0) return;
    ScheduleAttributes attributes;
    attributes.nice = nice;
    attributes.runtime_ns = kShortTurnNs;
    // Refused by a sandbox, or unknown: the thread works all the same.
    static_cast<void>(::syscall(SYS_sched_setattr, 0, &attributes, 0));
}

void stand_back(int steps) {
    errno = 0;
    const int nice = ::getpriority(PRIO_PROCESS, 0);
    // The id of a thread is taken for that of a process by Linux, and 0 is the caller.
    if (errno == 0) static_cast<void>(::setpriority(PRIO_PROCESS, 0, nice + steps));
}

}  // namespace tune
