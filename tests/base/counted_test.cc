#include "base/text/counted.h"

#include <gtest/gtest.h>

namespace tune {
namespace {

TEST(Counted, OneIsNoPlural) {
    EXPECT_EQ(counted(1, "row"), "1 row");
    EXPECT_EQ(counted(0, "row"), "0 rows");
    EXPECT_EQ(counted(2, "row"), "2 rows");
    EXPECT_EQ(counted(-1, "row"), "-1 rows");
}

TEST(Counted, TakesThePluralItIsGiven) {
    EXPECT_EQ(counted(1, "study", "studies"), "1 study");
    EXPECT_EQ(counted(3, "study", "studies"), "3 studies");
}

}  // namespace
}  // namespace tune
