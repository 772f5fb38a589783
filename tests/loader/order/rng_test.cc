// Golden values of numpy 2.1.3 (numpy.random.default_rng).

#include "loader/order/rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/loader/digest.h"

namespace tune::loader {
namespace {

using testing::ElementsAre;

TEST(Rng, SeedsAsNumpyDoes) {
    EXPECT_EQ(Rng(9176).next_u64(), 0xce488e5ff4c10304U);
}

TEST(Rng, PermutesAsNumpyDoes) {
    EXPECT_THAT(Rng(9176).permutation(10), ElementsAre(8, 1, 2, 7, 5, 6, 9, 3, 0, 4));
    EXPECT_THAT(Rng(0).permutation(10), ElementsAre(4, 6, 2, 7, 3, 5, 9, 0, 8, 1));
    EXPECT_EQ(digest16(Rng(9176).permutation(100000)), "03f6072eb317bdc1");
    EXPECT_TRUE(Rng(1).permutation(0).empty());
}

TEST(Rng, DrawsDoublesAsNumpyDoes) {
    Rng rng(9176);
    EXPECT_EQ(rng.next_double(), 0.8057946190135716);
    EXPECT_EQ(rng.next_double(), 0.1376060182212533);
    EXPECT_EQ(rng.next_double(), 0.7344480930375625);
}

TEST(Rng, ChoosesWithFloydsMethodFromFew) {
    EXPECT_THAT(Rng(9176).choice(20, 7), ElementsAre(13, 0, 2, 15, 12, 3, 18));
    EXPECT_TRUE(Rng(1).choice(5, 0).empty());
}

TEST(Rng, ChoosesWithATailShuffleFromMany) {
    const std::vector<std::int64_t> chosen = Rng(9176).choice(20000, 1000);
    EXPECT_THAT(std::vector(chosen.begin(), chosen.begin() + 5),
                ElementsAre(14588, 3615, 2131, 3219, 4352));
    EXPECT_EQ(digest16(chosen), "7a36e25ce5e194d8");
}

TEST(Rng, DrawsIntegersBeyond32Bits) {
    EXPECT_EQ(Rng(9176).integers(0, std::int64_t{1} << 40), 885980553204);
}

TEST(Rng, TakesSeedsOfManyWords) {
    const std::array<std::uint32_t, 3> words = {5, 0, 1};  // 2^64 + 5
    EXPECT_THAT(Rng(words).permutation(5), ElementsAre(4, 0, 2, 3, 1));
}

TEST(Rng, KeepsTheWaitingHalfBetweenCallsOfOtherKinds) {
    Rng rng(9176);
    EXPECT_THAT(rng.permutation(3), ElementsAre(2, 1, 0));
    EXPECT_EQ(rng.next_double(), 0.1376060182212533);
    EXPECT_EQ(rng.integers(225, 375), 255);
    std::vector<std::int64_t> four;
    for (int i = 0; i < 4; ++i) four.push_back(rng.integers(0, 225));
    EXPECT_THAT(four, ElementsAre(165, 6, 192, 170));
    EXPECT_EQ(rng.uniform(-2.5, 7.5), 5.863926628924146);
    EXPECT_EQ(rng.uniform(-2.5, 7.5), -0.8300355715511165);
    EXPECT_THAT(rng.choice(20, 7), ElementsAre(5, 14, 4, 2, 12, 18, 16));
}

TEST(Rng, DrawsNothingForASingleValue) {
    Rng rng(9176);
    EXPECT_EQ(rng.integers(7, 8), 7);
    EXPECT_EQ(rng.interval(0), 0U);
    EXPECT_EQ(rng.next_u64(), 0xce488e5ff4c10304U);
}

}  // namespace
}  // namespace tune::loader
