#include "tracker/webhooks/signature.h"

#include <gtest/gtest.h>

#include <regex>

namespace tune::tracker {
namespace {

TEST(Signature, IsWhatMlflowMakes) {
    // mlflow.webhooks.delivery._generate_hmac_signature(secret, delivery, time, payload) of 3.17.2.
    EXPECT_EQ(*webhook_signature("secret", "d-1", "1700000000", R"({"a": 1})"),
              "v1,HwGXL2DdV42EBdK0p+U0VpVCOg43dHD9+hG5vt59xUc=");
    EXPECT_EQ(*webhook_signature("gehe\xc3\xafm", "0190-7", "0", "\xc3\xbc\n"),
              "v1,3s8uEEV4WEvfroikLd5oTNLeTKwr84NSmS3ZG++U3lQ=");
    EXPECT_EQ(*webhook_signature(std::string(1000, 'k'), "", "", ""),
              "v1,u+fYHF4ZzDQcOY1leIGgGijc4s80x6NcNNklvZX3jOc=");
}

TEST(Signature, OrderedIdsGrowWithTime) {
    const std::regex shape("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
    std::string last;
    for (std::int64_t now_ms = 1'700'000'000'000; now_ms < 1'700'000'000'300; ++now_ms) {
        const std::string id = ordered_uuid(now_ms);
        EXPECT_TRUE(std::regex_match(id, shape)) << id;
        EXPECT_LT(last, id);
        last = id;
    }
    EXPECT_NE(ordered_uuid(5), ordered_uuid(5));
    EXPECT_TRUE(std::regex_match(
        random_uuid(),
        std::regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")));
}

}  // namespace
}  // namespace tune::tracker
