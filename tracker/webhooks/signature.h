#pragma once

#include <cstdint>

#include <string>
#include <string_view>

namespace tune::tracker {

/// What X-MLflow-Signature holds: "v1," + base64(HMAC-SHA256(secret, "<delivery>.<time>.<body>")).
/// `timestamp`: seconds since 1970 as text. Source: mlflow/webhooks/delivery.py of 3.17.2.
[[nodiscard]] std::string webhook_signature(std::string_view secret, std::string_view delivery_id,
                                            std::string_view timestamp, std::string_view body);

/// UUIDs of version 7, each behind all before it: also within a millisecond, and when the clock is
/// set back (RFC 9562, 6.2, a counter in rand_a). Not thread-safe.
class OrderedUuids {
public:
    [[nodiscard]] std::string next(std::int64_t now_ms);
    /// What next() gives sorts behind `uuid`, which next() of an earlier process made.
    void begin_behind(std::string_view uuid);

private:
    static constexpr int kCountMax = 0xfff;

    std::int64_t last_ms_ = 0;
    int count_ = 0;
};

/// A UUID of version 4.
[[nodiscard]] std::string random_uuid();

}  // namespace tune::tracker
