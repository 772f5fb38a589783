#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <thread>

#include "base/system/thread.h"

namespace tune {
namespace {

int nice_of_this_thread() {
    return ::getpriority(PRIO_PROCESS, 0);
}

TEST(Thread, StandsBackAlone) {
    const int before = nice_of_this_thread();
    int within = 0;
    std::thread([&within] {
        stand_back(5);
        take_short_turns();  // keeps what was set
        within = nice_of_this_thread();
    }).join();
    constexpr int kFurthestBack = 19;
    EXPECT_EQ(within, std::min(before + 5, kFurthestBack));
    EXPECT_EQ(nice_of_this_thread(), before);
}

TEST(Thread, HasAName) {
    std::string name(16, '\0');
    std::thread([&name] {
        name_thread("reader");
        pthread_getname_np(pthread_self(), name.data(), name.size());
    }).join();
    EXPECT_STREQ(name.c_str(), "reader");
}

}  // namespace
}  // namespace tune
