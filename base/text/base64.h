#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tune {

/// Standard base64 (RFC 4648, section 4) with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

/// The same for URLs and file names (section 5): '-' and '_' in place of '+' and '/', no padding.
[[nodiscard]] std::string base64_url(std::string_view bytes);

/// The bytes of a text of base64(); nothing for any other.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace tune
