#include "worker/train/device/device.h"

#include <gtest/gtest.h>

namespace tune::train {
namespace {

TEST(Device, TakesWhatItsAgentGave) {
    constexpr std::int64_t kTotal = 80'000'000'000;
    EXPECT_FALSE(given_fraction(std::nullopt, kTotal));
    EXPECT_FALSE(given_fraction(80e9, kTotal)) << "all of it";
    EXPECT_FALSE(given_fraction(90e9, kTotal));
    EXPECT_DOUBLE_EQ(*given_fraction(20e9, kTotal), (20e9 - 512e6) / 80e9)
        << "a context needs some, too";
    EXPECT_DOUBLE_EQ(*given_fraction(600e6, kTotal), 300e6 / 80e9);
    const auto device = cpu_device();
    limit_to_what_is_given(*device);  // of a CPU there is nothing to limit
    EXPECT_EQ(device->memory().peak, 0);
}

}  // namespace
}  // namespace tune::train
