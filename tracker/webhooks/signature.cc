#include "tracker/webhooks/signature.h"

#include <array>
#include <cstdint>
#include <cstdio>

#include "base/id.h"
#include "base/text/base64.h"
#include "tracker/curl/curl_library.h"

namespace tune::tracker {
namespace {

/// "xxxxxxxx-xxxx-Vxxx-Nxxx-xxxxxxxxxxxx" of 32 hex digits.
std::string uuid_of(std::string hex, char version) {
    hex[12] = version;
    constexpr std::string_view kVariant = "89ab";
    const char digit = hex[16];
    hex[16] = kVariant[static_cast<std::size_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10) % 4];
    return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
           hex.substr(16, 4) + "-" + hex.substr(20);
}

}  // namespace

Result<std::string> webhook_signature(std::string_view secret, std::string_view delivery_id,
                                      std::string_view timestamp, std::string_view body) {
    TUNE_TRY(library, CurlLibrary::get());
    std::string text;
    text.reserve(delivery_id.size() + timestamp.size() + body.size() + 2);
    text.append(delivery_id).append(1, '.').append(timestamp).append(1, '.').append(body);
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (library->hmac(library->sha256(), secret.data(), static_cast<int>(secret.size()),
                      reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                      digest.data(), &size) == nullptr)
        return Error{Code::kInternalError, "OpenSSL made no HMAC"};
    return "v1," + base64({reinterpret_cast<const char*>(digest.data()), size});
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
        const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
        ms = ms * 16 + digit;
    }
    if (ms < last_ms_) return;
    last_ms_ = ms;
    count_ = kCountMax;
}

std::string random_uuid() {
    return uuid_of(random_hex(16), '4');
}

}  // namespace tune::tracker
