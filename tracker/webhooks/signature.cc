#include "tracker/webhooks/signature.h"

#include <cstdint>
#include <cstdio>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/text/base64.h"
#include "base/text/hex.h"

namespace tune::tracker {
namespace {

/// "xxxxxxxx-xxxx-Vxxx-Nxxx-xxxxxxxxxxxx" of 32 hex digits.
std::string uuid_of(std::string hex, char version) {
    hex[12] = version;
    constexpr std::string_view kVariant = "89ab";
    hex[16] = kVariant[static_cast<std::size_t>(hex_value(hex[16])) % 4];
    return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
           hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace

std::string webhook_signature(std::string_view secret, std::string_view delivery_id,
                              std::string_view timestamp, std::string_view body) {
    std::string text;
    text.reserve(delivery_id.size() + timestamp.size() + body.size() + 2);
    text.append(delivery_id).append(1, '.').append(timestamp).append(1, '.').append(body);
    const Sha256Bytes digest = hmac_sha256(secret, text);
    return "v1," + base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string OrderedUuids::next(std::int64_t now_ms) {
    const bool is_later = now_ms > last_ms_;
    if (is_later || count_ == kCountMax) {
        last_ms_ = is_later ? now_ms : last_ms_ + 1;
        count_ = 0;
    } else {
        ++count_;
    }
    char time_and_count[17];
    std::snprintf(time_and_count, sizeof time_and_count, "%012llx7%03x",
                  static_cast<unsigned long long>(last_ms_) & 0xffff'ffff'ffffULL,
                  static_cast<unsigned int>(count_));
    return uuid_of(time_and_count + random_hex(8), '7');
}

void OrderedUuids::begin_behind(std::string_view uuid) {
    constexpr std::size_t kTimeEnd = 13;  // 8 digits, a dash, 4 digits
    std::int64_t ms = 0;
    for (const char c : uuid.substr(0, kTimeEnd)) {
        if (c == '-') continue;
        ms = ms * 16 + hex_value(c);
    }
    if (ms < last_ms_) return;
    last_ms_ = ms;
    count_ = kCountMax;
}

std::string random_uuid() {
    return uuid_of(random_hex(16), '4');
}

}  // namespace tune::tracker
