#include "base/text/time_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace tune {
namespace {

constexpr std::int64_t kTime_ms = 1'769'862'896'789;  // 2026-01-31 12:34:56.789 UTC

TEST(TimeText, IsWhatPythonAndHttpWrite) {
    EXPECT_EQ(iso_time(kTime_ms), "2026-01-31T12:34:56.789000+00:00");
    EXPECT_EQ(http_date(kTime_ms), "Sat, 31 Jan 2026 12:34:56 GMT");
    EXPECT_EQ(utc_text(kTime_ms, "%Y%m%dT%H%M%SZ"), "20260131T123456Z");
    EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00.000000+00:00");
    EXPECT_EQ(microseconds_text(1'000'007), "007000");
}

TEST(TimeText, CountsBackwardsBefore1970) {
    EXPECT_EQ(iso_time(-1), "1969-12-31T23:59:59.999000+00:00");
    EXPECT_EQ(iso_time(-1000), "1969-12-31T23:59:59.000000+00:00");
}

TEST(TimeText, LocalTimeFollowsTheTimeZone) {
    ASSERT_EQ(setenv("TZ", "XYZ-2", 1), 0);  // two hours ahead of UTC
    tzset();
    EXPECT_EQ(local_text(kTime_ms, "%Y-%m-%d %H:%M"), "2026-01-31 14:34");
    unsetenv("TZ");
    tzset();
}

}  // namespace
}  // namespace tune
