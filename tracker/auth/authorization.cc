#include "tracker/auth/authorization.h"

#include "base/text/base64.h"
#include "base/text/text.h"

namespace tune::tracker {
namespace {

/// What follows the scheme, which is written in lower case and ends in a space.
std::string_view after_scheme(std::string_view authorization, std::string_view scheme) {
    if (authorization.size() <= scheme.size() ||
        lower_ascii(authorization.substr(0, scheme.size())) != scheme)
        return {};
    return trimmed(authorization.substr(scheme.size()));
}

}  // namespace

std::string_view bearer_of(std::string_view authorization) {
    return after_scheme(authorization, "bearer ");
}

std::optional<BasicLogin> basic_login_of(std::string_view authorization) {
    const std::string_view encoded = after_scheme(authorization, "basic ");
    if (encoded.empty()) return std::nullopt;
    const std::optional<std::string> pair = base64_decode(encoded);
    if (!pair) return std::nullopt;
    const std::size_t colon = pair->find(':');
    if (colon == std::string::npos) return std::nullopt;
    return BasicLogin{pair->substr(0, colon), pair->substr(colon + 1)};
}

std::string_view cookie_of(std::string_view cookies, std::string_view name) {
    while (!cookies.empty()) {
        const std::size_t end = cookies.find(';');
        const std::string_view cookie = trimmed(cookies.substr(0, end));
        cookies = end == std::string_view::npos ? std::string_view() : cookies.substr(end + 1);
        const std::size_t sign = cookie.find('=');
        if (sign != std::string_view::npos && cookie.substr(0, sign) == name)
            return cookie.substr(sign + 1);
    }
    return {};
}

}  // namespace tune::tracker
