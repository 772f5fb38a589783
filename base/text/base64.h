#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tune {

/// Standard base64 (RFC 4648, section 4) with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// The bytes of such a text; nothing for any other.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace tune
