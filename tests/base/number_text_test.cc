#include "base/text/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

namespace tune {
namespace {

TEST(NumberText, IsPythonsRepr) {
    EXPECT_EQ(number_text(0.1), "0.1");
    EXPECT_EQ(number_text(1), "1.0");
    EXPECT_EQ(number_text(-2.5), "-2.5");
    EXPECT_EQ(number_text(0), "0.0");
    EXPECT_EQ(number_text(-0.0), "-0.0");
    EXPECT_EQ(number_text(1e-4), "0.0001");
    EXPECT_EQ(number_text(1e-5), "1e-05");
    EXPECT_EQ(number_text(1.25e-7), "1.25e-07");
    EXPECT_EQ(number_text(123456789.0), "123456789.0");
    EXPECT_EQ(number_text(1e15), "1000000000000000.0");
    EXPECT_EQ(number_text(1e16), "1e+16");
    EXPECT_EQ(number_text(1e22), "1e+22");
    EXPECT_EQ(number_text(123456789.123), "123456789.123");
    EXPECT_EQ(number_text(123456789012345.0), "123456789012345.0");
    EXPECT_EQ(number_text(9007199254740993.0), "9007199254740992.0");
    EXPECT_EQ(number_text(9999999999999998.0), "9999999999999998.0");
    EXPECT_EQ(number_text(-0.00012345678901234567), "-0.00012345678901234567");
    EXPECT_EQ(number_text(-std::numeric_limits<double>::max()), "-1.7976931348623157e+308");
    EXPECT_EQ(number_text(1.5e300), "1.5e+300");
    EXPECT_EQ(number_text(3e-4), "0.0003");
    EXPECT_EQ(number_text(0.30000000000000004), "0.30000000000000004");
    EXPECT_EQ(number_text(5e-324), "5e-324");
    EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "inf");
    EXPECT_EQ(number_text(-std::numeric_limits<double>::infinity()), "-inf");
    EXPECT_EQ(number_text(std::nan("")), "nan");
}

TEST(NumberText, ReadsBackToTheSameDouble) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20'000; ++i) {
        const std::uint64_t bits = random();
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        if (!std::isfinite(value)) continue;
        ASSERT_EQ(std::strtod(number_text(value).c_str(), nullptr), value);
    }
}

TEST(NumberText, TheShortestFormHasNoPointOfItsOwn) {
    std::string text = "x=";
    append_shortest(text, 1.0);
    append_shortest(text, -0.5);
    EXPECT_EQ(text, "x=1-0.5");
}

TEST(NumberFromText, TakesTheWholeText) {
    EXPECT_EQ(number_from_text<std::int64_t>("-12"), -12);
    EXPECT_EQ(number_from_text<std::uint64_t>("18446744073709551615"), UINT64_MAX);
    EXPECT_EQ(number_from_text<double>("1e-3"), 1e-3);
    for (const char* text : {"", " 1", "1 ", "+1", "1x", "x", "0x10", "1,000"}) {
        EXPECT_EQ(number_from_text<std::int64_t>(text), std::nullopt) << text;
        EXPECT_EQ(number_from_text<double>(text), std::nullopt) << text;
    }
}

TEST(NumberFromText, RefusesWhatTheTypeCannotHold) {
    EXPECT_EQ(number_from_text<std::int64_t>("9223372036854775808"), std::nullopt);
    EXPECT_EQ(number_from_text<std::uint64_t>("-1"), std::nullopt);
    EXPECT_EQ(number_from_text<int>("2147483648"), std::nullopt);
    EXPECT_EQ(number_from_text<double>("1e999"), std::nullopt);
    EXPECT_EQ(number_from_text<std::int64_t>("1.0"), std::nullopt);
}

}  // namespace
}  // namespace tune
