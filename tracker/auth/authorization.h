#pragma once
// The headers that carry credentials.

#include <optional>
#include <string>
#include <string_view>

namespace tune::tracker {

/// What follows "Bearer " in an Authorization header, or nothing.
[[nodiscard]] std::string_view bearer_of(std::string_view authorization);

struct BasicLogin {
    std::string username;
    std::string password;
};
/// The login of "Basic <base64>"; nothing for any other header.
[[nodiscard]] std::optional<BasicLogin> basic_login_of(std::string_view authorization);

/// The value of the cookie `name` in a Cookie header, or nothing.
[[nodiscard]] std::string_view cookie_of(std::string_view cookies, std::string_view name);

}  // namespace tune::tracker
