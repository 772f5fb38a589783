#include "tracker/webhooks/signature.h"

#include <gtest/gtest.h>

#include <regex>

namespace tune::tracker {
namespace {

TEST(Signature, IsWhatMlflowMakes) {
    // mlflow.webhooks.delivery._generate_hmac_signature(secret, delivery, time, payload) of 3.17.2.
    EXPECT_EQ(webhook_signature("secret", "d-1", "1700000000", R"({"a": 1})"),
              "v1,HwGXL2DdV42EBdK0p+U0VpVCOg43dHD9+hG5vt59xUc=");
    EXPECT_EQ(webhook_signature("gehe\xc3\xafm", "0190-7", "0", "\xc3\xbc\n"),
              "v1,3s8uEEV4WEvfroikLd5oTNLeTKwr84NSmS3ZG++U3lQ=");
    EXPECT_EQ(webhook_signature(std::string(1000, 'k'), "", "", ""),
              "v1,u+fYHF4ZzDQcOY1leIGgGijc4s80x6NcNNklvZX3jOc=");
}

TEST(OrderedUuids, EachSortsBehindAllBeforeItWhateverTheClockDoes) {
    const std::regex shape("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
    constexpr std::int64_t kNow_ms = 1'700'000'000'000;
    OrderedUuids ids;
    std::string last;
    const auto expect_later = [&](std::int64_t now_ms) {
        const std::string id = ids.next(now_ms);
        ASSERT_TRUE(std::regex_match(id, shape)) << id;
        ASSERT_LT(last, id);
        last = id;
    };
    for (int i = 0; i < 300; ++i) expect_later(kNow_ms + i);
    for (int i = 0; i < 10'000; ++i) expect_later(kNow_ms + 300);  // more than one counter holds
    for (int i = 0; i < 300; ++i) expect_later(kNow_ms - i);       // the clock was set back
    expect_later(kNow_ms + 1'000);
    EXPECT_EQ(last.substr(0, 13), "018bcfe5-6be8") << "the time that it was made, once it can be";
}

TEST(OrderedUuids, ContinueAfterThoseOfAnEarlierProcess) {
    OrderedUuids before;
    std::string last = before.next(2'000);
    for (int i = 0; i < 50; ++i) last = before.next(1'000);
    OrderedUuids after;
    after.begin_behind(last);
    after.begin_behind(OrderedUuids().next(5));
    const std::string first = after.next(1'500);
    EXPECT_LT(last, first);
    EXPECT_LT(first, after.next(1'500));
}

TEST(RandomUuid, IsOfVersion4) {
    EXPECT_TRUE(std::regex_match(
        random_uuid(),
        std::regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")));
}

}  // namespace
}  // namespace tune::tracker
