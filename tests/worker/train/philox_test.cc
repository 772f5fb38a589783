#include "worker/train/philox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace tune::train {
namespace {

using Block = std::array<std::uint32_t, 4>;

/// The known answers of Random123 1.14 (tests/kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswers) {
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
              (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(
        philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
        (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformFillsItsRange) {
    std::vector<float> values(100'003);
    fill_uniform(values.data(), values.size(), {.seed = 5}, -2.0f, 3.0f);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
        ASSERT_GE(value, -2.0f);
        ASSERT_LT(value, 3.0f);
        sum += value;
        squares += static_cast<double>(value) * value;
    }
    const auto n = static_cast<double>(values.size());
    EXPECT_NEAR(sum / n, 0.5, 0.02);                                      // 4.4 sigma
    EXPECT_NEAR(squares / n - (sum / n) * (sum / n), 25.0 / 12.0, 0.03);  // of the variance
}

TEST(Philox, DropoutDropsTheGivenPartAndKeepsTheMean) {
    for (const double drop : {0.1, 0.5, 0.9}) {
        std::vector<float> mask(80'001);
        fill_dropout_mask(mask.data(), mask.size(), {.seed = 1, .purpose = 2, .moment = 3}, drop);
        double zeros = 0;
        double sum = 0;
        for (const float value : mask) {
            if (value == 0.0f)
                ++zeros;
            else
                EXPECT_FLOAT_EQ(value, static_cast<float>(1.0 / (1.0 - drop)));
            sum += value;
        }
        const auto n = static_cast<double>(mask.size());
        const double sigma = std::sqrt(drop * (1 - drop) / n);
        EXPECT_NEAR(zeros / n, drop, 5 * sigma);
        EXPECT_NEAR(sum / n, 1.0, 5 * sigma / (1 - drop));
    }
}

TEST(Philox, SeedsStreamsAndMomentsAreUnrelated) {
    const auto mask = [](Stream stream) {
        std::vector<float> values(40'000);
        fill_dropout_mask(values.data(), values.size(), stream, 0.5);
        return values;
    };
    const auto base = mask({.seed = 1, .purpose = 1, .moment = 1});
    EXPECT_EQ(base, mask({.seed = 1, .purpose = 1, .moment = 1}));
    const Stream others[] = {{.seed = 2, .purpose = 1, .moment = 1},
                             {.seed = 1, .purpose = 2, .moment = 1},
                             {.seed = 1, .purpose = 1, .moment = 2},
                             {.seed = 1ull << 32 | 1, .purpose = 1, .moment = 1}};
    for (const Stream& stream : others) {
        const auto other = mask(stream);
        double equal = 0;
        for (std::size_t i = 0; i < base.size(); ++i) equal += base[i] == other[i];
        EXPECT_NEAR(equal / static_cast<double>(base.size()), 0.5, 0.0125);  // 5 sigma
    }
}

TEST(Philox, AShorterFillIsAPrefix) {
    std::vector<float> whole(37);
    fill_uniform(whole.data(), whole.size(), {.seed = 9}, 0, 1);
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        std::vector<float> part(size + 1, 7.0f);
        fill_uniform(part.data(), size, {.seed = 9}, 0, 1);
        EXPECT_TRUE(std::equal(part.begin(), part.end() - 1, whole.begin()));
        EXPECT_EQ(part.back(), 7.0f) << "written beyond the end";
    }
}

TEST(Philox, APartOfAMaskIsWhatTheWholeOneHoldsThere) {
    std::vector<float> whole(61);
    fill_dropout_mask(whole.data(), whole.size(), {.seed = 9}, 0.3);
    for (std::size_t first = 0; first < 20; ++first)
        for (std::size_t size = 0; first + size <= whole.size(); ++size) {
            std::vector<float> part(size + 1, 7.0f);
            fill_dropout_mask(part.data(), size, {.seed = 9}, 0.3, first);
            EXPECT_TRUE(std::equal(part.begin(), part.end() - 1,
                                   whole.begin() + static_cast<std::ptrdiff_t>(first)));
            EXPECT_EQ(part.back(), 7.0f) << "written beyond the end";
        }
}

TEST(FillNormal, HasTheMomentsOfANormalDistribution) {
    std::vector<float> values(100'001);
    fill_normal(values.data(), values.size(), {.seed = 1, .purpose = 2}, 3.0F);
    double mean = 0;
    double square = 0;
    double fourth = 0;
    for (const float value : values) {
        const double v = static_cast<double>(value) / 3.0;
        mean += v / 100'001.0;
        square += v * v / 100'001.0;
        fourth += v * v * v * v / 100'001.0;
    }
    EXPECT_NEAR(mean, 0.0, 0.02);
    EXPECT_NEAR(square, 1.0, 0.02);
    EXPECT_NEAR(fourth, 3.0, 0.15);
    std::vector<float> first(7);
    fill_normal(first.data(), first.size(), {.seed = 1, .purpose = 2}, 3.0F);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), values.begin()));
}

}  // namespace
}  // namespace tune::train
