// Browsers keep one jar of cookies for all ports of a host, so the cookie's name depends on the
// token: two servers on one machine do not log each other's pages out.

#include "tracker/auth/page_login.h"

#include <algorithm>

#include "base/crypto/digest.h"
#include "base/id.h"
#include "base/text/hex.h"
#include "base/text/text.h"

namespace tune::tracker {
namespace {

constexpr std::size_t kIdDigits = 32;
constexpr int kCookieLife_s = 30 * 24 * 3600;

std::string signed_text(std::string_view token, std::string_view text) {
    const Sha256Bytes bytes = hmac_sha256(token, text);
    return hex_encode(bytes);
}

}  // namespace

PageLogin::PageLogin(std::string token, std::string path, bool is_https)
    : token_(std::move(token)),
      path_(std::move(path)),
      is_https_(is_https),
      name_("tune_" + signed_text(token_, "cookie name").substr(0, 8)) {}

std::string PageLogin::signature_of(std::string_view id) const {
    return signed_text(token_, "page " + std::string(id));
}

std::string PageLogin::new_code() {
    const std::lock_guard lock(mutex_);
    if (codes_.size() >= kPageCodesMax) codes_.pop_front();
    return codes_.emplace_back(random_hex(16));
}

std::string PageLogin::redeem(std::string_view code) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = std::find_if(codes_.begin(), codes_.end(), [code](const auto& known) {
            return equal_secrets(known, code);
        });
        if (found == codes_.end()) return {};
        codes_.erase(found);
    }
    const std::string id = random_hex(kIdDigits / 2);
    return name_ + "=" + id + "." + signature_of(id) + "; Path=" + (path_.empty() ? "/" : path_) +
           "; Max-Age=" + std::to_string(kCookieLife_s) + "; HttpOnly; SameSite=Strict" +
           (is_https_ ? "; Secure" : "");
}

bool PageLogin::is_known(std::string_view cookies) const {
    while (!cookies.empty()) {
        const std::size_t end = cookies.find(';');
        const std::string_view cookie = trimmed(cookies.substr(0, end));
        cookies = end == std::string_view::npos ? std::string_view() : cookies.substr(end + 1);
        const std::size_t sign = cookie.find('=');
        if (sign == std::string_view::npos || cookie.substr(0, sign) != name_) continue;
        const std::string_view value = cookie.substr(sign + 1);
        if (value.size() <= kIdDigits || value[kIdDigits] != '.') continue;
        if (equal_secrets(signature_of(value.substr(0, kIdDigits)), value.substr(kIdDigits + 1)))
            return true;
    }
    return false;
}

}  // namespace tune::tracker
