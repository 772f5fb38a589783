#pragma once

#include <string>
#include <string_view>

namespace tune {

/// Standard base64 (RFC 4648, section 4) with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace tune
