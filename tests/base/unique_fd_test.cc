#include "base/system/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace tune {
namespace {

int open_null() {
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int fd) {
    return fcntl(fd, F_GETFD) != -1;
}

TEST(UniqueFd, ClosesWhatItOwns) {
    int number = -1;
    {
        const UniqueFd fd(open_null());
        ASSERT_TRUE(fd);
        number = fd.get();
        EXPECT_TRUE(is_open(number));
    }
    EXPECT_FALSE(is_open(number));
    EXPECT_FALSE(UniqueFd());
}

TEST(UniqueFd, MovingHandsOverAndClosesTheOldOne) {
    UniqueFd a(open_null());
    UniqueFd b(open_null());
    const int old = a.get();
    const int kept = b.get();
    a = std::move(b);
    EXPECT_FALSE(is_open(old));
    EXPECT_TRUE(is_open(kept));
    EXPECT_EQ(a.get(), kept);
    UniqueFd c(std::move(a));
    EXPECT_EQ(c.get(), kept);
    c.reset();
    EXPECT_FALSE(is_open(kept));
    EXPECT_FALSE(c);
}

}  // namespace
}  // namespace tune
